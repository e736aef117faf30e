//! The bytes of answers.

use super::head::After;
use crate::links::REDIRECT_CACHING;
use crate::wire::problem::Problem;

/// What every accepted request is answered, byte for byte.
pub(crate) const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\n\
Content-Type: application/json\r\n\
Content-Length: 11\r\n\
Connection: keep-alive\r\n\
\r\n\
{\"ok\":true}";

/// The same for the last request of a connection.
pub(crate) const ACCEPTED_LAST: &[u8] = b"HTTP/1.1 202 Accepted\r\n\
Content-Type: application/json\r\n\
Content-Length: 11\r\n\
Connection: close\r\n\
\r\n\
{\"ok\":true}";

/// What a client that asks before it sends is told.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How the answer to a visitor begins whose link leads somewhere; where follows.
pub(crate) const FOUND: &[u8] = b"HTTP/1.1 302 Found\r\nLocation: ";

/// The status of [`FOUND`].
pub(crate) const FOUND_STATUS: u16 = 302;

/// The status of [`ACCEPTED`].
pub(crate) const ACCEPTED_STATUS: u16 = 202;

/// The answer to an accepted request.
pub(crate) fn accepted(after: After) -> &'static [u8] {
    match after {
        After::Keep => ACCEPTED,
        After::Close => ACCEPTED_LAST,
    }
}

/// How the answer to a visitor ends, behind the location: written down once, because of what
/// a redirect costs.
pub(crate) struct FoundEnds {
    keep: Vec<u8>,
    close: Vec<u8>,
}

impl FoundEnds {
    /// Those with this `Referrer-Policy`.
    pub(crate) fn new(referrer_policy: &str) -> FoundEnds {
        let [keep, close] = ["keep-alive", "close"].map(|connection| {
            let lines = [
                "",
                &format!("Referrer-Policy: {referrer_policy}"),
                &format!("Cache-Control: {REDIRECT_CACHING}"),
                "Content-Length: 0",
                &format!("Connection: {connection}"),
                "",
                "",
            ];
            lines.join("\r\n").into_bytes()
        });
        FoundEnds { keep, close }
    }

    /// The one that says whether the connection goes on.
    pub(crate) fn of(&self, after: After) -> &[u8] {
        match after {
            After::Keep => &self.keep,
            After::Close => &self.close,
        }
    }
}

/// Appends a problem as an answer.
pub(crate) fn push_problem(out: &mut Vec<u8>, problem: &Problem, after: After) {
    problem.push_answer(
        out,
        match after {
            After::Keep => "keep-alive",
            After::Close => "close",
        },
    );
}
