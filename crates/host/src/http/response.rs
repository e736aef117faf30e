//! An answer as handlers make it.

use super::body_memory::Charge;
use super::stream::{self, Trailers};
use super::{CHALLENGE, JSON};
use crate::identity::Caller;
use crate::limits::Payer;
use crate::trouble::Cause;
use crate::wire::json::to_json;
use crate::wire::problem::Problem;
use bytes::Bytes;
use std::fmt;
use wellspring_types::Position;

/// The content of an answer.
pub enum Content {
    /// All of it.
    Full(Bytes),
    /// Piece by piece.
    Stream(stream::Chunks),
}

/// What an answer reflects that names no position itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReflectedPosition {
    /// All of the route's log, up to its head, if it concerns one.
    TheLog,
    /// Nothing that has a position.
    Nothing,
}

/// An answer.
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its content type; empty for none.
    pub content_type: &'static str,
    /// Further headers. Values must be visible ASCII.
    pub headers: Vec<(&'static str, String)>,
    /// The position it reflects, where a log is involved.
    pub(crate) position: Option<Position>,
    /// What it reflects if it names no position.
    pub(crate) reflects: ReflectedPosition,
    /// The caller, if not known to the gate, for the audit only.
    pub(crate) caller: Option<Caller>,
    /// The cause of a status of 500 or above, for the server's own log only.
    pub(crate) cause: Option<Box<Cause>>,
    /// When the append was submitted and durable, on the monotonic clock in µs; for the trace only.
    pub(crate) commit_us: Option<(u64, u64)>,
    /// Its content.
    pub content: Content,
    /// Trailers; those of a stream come with its end.
    pub(crate) trailers: Option<Box<Trailers>>,
    /// The memory charged to its request until it is handed over.
    pub(crate) held: Option<Charge>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Response { status, content_type, .. } = self;
        write!(f, "Response({status} {content_type})")
    }
}

impl Response {
    /// An answer that serde writes as JSON: any that is not hot.
    pub fn of(status: u16, answer: &impl serde::Serialize) -> Response {
        Response::json(status, to_json(answer))
    }

    /// An answer with a JSON document.
    pub fn json(status: u16, document: impl Into<Bytes>) -> Response {
        Response {
            status,
            content_type: JSON,
            headers: Vec::new(),
            position: None,
            reflects: ReflectedPosition::TheLog,
            caller: None,
            cause: None,
            commit_us: None,
            content: Content::Full(document.into()),
            trailers: None,
            held: None,
        }
    }

    /// An answer without content: 204, or one whose headers say everything.
    pub fn empty(status: u16) -> Response {
        Response { content_type: "", ..Response::json(status, "") }
    }

    /// The same answer with other content.
    pub fn with_content(mut self, content: impl Into<Bytes>) -> Response {
        self.content = Content::Full(content.into());
        self
    }

    /// The same answer with another status.
    pub fn with_status(mut self, status: u16) -> Response {
        self.status = status;
        self
    }

    /// The same content under another media type.
    pub fn of_type(mut self, content_type: &'static str) -> Response {
        self.content_type = content_type;
        self
    }

    /// The same answer; the trace shows when its commit started and ended, on the monotonic clock
    /// in µs.
    pub fn after_commit(mut self, commit_us: Option<(u64, u64)>) -> Response {
        self.commit_us = commit_us;
        self
    }

    /// An answer with a text.
    pub fn text(content_type: &'static str, text: impl Into<Bytes>) -> Response {
        Response { content_type, ..Response::json(200, text) }
    }

    /// A streamed answer.
    pub fn stream(content_type: &'static str, chunks: stream::Chunks) -> Response {
        let content = Content::Stream(chunks);
        let headers = vec![("cache-control", "no-store".to_owned())];
        Response { content_type, headers, content, ..Response::json(200, "") }
    }

    /// The answer that a problem leaves in the records, without content.
    pub(super) fn of_problem(problem: &Problem) -> Response {
        Response {
            position: problem.position,
            caller: problem.caller.clone(),
            cause: Cause::of(problem),
            ..Response::empty(problem.kind.status)
        }
    }

    /// Charges its content to a payer: now, or as it is sent.
    pub(super) fn pay_by(&mut self, payer: Payer) {
        match &mut self.content {
            Content::Full(bytes) => payer.bytes(bytes.len()),
            Content::Stream(chunks) => chunks.pay_by(payer),
        }
    }

    /// The same answer, reflecting `position`.
    pub fn at(mut self, position: Position) -> Response {
        self.position = Some(position);
        self
    }

    /// Its own position, if it names one.
    pub fn named_position(&self) -> Option<Position> {
        self.position
    }

    /// The first value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Adds the name of a request header to `Vary`.
    pub(crate) fn vary(&mut self, on: &str) {
        match self.headers.iter_mut().find(|(name, _)| *name == "vary") {
            Some((_, names)) => *names = format!("{names}, {on}"),
            None => self.headers.push(("vary", on.to_owned())),
        }
    }

    /// The same answer, to a caller that has just been identified.
    pub fn told_to(mut self, caller: Caller) -> Response {
        self.caller = Some(caller);
        self
    }

    /// The same answer with one more header.
    pub fn with(mut self, name: &'static str, value: String) -> Response {
        debug_assert!(!name.bytes().any(|b| b.is_ascii_uppercase()), "{name}: in small letters");
        self.headers.push((name, value));
        self
    }
}

impl From<Box<Problem>> for Response {
    fn from(problem: Box<Problem>) -> Response {
        let mut response = Response {
            content_type: "application/problem+json",
            ..Response::of_problem(&problem).with_content(problem.to_json())
        };
        if let Some(seconds) = problem.retry_after_s() {
            response.headers.push(("retry-after", seconds.to_string()));
        }
        if let Some(allow) = problem.allow {
            response.headers.push(("allow", allow));
        }
        if response.status == 401 {
            response.headers.push(("www-authenticate", CHALLENGE.to_owned()));
        }
        response
    }
}
