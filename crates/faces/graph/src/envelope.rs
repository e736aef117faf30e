//! Answers in the envelope of Neo4j's HTTP API: results, errors with Neo4j's codes, and members of
//! transactions.

use crate::open::NotOpen;
use crate::render::push_string;
use crate::run::Results;
use wellspring_cypher::error::Error;
use wellspring_host::http::{JSON, Response};
use wellspring_host::wire::problem::{
    self, Kind, LOG_NOT_FOUND, MALFORMED_CREDENTIALS, OUTCOME_UNKNOWN, Problem, Retry,
    TOO_MANY_LOGINS, UNAUTHENTICATED,
};

/// An error as reported to clients.
pub(crate) struct GraphFault<'a> {
    /// Neo4j's code.
    pub(crate) code: &'a str,
    /// For people.
    pub(crate) message: &'a str,
}

/// The body cannot be parsed.
pub(crate) const INVALID_FORMAT: &str = "Neo.ClientError.Request.InvalidFormat";
/// The request cannot be executed as it is.
pub(crate) const INVALID_REQUEST: &str = "Neo.ClientError.Request.Invalid";
/// A memory limit is exceeded.
pub(crate) const OUT_OF_MEMORY: &str = "Neo.TransientError.General.MemoryPoolOutOfMemoryError";

/// The code that tells why a transaction cannot be used, and its message.
pub(crate) fn not_open(why: NotOpen) -> (&'static str, &'static str) {
    match why {
        NotOpen::Unknown => (
            "Neo.ClientError.Transaction.TransactionNotFound",
            "Unrecognized transaction id. Transaction may have timed out and been rolled back.",
        ),
        NotOpen::Busy => (
            "Neo.ClientError.Transaction.TransactionAccessedConcurrently",
            "Another request is using the transaction. Wait for its answer.",
        ),
        NotOpen::TooMany => (
            "Neo.TransientError.Transaction.MaximumTransactionLimitReached",
            "Too many transactions are open (--graph-transactions). Try again later.",
        ),
    }
}

/// Members of an answer apart from results and errors.
#[derive(Default)]
pub(crate) struct Members {
    /// The URL that commits the transaction.
    pub(crate) commit: Option<String>,
    /// When the transaction ends without another request, as an HTTP date.
    pub(crate) expires: Option<String>,
    /// A bookmark for later reads.
    pub(crate) bookmark: Option<String>,
}

/// The content of an answer.
pub(crate) fn content(results: &Results, members: &Members) -> Vec<u8> {
    let fault = results.fault.as_ref().map(|fault| (fault.code(), fault_message(fault)));
    let fault = fault.as_ref().map(|(code, message)| GraphFault { code, message });
    let mut out = begin(&results.bytes, fault);
    if let Some(url) = &members.commit {
        out.extend_from_slice(b",\"commit\":");
        push_string(&mut out, url);
    }
    if let Some(expires) = &members.expires {
        out.extend_from_slice(b",\"transaction\":{\"expires\":");
        push_string(&mut out, expires);
        out.push(b'}');
    }
    if let Some(bookmark) = &members.bookmark {
        out.extend_from_slice(b",\"lastBookmarks\":[");
        push_string(&mut out, bookmark);
        out.push(b']');
    }
    out.push(b'}');
    out
}

fn begin(results: &[u8], fault: Option<GraphFault<'_>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(results.len() + 256);
    out.extend_from_slice(b"{\"results\":[");
    out.extend_from_slice(results);
    out.extend_from_slice(b"],\"errors\":[");
    if let Some(GraphFault { code, message }) = fault {
        out.extend_from_slice(b"{\"code\":");
        push_string(&mut out, code);
        out.extend_from_slice(b",\"message\":");
        push_string(&mut out, message);
        out.push(b'}');
    }
    out.push(b']');
    out
}

/// Longest message that quotes the request, in bytes.
const MOST_MESSAGE_BYTES: usize = 1_000;

/// The reported part of a message.
pub(crate) fn shortened(message: &str) -> String {
    if message.len() <= MOST_MESSAGE_BYTES {
        return message.to_owned();
    }
    let half = MOST_MESSAGE_BYTES / 2;
    let (begin, end) =
        (message.floor_char_boundary(half), message.ceil_char_boundary(message.len() - half));
    format!("{} … {}", &message[..begin], &message[end..])
}

/// The message of a fault, with its place.
pub(crate) fn fault_message(fault: &Error) -> String {
    let text = shortened(&fault.message);
    match &fault.place {
        Some(place) => format!("{text} {place}"),
        None => text,
    }
}

/// An answer with an error and no results.
pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Response {
    let message = &shortened(message);
    let mut out = begin(&[], Some(GraphFault { code, message }));
    out.push(b'}');
    Response::json(status, out)
}

/// A problem of the server in Neo4j's envelope, with all its usual members. Status and headers
/// stay.
pub(crate) fn of_problem(problem: Box<Problem>) -> Response {
    let code = code_of(problem.kind, problem.kind.retry);
    let mut errors = b"[{\"code\":".to_vec();
    push_string(&mut errors, code);
    errors.extend_from_slice(b",\"message\":");
    push_string(&mut errors, &problem.detail);
    errors.extend_from_slice(b"}]");
    let errors = String::from_utf8(errors).unwrap_or_default();
    Response::from(problem.with("results", "[]".to_owned()).with("errors", errors)).of_type(JSON)
}

pub(crate) fn code_of(kind: &'static Kind, retry: Retry) -> &'static str {
    let is = |other: &'static Kind| kind.is(other);
    match kind.status {
        _ if is(&UNAUTHENTICATED) => "Neo.ClientError.Security.Unauthorized",
        _ if is(&MALFORMED_CREDENTIALS) => INVALID_FORMAT,
        _ if is(&LOG_NOT_FOUND) => "Neo.ClientError.Database.DatabaseNotFound",
        _ if is(&TOO_MANY_LOGINS) => "Neo.ClientError.Security.AuthenticationRateLimit",
        _ if is(&OUTCOME_UNKNOWN) => "Neo.DatabaseError.Transaction.TransactionCommitFailed",
        _ if is(&problem::INVALID) || is(&problem::MALFORMED_JSON) => INVALID_FORMAT,
        401 => "Neo.ClientError.Security.Unauthorized",
        403 => "Neo.ClientError.Security.Forbidden",
        429 | 503 if retry != Retry::No => "Neo.TransientError.General.DatabaseUnavailable",
        500.. => "Neo.DatabaseError.General.UnknownError",
        _ => INVALID_REQUEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_codes_that_drivers_understand() {
        for (kind, code) in [
            (&problem::UNAUTHENTICATED, "Neo.ClientError.Security.Unauthorized"),
            (&problem::FORBIDDEN, "Neo.ClientError.Security.Forbidden"),
            (&problem::LOG_NOT_FOUND, "Neo.ClientError.Database.DatabaseNotFound"),
            (&problem::METHOD_NOT_ALLOWED, "Neo.ClientError.Request.Invalid"),
            (&problem::UNSUPPORTED_MEDIA, "Neo.ClientError.Request.Invalid"),
            (&problem::STORAGE_FULL, "Neo.TransientError.General.DatabaseUnavailable"),
            (&problem::TOO_MANY_REQUESTS, "Neo.TransientError.General.DatabaseUnavailable"),
            (&problem::TOO_COSTLY, "Neo.DatabaseError.General.UnknownError"),
            (&problem::INTERNAL, "Neo.DatabaseError.General.UnknownError"),
        ] {
            assert_eq!(code_of(kind, kind.retry), code, "{}", kind.slug);
        }
    }
}
