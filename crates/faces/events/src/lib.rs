//! Events: append, read, query, project, subscribe, leases, logs, import, ingest, and the dialects
//! of other servers.

#![forbid(unsafe_code)]

pub(crate) mod append;
pub(crate) mod bulk;
mod consumers;
pub(crate) mod count_only;
pub(crate) mod dialect_data;
pub(crate) mod dialects;
pub(crate) mod disclosure;
pub mod event_json;
pub(crate) mod fold;
pub(crate) mod import;
pub(crate) mod ingest;
mod lean;
pub(crate) mod leases;
pub(crate) mod logs;
pub(crate) mod one_event;
mod params;
mod problems;
pub(crate) mod project;
pub(crate) mod read;
pub(crate) mod read_request;
mod retention;
pub mod sealing;
pub(crate) mod subscribe;
pub(crate) mod terms;
pub(crate) mod times;
mod trim;
pub mod view;

use crate::problems::{
    CONSUMER_BUSY, CONSUMER_NOT_FOUND, DELIVERY_SETTLED, IMPORT_CHANGED, TOO_MANY_CONSUMERS,
    TRIM_HELD, TURN_PASSED,
};
use consumers::{Consumers, operator, pull};
use dialects::SIZE;
use params::{
    AFTER, CONFIRM, CONSUMER, DRY_RUN, FENCE, FORCE, KEY_STATE, KEYS_AFTER, KEYS_LIMIT, LEASE,
    LIMIT, LOG, MAX_AGE_S, MAX_BYTES, OPTIONS, ORDER, POSITION, PREFIX, QUERY, SINCE, TAG,
    TAGS_AFTER, TAGS_LIMIT, TOKEN, TRIM_BEFORE, TYPE, TYPES_AFTER, TYPES_LIMIT, UNTIL, UUID,
};
use read::RECORDS;
use retention::RetentionClock;
use std::sync::Arc;
use wellspring_host::declare::routes;
use wellspring_host::fast::Factory;
use wellspring_host::http::contract::{
    Accept, AnsweredBy, FRESHNESS, IDEMPOTENCY_KEY, LAST_EVENT_ID, Media, Query,
};
use wellspring_host::http::declared_problems::{APPENDING, READING};
use wellspring_host::http::face::{Face, ServedRoute};
use wellspring_host::http::subjects::SUBJECT;
use wellspring_host::http::{ANY, Host, JSON, NDJSON, SSE};
use wellspring_host::ingest::{KNOWN as TARGET, fast_path};
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::settings::NoSettings;
use wellspring_host::setup::SetupError;
use wellspring_host::stats::family::Family;
use wellspring_host::wire::effects::Repeat;
use wellspring_host::wire::problem::{
    CONDITION_FAILED, DELIVERY_LOST, DELIVERY_STAGED, ID_REUSED, INGEST_FULL, IO, KEY_REUSED, Kind,
    LEASE_HELD, LEASE_LOST, NOT_FOUND, NOT_LEADING, SHUTTING_DOWN, TOO_LARGE, TOO_MANY_LEASES,
    TOO_MANY_SUBSCRIPTIONS, TOO_MANY_WAITERS,
};

/// Problems of an append apart from the general ones.
const APPEND: &[&Kind] = &[&CONDITION_FAILED, &LEASE_LOST, &ID_REUSED, &KEY_REUSED];

/// Problems of an append that settles a delivery.
const SETTLING: &[&Kind] =
    &[&CONSUMER_NOT_FOUND, &DELIVERY_LOST, &DELIVERY_STAGED, &DELIVERY_SETTLED];

/// Problems of a request that only the leader answers.
const LEADING: &[&Kind] = &[&NOT_LEADING];

/// Problems of a request about a consumer.
const KNOWN_CONSUMER: &[&Kind] = &[&CONSUMER_NOT_FOUND];

/// Problems of a subscription that ends with a lease.
const FENCED: &[&Kind] = &[&LEASE_LOST, &NOT_LEADING];

/// Accepted bodies: JSON, declared or not, lines of it, and any bytes.
const INGEST: Media = &[(JSON, "Anything"), (NDJSON, ""), (ANY, "")];

/// The face.
pub struct EventFace {
    host: Arc<Host>,
    consumers: Consumers,
    retention: RetentionClock,
}

/// What a handler takes of the face: the host, or all of it.
trait PartOfFace<T> {
    fn part(self) -> T;
}

impl PartOfFace<Arc<Host>> for Arc<EventFace> {
    fn part(self) -> Arc<Host> {
        Arc::clone(&self.host)
    }
}

impl PartOfFace<Arc<EventFace>> for Arc<EventFace> {
    fn part(self) -> Arc<EventFace> {
        self
    }
}

impl Face for EventFace {
    const NAME: &'static str = "events";
    const PROBLEMS: &'static [&'static Kind] = problems::ALL;
    type Settings = NoSettings;
    const LIMITS: &'static [(&'static str, usize)] = &[
        ("max_subscription_query_bytes", subscribe::MAX_QUERY_BYTES),
        ("max_page_terms", params::MAX_TERMS as usize),
        ("max_page_events", read::MAX_PAGE_EVENTS as usize),
        ("max_lease_ttl_ms", leases::MAX_LEASE_TTL_MS as usize),
        ("max_consumers", operator::MAX_CONSUMERS),
        ("max_workers", pull::MAX_WORKERS),
    ];
    const ROUTES: &'static [ServedRoute<EventFace>] = routes! { |face| face.part();
        POST "/v1/append" Log Writer append::append:
            "Appends events, all or none, if the condition holds. With application/x-ndjson: a \
             bulk of one event per line, streamed, atomic per batch of at most 1000 lines."
            .takes[(JSON, "Append"), (NDJSON, "EventToAppend")] .headers[&IDEMPOTENCY_KEY, &SUBJECT] .short(true)
            .fails[APPENDING, READING, APPEND, SETTLING] => [200 JSON "Appended", 202 JSON "Accepted"];
        POST "/v1/import" Log Writer import::import:
            "Appends the lines of the body that no earlier import has appended; the events \
             themselves are the key. Streamed, atomic per batch."
            .query(import::PARAMS) .takes[(NDJSON, "EventToAppend")] .headers[&SUBJECT] .repeat(Repeat::Safe)
            .fails[APPENDING, READING, &[&IMPORT_CHANGED, &ID_REUSED]] => [200 JSON "Imported"];
        POST "/e" Main Writer ingest::post:
            "Ingests an event: the body is its data, one JSON value or any bytes; with \
             application/x-ndjson the data of one event per line, all or none. Answers 202 \
             when it is in memory; with ack=durable when it is on disk."
            .query_is(Query::OfFastPath(TARGET)) .takes(INGEST) .accept(Accept::Ignored) .answered(AnsweredBy::AnyNode)
            .fails[APPENDING, &[&INGEST_FULL, &SHUTTING_DOWN]] => [202 JSON "Taken"];
        GET "/e" Main Public ingest::up: "Whether the server ingests events."
            .query_is(Query::Ignored) .accept(Accept::Ignored) => [200 JSON "Up"];
        POST "/v1/e" Log Writer ingest::post: "Same as POST /e."
            .query_is(Query::OfFastPath(TARGET)) .takes(INGEST) .accept(Accept::Ignored) .answered(AnsweredBy::AnyNode)
            .fails[APPENDING, &[&INGEST_FULL, &SHUTTING_DOWN]] => [202 JSON "Taken"];
        GET "/v1/ingest" Log Reader ingest::account:
            "Account of ingested events: accepted, stored, in flight, dropped."
            .fresh(FRESHNESS) => [200 JSON "IngestAccount"];
        GET "/v1/events" Log Reader read::get_events:
            "Reads events in order: a JSON page, an NDJSON stream without limit, or a subscription as server-sent events."
            .query[&TYPE, &TAG, &QUERY, &AFTER, &SINCE, &UNTIL, &LIMIT, &ORDER, &FENCE] .fresh(FRESHNESS) .headers[&LAST_EVENT_ID]
            .fails[READING, FENCED, &[&TOO_MANY_SUBSCRIPTIONS, &TOO_LARGE]] => [200 JSON "Events" NDJSON "Event" SSE "" RECORDS ""];
        POST "/v1/query" Log Reader read::post_query: "Reads events with the query in the body."
            .fresh(FRESHNESS) .takes[(JSON, "Read")] .headers[&LAST_EVENT_ID]
            .fails[READING, FENCED, &[&TOO_MANY_SUBSCRIPTIONS]] => [200 JSON "Events" NDJSON "Event" SSE "" RECORDS ""];
        GET "/v1/events/{position}" Log Reader one_event::get_event: "One event by position."
            .at(&POSITION) .fresh(FRESHNESS) .short(true) .fails[READING, &[&NOT_FOUND]] => [200 JSON "Event"];
        GET "/v1/events/by-id/{uuid}" Log Reader one_event::get_event_by_id: "One event by its id."
            .at(&UUID) .fresh(FRESHNESS) .short(true) .fails[READING, &[&NOT_FOUND]] => [200 JSON "Event"];
        GET "/v1/head" Log Reader terms::head: "The last position." .fresh(FRESHNESS) .short(true) => [200 JSON "Head"];
        GET "/v1/types" Log Reader terms::types: "Types with their counts, in byte order."
            .query[&TYPES_AFTER, &TYPES_LIMIT] .fresh(FRESHNESS) .short(true) .fails[READING] => [200 JSON "Types"];
        GET "/v1/tags" Log Reader terms::tags: "Tags with their counts, in byte order."
            .query[&PREFIX, &TAGS_AFTER, &TAGS_LIMIT] .fresh(FRESHNESS) .short(true) .fails[READING] => [200 JSON "Tags"];
        POST "/v1/project" Log Reader project::project:
            "Folds events into states in one read and returns the append condition that \
             protects a decision based on them."
            .fresh(FRESHNESS) .takes[(JSON, "Project")] .short(true) .fails[READING] => [200 JSON "Projected"];
        POST "/v1/trim" Log Admin trim::trim:
            "Removes the beginning of the log, in whole segments, for good."
            .query[&TRIM_BEFORE, &MAX_AGE_S, &MAX_BYTES, &DRY_RUN, &FORCE] .repeat(Repeat::Safe)
            .fails[APPENDING, READING, &[&TRIM_HELD, &IO]] => [200 JSON "Trimmed"];
        GET "/v1/retention" Log Operator retention::get: "The rule by which the log's beginning goes, and what it waits for."
            .answered(AnsweredBy::Leader) .fails[READING, LEADING] => [200 JSON "Retention"];
        PUT "/v1/retention" Log Admin retention::put: "Sets the rule by which the log's beginning goes; {} ends it."
            .takes[(JSON, "RetentionRule")] .repeat(Repeat::Safe)
            .fails[APPENDING, READING, &[&TRIM_HELD]] => [200 JSON "Retention"];
        POST "/v1/leases/{name}" Log Writer leases::acquire: "Acquires an exclusive lease with a fencing token."
            .at(&LEASE) .takes[(JSON, "Acquire")] .accept(Accept::Ignored)
            .fails[LEADING, &[&LEASE_HELD, &TOO_MANY_LEASES, &TOO_MANY_WAITERS]] => [201 JSON "Lease"];
        PUT "/v1/leases/{name}" Log Writer leases::renew: "Renews a lease."
            .at(&LEASE) .takes[(JSON, "Renew")] .accept(Accept::Ignored) .fails[FENCED] => [200 JSON "Lease"];
        DELETE "/v1/leases/{name}" Log Writer leases::release: "Releases a lease; the token is in the body or the URL."
            .at(&LEASE) .query[&TOKEN] .may_take[(JSON, "Release")] .accept(Accept::Ignored)
            .fails[FENCED] => [200 JSON "Released"];
        GET "/v1/consumers" Log Operator operator::list: "All consumers of the log: their definitions and states."
            .answered(AnsweredBy::Leader) .fails[READING, LEADING] => [200 JSON "Consumers"];
        PUT "/v1/consumers/{name}" Log Operator operator::define: "Defines a consumer, or changes its definition."
            .at(&CONSUMER) .takes[(JSON, "ConsumerDefinition")] .repeat(Repeat::Safe)
            .fails[APPENDING, READING, &[&TOO_MANY_CONSUMERS, &CONSUMER_BUSY]]
            => [201 JSON "Consumer", 200 JSON "Consumer"];
        GET "/v1/consumers/{name}" Log Operator operator::get: "A consumer: its definition and state."
            .at(&CONSUMER) .answered(AnsweredBy::Leader) .fails[READING, LEADING, KNOWN_CONSUMER] => [200 JSON "Consumer"];
        DELETE "/v1/consumers/{name}" Log Operator operator::delete:
            "Deletes a consumer. Its events stay in the log, as do all others."
            .at(&CONSUMER) .accept(Accept::Ignored) .fails[APPENDING, READING, KNOWN_CONSUMER] => [200 JSON "Deleted"];
        POST "/v1/consumers/{name}/next" Log Writer pull::next:
            "Settles what a worker has done, and gives it more. The same turn again repeats nothing."
            .at(&CONSUMER) .takes[(JSON, "Turn")] .accept(Accept::Ignored) .repeat(Repeat::Safe)
            .fails[APPENDING, READING, KNOWN_CONSUMER, &[&TURN_PASSED, &TOO_MANY_WAITERS]] => [200 JSON "Deliveries"];
        POST "/v1/consumers/{name}/extend" Log Writer operator::extend:
            "A sign of life of a worker, which goes on to hold its deliveries."
            .at(&CONSUMER) .takes[(JSON, "Extend")] .accept(Accept::Ignored) .repeat(Repeat::Safe)
            .fails[READING, LEADING, KNOWN_CONSUMER] => [200 JSON "Extended"];
        GET "/v1/consumers/{name}/open" Log Operator operator::open_keys:
            "Keys with events that are looked at and not settled: held, retrying, parked, waiting."
            .at(&CONSUMER) .query[&KEY_STATE, &KEYS_AFTER, &KEYS_LIMIT] .answered(AnsweredBy::Leader)
            .fails[READING, LEADING, KNOWN_CONSUMER] => [200 JSON "OpenKeys"];
        POST "/v1/consumers/{name}/pause" Log Operator operator::pause: "Pauses a consumer. What is held can be settled."
            .at(&CONSUMER) .accept(Accept::Ignored) .repeat(Repeat::Safe) .fails[APPENDING, READING, KNOWN_CONSUMER]
            => [200 JSON "Consumer"];
        POST "/v1/consumers/{name}/resume" Log Operator operator::resume: "Resumes a paused or stopped consumer."
            .at(&CONSUMER) .accept(Accept::Ignored) .repeat(Repeat::Safe) .fails[APPENDING, READING, KNOWN_CONSUMER]
            => [200 JSON "Consumer"];
        POST "/v1/consumers/{name}/reset" Log Operator operator::reset:
            "Moves a consumer to another position. Events may be delivered again, or never."
            .at(&CONSUMER) .takes[(JSON, "ConsumerReset")] .accept(Accept::Ignored)
            .fails[APPENDING, READING, KNOWN_CONSUMER] => [200 JSON "Consumer"];
        POST "/v1/consumers/{name}/replay" Log Operator operator::replay: "Delivers parked events again."
            .at(&CONSUMER) .takes[(JSON, "ParkedSelection")] .accept(Accept::Ignored)
            .fails[APPENDING, READING, KNOWN_CONSUMER] => [200 JSON "Replayed"];
        POST "/v1/consumers/{name}/skip" Log Operator operator::skip: "Goes on without parked events."
            .at(&CONSUMER) .takes[(JSON, "ParkedSelection")] .accept(Accept::Ignored)
            .fails[APPENDING, READING, KNOWN_CONSUMER] => [200 JSON "Skipped"];
        GET "/v1/logs" Node Account logs::list: "All logs with size, head and term counts."
            .fresh(FRESHNESS) .short(true) .accept(Accept::Ignored) .fails[READING] => [200 JSON "Logs"];
        PUT "/v1/logs/{log}" Node Admin logs::create: "Creates a log, unless it exists."
            .at(&LOG) .accept(Accept::Ignored) .fails[READING, APPENDING] => [201 JSON "Log", 200 JSON "Log"];
        GET "/v1/logs/{log}" Node Reader logs::get: "One log with size, head and term counts."
            .at(&LOG) .fresh(FRESHNESS) .accept(Accept::Ignored) .fails[READING] => [200 JSON "Log"];
        DELETE "/v1/logs/{log}" Node Admin logs::delete: "Drops a log and all its events."
            .at(&LOG) .query[&CONFIRM] .accept(Accept::Ignored) .fails[APPENDING, &[&IO]] => [200 JSON "Dropped"];
        POST "/append" Main Writer dialects::append: "Append, DCB dialect: always 200."
            .query_is(Query::Ignored) .takes[(JSON, "DialectAppend"), (ANY, "DialectAppend")] .accept(Accept::Ignored)
            .fails[APPENDING, READING, APPEND] => [200 JSON "DialectAppended"];
        GET "/read" Main Reader dialects::get_read: "Read, DCB dialect."
            .query[&QUERY, &OPTIONS] .accept(Accept::Ignored) .fails[READING] => [200 JSON "DialectEvents"];
        POST "/read" Main Reader dialects::post_read: "Count and last position, go-crablet dialect."
            .query_is(Query::Ignored) .takes[(JSON, "DialectRead"), (ANY, "DialectRead")] .accept(Accept::Ignored)
            .fails[READING] => [200 JSON "DialectCount"];
        POST "/project" Main Reader dialects::project: "Counts per projector, go-crablet dialect."
            .query_is(Query::Ignored) .takes[(JSON, "DialectProject"), (ANY, "DialectProject")] .accept(Accept::Ignored)
            .fails[READING] => [200 JSON "DialectProjected"];
        POST "/cleanup" Dev Admin dialects::cleanup: "Empties the log main."
            .query_is(Query::Ignored) .accept(Accept::Ignored) .answered(AnsweredBy::LeaderOfSystem) .fails[APPENDING, &[&IO]] => [200 JSON ""];
        POST "/load-test-data" Dev Admin dialects::load_test_data: "Appends example events."
            .query[&SIZE] .accept(Accept::Ignored) .fails[APPENDING, APPEND] => [200 JSON ""];
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<EventFace, SetupError> {
        let (consumers, retention) = (Consumers::default(), RetentionClock::default());
        Ok(EventFace { host: Arc::clone(host), consumers, retention })
    }

    fn kept_events(_: &NoSettings) -> Option<&'static KeptEvents> {
        Some(&consumers::KEPT)
    }

    fn figures(&self) -> Vec<Family> {
        consumers::families(&self.consumers, self.host.wall_us())
    }

    fn tick(self: &Arc<Self>, wall_us: u64) {
        self.consumers.tick(&self.host);
        retention::tick(self, wall_us);
    }

    fn close(&self) {
        self.consumers.close();
    }

    fn fast_paths(&self) -> Vec<Factory> {
        std::iter::once(fast_path(self.host.ingest())).chain(lean::paths(&self.host)).collect()
    }
}
