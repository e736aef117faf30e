//! The parameters and path segments of routes about events and logs.

use crate::consumers::PlaceName;
use crate::trim::{TrimMode, UnreadEvents};
use wellspring_host::http::contract::Segment;
use wellspring_host::names::{NAME_RULE, is_name};
use wellspring_host::wire::param::{Integer, IntegerOr, Moment, Param, Text, Texts, Values, Words};
use wellspring_host::wire::problem;
use wellspring_log::Order;
use wellspring_types::valid::check_text;
use wellspring_types::{EventId, Invalid, Position, limits};

/// Types of the events; any, if none is given.
pub(super) static TYPE: Param<Texts> =
    Param::texts("type", "Type of the events; repeat it for alternatives.");
/// Tags that each event must have.
pub(super) static TAG: Param<Texts> =
    Param::texts("tag", "Tag of the events; an event must have all given tags.");
/// A query as JSON, for what types and tags cannot express.
pub(super) static QUERY: Param<Text> =
    Param::json("query", "A query as JSON, instead of type and tag.");
/// Start of a read.
pub(super) static AFTER: Param<Integer> = Param::integer(
    "after",
    "The position after which the read begins; with order=desc, before which.",
    0..=u64::MAX,
);
/// Time from which on the events were recorded.
pub(super) static SINCE: Param<Moment> =
    Param::moment("since", "Only events that were recorded at this time or later.");
/// Time before which the events were recorded.
pub(super) static UNTIL: Param<Moment> =
    Param::moment("until", "Only events that were recorded before this time.");
/// Number of events to read.
pub(super) static LIMIT: Param<Integer> = Param::integer(
    "limit",
    "Maximum number of events: on a JSON page 1 to 1000, 100 by default; in a stream unlimited \
     by default.",
    0..=u64::MAX,
);
/// Order of the read.
pub(super) static ORDER: Param<Words<Order>> = Param::words(
    "order",
    "Order of positions.",
    &[("asc", Order::Ascending), ("desc", Order::Descending)],
    "asc",
);
/// The lease with which a subscription ends.
pub(super) static FENCE: Param<Text> = Param::json(
    "fence",
    "Lease and token, as of an append: a subscription ends when the lease is no longer held.",
);
/// The options of the DCB dialect.
pub(super) static OPTIONS: Param<Text> =
    Param::json("options", "An object with from, limit and backwards.");

/// The type after which a page of types begins.
pub(super) static TYPES_AFTER: Param<Text> =
    Param::text("after", "Type after which the page begins: `next` of the previous page.");
/// Number of types on a page.
pub(super) static TYPES_LIMIT: Param<IntegerOr> =
    Param::integer("limit", "Maximum number of types on a page.", 1..=MAX_TERMS).or(1_000);
/// Prefix of the tags on a page.
pub(super) static PREFIX: Param<Text> = Param::text("prefix", "Prefix of the tags.");
/// The tag after which a page of tags begins.
pub(super) static TAGS_AFTER: Param<Text> =
    Param::text("after", "Tag after which the page begins: `next` of the previous page.");
/// Number of tags on a page.
pub(super) static TAGS_LIMIT: Param<IntegerOr> =
    Param::integer("limit", "Maximum number of tags on a page.", 1..=MAX_TERMS).or(100);
/// The fencing token of a lease to release.
pub(super) static TOKEN: Param<Integer> =
    Param::integer("token", "Token of the lease, unless the body has it.", 0..=u64::MAX);
/// Where a log may begin.
pub(super) static TRIM_BEFORE: Param<Integer> =
    Param::integer("before", "Events before this position may go.", 0..=u64::MAX);
/// The age of events that may go.
pub(super) static MAX_AGE_S: Param<Integer> = Param::integer(
    "max_age_s",
    "Events may go that were recorded more than this many seconds ago.",
    0..=u64::MAX,
);
/// How much of a log is to stay.
pub(super) static MAX_BYTES: Param<Integer> = Param::integer(
    "max_bytes",
    "Segments may go until those that are left have at most this many bytes.",
    0..=u64::MAX,
);
/// Whether something is done.
pub(super) static DRY_RUN: Param<Words<TrimMode>> = Param::words(
    "dry_run",
    "Whether to tell what would be removed, and remove nothing.",
    &[("false", TrimMode::Trim), ("true", TrimMode::DryRun)],
    "false",
);
/// Whether unread events may go.
pub(super) static FORCE: Param<Words<UnreadEvents>> = Param::words(
    "force",
    "Whether to remove events that consumers, sinks and sources still need.",
    &[("false", UnreadEvents::Stay), ("true", UnreadEvents::Go)],
    "false",
);

/// The name of a log to drop.
pub(super) static CONFIRM: Param<Text> =
    Param::text("confirm", "Name of the log again, as confirmation: every event of it is deleted.");

/// Most types or tags on a page.
pub(crate) const MAX_TERMS: u64 = 10_000;

pub(super) static POSITION: Segment<Position> = Segment {
    name: "position",
    what: "Position of the event, from 1.",
    values: Values::Integer { least: 0, most: u64::MAX, default: None },
    read: |text| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number).ok_or_else(|| {
            problem::INVALID
                .because(format!("a position must be a positive integer, not {text:?}"))
                .field("position")
        })
    },
};
/// The id of an event.
pub(super) static UUID: Segment<EventId> = Segment {
    name: "uuid",
    what: "Id of the event.",
    values: Values::Text(Some("uuid")),
    read: |text| {
        EventId::parse(text).ok_or_else(|| {
            problem::INVALID.because(format!("an id must be a UUID, not {text:?}")).field("uuid")
        })
    },
};
/// The name of a lease.
pub(super) static LEASE: Segment<String> = Segment {
    name: "name",
    what: "Name of the lease, 1 to 255 bytes.",
    values: Values::Text(None),
    read: |text| {
        check_text(text, limits::MAX_TAG_BYTES)
            .map_err(|reason| Invalid { field: "name".into(), reason })?;
        Ok(text.to_owned())
    },
};
/// The name of a consumer.
pub(super) static CONSUMER: Segment<String> = Segment {
    name: "name",
    what: "Name of the consumer.",
    values: Values::Matching("^[a-z0-9][a-z0-9_-]{0,62}$"),
    read: |text| {
        if is_name(text) {
            return Ok(text.to_owned());
        }
        Err(problem::INVALID
            .because(format!("{text:?} is not a valid name for a consumer: {NAME_RULE}"))
            .field("name"))
    },
};
/// What becomes of the next events of open keys.
pub(super) static KEY_STATE: Param<Words<Option<PlaceName>>> = Param::words(
    "state",
    "Only keys whose next event is in this state.",
    &[
        ("any", None),
        ("waiting", Some(PlaceName::Waiting)),
        ("ready", Some(PlaceName::Ready)),
        ("held", Some(PlaceName::Held)),
        ("retrying", Some(PlaceName::Retrying)),
        ("parked", Some(PlaceName::Parked)),
    ],
    "any",
);
/// Number of open keys on a page.
pub(super) static KEYS_LIMIT: Param<IntegerOr> =
    Param::integer("limit", "Maximum number of keys on a page.", 1..=1_000).or(100);
/// The position after which a page of open keys begins.
pub(super) static KEYS_AFTER: Param<Integer> = Param::integer(
    "after",
    "Position after which the page begins: `next` of the previous page.",
    0..=u64::MAX,
);
/// The name of a log, existing or not.
pub(super) static LOG: Segment<String> = Segment {
    name: "log",
    what: "Name of the log.",
    values: Values::Matching("^[a-z0-9][a-z0-9_-]{0,62}$"),
    read: |text| {
        if is_name(text) {
            return Ok(text.to_owned());
        }
        Err(problem::INVALID
            .because(format!("{text:?} is not a valid name for a log: {NAME_RULE}"))
            .field("log"))
    },
};
