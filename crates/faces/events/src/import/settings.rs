//! The parameters of an import.

use super::super::event_json::RecordedTimes;
use super::chain::{Chain, Scope};
use wellspring_host::http::Request;
use wellspring_host::kept_types::KeptInLog;
use wellspring_host::wire::param::{AnyParam, IntegerOr, Param, Text, Words};
use wellspring_host::wire::problem::{self, Problem};
use wellspring_types::valid::check_text;
use wellspring_types::{Invalid, limits};

/// Longest label, in bytes.
const MAX_LABEL_BYTES: usize = 255;

/// Label for importing the same content as new.
static LABEL: Param<Text> =
    Param::text("label", "Imports the same content as new, once per label.");
/// Number of events of an append.
static BATCH: Param<IntegerOr> = Param::integer(
    "batch",
    "Maximum number of events per append; the first two always share one.",
    1..=limits::MAX_EVENTS as u64,
)
.or(limits::MAX_EVENTS as u64);
/// Handling of bad lines.
static INVALID: Param<Words<BadLine>> = Param::words(
    "invalid",
    "Handling of a line that is not an event: it ends the import, or is skipped and counted.",
    &[("stop", BadLine::Stops), ("skip", BadLine::Skipped)],
    "stop",
);
/// What becomes of recording times.
static RECORDED_AT: Param<Words<RecordedTimes>> = Param::words(
    "recorded_at",
    "What becomes of the times at which the events were recorded: metadata, or the times in this log, or nothing.",
    &[
        ("metadata", RecordedTimes::Metadata),
        ("keep", RecordedTimes::Kept),
        ("drop", RecordedTimes::Dropped),
    ],
    "metadata",
);
/// Whether another body continues the content.
static MORE: Param<Words<Ending>> = Param::words(
    "more",
    "Whether another request will continue this content.",
    &[("false", Ending::Here), ("true", Ending::Later)],
    "false",
);
/// Token of the previous part.
static CONTINUES: Param<Text> =
    Param::text("continues", "`next` of the previous answer, which this body continues.");

/// The tags that name data subjects.
static SUBJECT_FROM: Param<Text> = Param::text(
    "subject_from",
    "Key of the tags that name data subjects: an event without a subject and with exactly one such tag is sealed for it.",
);

/// The parameters of an import.
pub(crate) const PARAMS: &[&dyn AnyParam] =
    &[&LABEL, &BATCH, &INVALID, &RECORDED_AT, &SUBJECT_FROM, &MORE, &CONTINUES];

/// Handling of a line that is not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadLine {
    /// The import stops there.
    Stops,
    /// It is skipped and counted.
    Skipped,
}

/// Whether the content ends with this body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Yes.
    Here,
    /// Another request continues it.
    Later,
}

/// The parsed parameters.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) scope: Scope,
    /// Most events of one append; the first two always share one.
    pub(super) batch: usize,
    pub(super) bad_line: BadLine,
    /// What becomes of the times at which events were recorded.
    pub(super) times: RecordedTimes,
    /// The key of tags that name data subjects.
    pub(super) subject_from: Option<String>,
    pub(super) ending: Ending,
    /// The content before this body.
    pub(super) start: Chain,
    /// Types that clients may not append to the log.
    pub(super) kept: KeptInLog,
}

impl Settings {
    /// Parses them. Events of the types `kept` are refused.
    ///
    /// # Errors
    /// 422 `invalid`, naming the parameter.
    pub(crate) fn of(request: &Request, kept: KeptInLog) -> Result<Settings, Box<Problem>> {
        let query = &request.query;
        let label = query.get(&LABEL)?.unwrap_or_default().to_owned();
        if !label.is_empty() {
            check_text(&label, MAX_LABEL_BYTES)
                .map_err(|reason| Invalid { field: "label".into(), reason })?;
        }
        let start = match query.get(&CONTINUES)? {
            None => Chain::START,
            Some(text) => Chain::of_token(text).ok_or_else(|| {
                problem::INVALID
                    .because("continues must be the `next` of the answer to the previous part")
                    .field("continues")
            })?,
        };
        Ok(Settings {
            scope: Scope { label },
            batch: query.get(&BATCH)? as usize,
            bad_line: query.get(&INVALID)?,
            times: query.get(&RECORDED_AT)?,
            subject_from: query.get(&SUBJECT_FROM)?.map(str::to_owned),
            ending: query.get(&MORE)?,
            start,
            kept,
        })
    }
}
