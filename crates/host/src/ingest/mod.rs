//! Ingest: what a request asks for, the content of its body, and the serving thread's access to the
//! logs' batchers. Knows no sockets; the lean loop and the general stack both serve its fast path.
//!
//! ```text
//! lean loop (a thread a core)                      flusher (a thread a log)            sequencer, journal
//! recv → head, body → checked, encoded ──► ring ──► takes all partitions ──► staged in pieces, one barrier
//! one send of a 202 encoded before                  gives room back only after the barrier
//! ```
//!
//! `POST /e` is answered when the record is in the serving thread's partition (`log/batcher`).
//! Under load no thread is woken for it: the flusher comes every two milliseconds, or when a MiB
//! has gathered. The possible loss of a crash can be counted at any moment (`node/account.rs`).

mod config;
mod data;
mod intake;
mod path;
mod target;

pub use config::{IngestConfig, IngestOverflow};
pub use intake::{HandoverSide, IngestContext, Intake, IntakeOutcome, Settlement, Ticket};
pub use path::{fast_path, intake_at, subject_of_target};
pub use target::{KNOWN, Target};

use crate::wire::ndjson::is_ndjson;
use crate::wire::problem::{self, Problem};

/// The body of the answer to accepted events.
pub(crate) const ACCEPTED: &[u8] = br#"{"ok":true}"#;

/// The kind of a body according to its `Content-Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// Missing, or a client's default: one JSON value if it parses, otherwise opaque.
    Unspecified,
    /// One JSON value.
    Json,
    /// One JSON value per line.
    Ndjson,
    /// Uninterpreted bytes.
    Opaque,
}

impl Media {
    /// What a `Content-Type` means.
    pub(crate) fn of(content_type: Option<&[u8]>) -> Media {
        let Some(value) = content_type else { return Media::Unspecified };
        let essence = value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        let is = |name: &str| essence.eq_ignore_ascii_case(name.as_bytes());
        let suffix = essence.len().checked_sub(5).map(|at| &essence[at..]);
        if is("application/json") || suffix.is_some_and(|s| s.eq_ignore_ascii_case(b"+json")) {
            Media::Json
        } else if is_ndjson(essence) {
            Media::Ndjson
        } else if is("") || is("text/plain") || is("application/x-www-form-urlencoded") {
            // The defaults of curl and of forms.
            Media::Unspecified
        } else {
            Media::Opaque
        }
    }
}

/// Events are stored as sent. `coding`: their content encoding, if any.
///
/// # Errors
/// They are encoded.
pub(crate) fn expect_identity(coding: Option<&[u8]>) -> Result<(), Box<Problem>> {
    let Some(coding) = coding else { return Ok(()) };
    let coding = String::from_utf8_lossy(coding);
    let detail = format!("the body is encoded as {coding:?}; send it without Content-Encoding");
    Err(problem::UNSUPPORTED_MEDIA.because(detail).field("Content-Encoding"))
}

/// Ingest does not deduplicate retries; a client that relies on that must be told.
pub(crate) fn refuse_key(has_key: bool) -> Result<(), Box<Problem>> {
    if !has_key {
        return Ok(());
    }
    Err(problem::INVALID
        .because("ingest does not deduplicate retries; use POST /v1/append")
        .field("Idempotency-Key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_understood() {
        for (text, media) in [
            ("application/json", Media::Json),
            ("Application/JSON; charset=utf-8", Media::Json),
            ("application/cloudevents+json", Media::Json),
            ("application/x-ndjson", Media::Ndjson),
            ("application/ndjson ; x=1", Media::Ndjson),
            ("text/plain", Media::Unspecified),
            ("", Media::Unspecified),
            ("application/x-www-form-urlencoded", Media::Unspecified),
            ("application/octet-stream", Media::Opaque),
            ("image/png", Media::Opaque),
        ] {
            assert_eq!(Media::of(Some(text.as_bytes())), media, "{text}");
        }
        assert_eq!(Media::of(None), Media::Unspecified);
    }
}
