//! What a client says about an import: the parameters of its URL.

use super::chain::{Chain, Scope};
use crate::http::Request;
use crate::kept_types::KeptInLog;
use crate::wire::params::within;
use crate::wire::problem::{self, Problem};
use wellspring_types::valid::check_text;
use wellspring_types::{Invalid, limits};

/// Longest label, in bytes.
const MAX_LABEL_BYTES: usize = 255;

/// What becomes of a line that is not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadLine {
    /// The import stops there.
    Stops,
    /// It is passed over and counted.
    Skipped,
}

/// Whether the content ends with this body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It does.
    Here,
    /// Another request continues it.
    Later,
}

/// The parameters, read.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) scope: Scope,
    /// Most events of one append; the first two are always in one.
    pub(super) batch: usize,
    pub(super) bad_line: BadLine,
    pub(super) ending: Ending,
    /// What came before this body.
    pub(super) start: Chain,
    /// Types that clients may not append to the log.
    pub(super) kept: KeptInLog,
}

impl Settings {
    /// Reads them. Events of the types `kept` are refused.
    ///
    /// # Errors
    /// 422 `invalid`, naming the parameter.
    pub(super) fn of(request: &Request, kept: KeptInLog) -> Result<Settings, Box<Problem>> {
        let params = request.params(&["label", "batch", "invalid", "more", "continues"])?;
        let label = params.one("label")?.unwrap_or_default().to_owned();
        if !label.is_empty() {
            check_text(&label, MAX_LABEL_BYTES)
                .map_err(|reason| Invalid { field: "label".into(), reason })?;
        }
        let most = limits::MAX_EVENTS as u64;
        let batch = within(params.number("batch")?.unwrap_or(most), most, "batch")?;
        if batch == 0 {
            return Err(problem::INVALID.because("batch must be at least 1").field("batch"));
        }
        let bad_lines = [("stop", BadLine::Stops), ("skip", BadLine::Skipped)];
        let endings = [("false", Ending::Here), ("true", Ending::Later)];
        let start = match params.one("continues")? {
            None => Chain::START,
            Some(text) => Chain::of_token(text).ok_or_else(|| {
                problem::INVALID
                    .because("continues must be the next of an answer to the part before")
                    .field("continues")
            })?,
        };
        Ok(Settings {
            scope: Scope { label },
            batch: batch as usize,
            bad_line: params.choice("invalid", &bad_lines)?.unwrap_or(BadLine::Stops),
            ending: params.choice("more", &endings)?.unwrap_or(Ending::Here),
            start,
            kept,
        })
    }
}
