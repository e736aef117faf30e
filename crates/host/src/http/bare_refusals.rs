//! Refusals that hyper writes by itself, before it knows a request: of a head that is not HTTP/1.1,
//! or too large. It gives them no content; here they get the problem document that every refusal
//! has.

use crate::wire::problem::{self, Problem};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The end of a head.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// How hyper writes that there is no content.
const NO_CONTENT: &str = "content-length: 0\r\n";
/// The longest head that hyper writes for a refusal of its own, in bytes.
const MAX_HEAD_BYTES: usize = 256;

/// The writer of one connection, as far as refusals concern it.
#[derive(Debug, Default)]
pub(super) struct BareRefusals {
    /// What is written in place of what hyper wrote, and how much of it has been.
    instead: Vec<u8>,
    written: usize,
}

impl BareRefusals {
    /// Whether these bytes, the last of a connection, end with a refusal or one is being written.
    pub(super) fn is_concerned(&self, bytes: &[u8]) -> bool {
        // Nearly all answers end with their content.
        !self.instead.is_empty() || (bytes.ends_with(HEAD_END) && split(bytes).is_some())
    }

    /// Writes bytes that end with a refusal, with its problem; all of them then count as written.
    pub(super) fn poll_write<W: hyper::rt::Write + Unpin>(
        &mut self,
        io: &mut W,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.instead.is_empty() {
            let (before, refusal) = split(bytes).unwrap_or((bytes, Vec::new()));
            self.instead = [before, refusal.as_slice()].concat();
        }
        while self.written < self.instead.len() {
            let rest = &self.instead[self.written..];
            match ready!(Pin::new(&mut *io).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        *self = BareRefusals::default();
        Poll::Ready(Ok(bytes.len()))
    }
}

/// Splits off a refusal without content at the end, and completes it.
///
/// No answer of ours ends like one: their text holds no line ends but those between tokens of JSON.
fn split(bytes: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let from = bytes.len().saturating_sub(MAX_HEAD_BYTES);
    let at = from + bytes[from..].windows(7).rposition(|word| word == b"HTTP/1.")?;
    let head = std::str::from_utf8(&bytes[at..]).ok()?;
    let status: u16 = head.get(9..12)?.parse().ok()?;
    if head.contains("content-type") || !head.contains("connection: close\r\n") {
        return None;
    }
    let (start, end) = head.split_once(NO_CONTENT)?;
    let document = problem_of(status)?.to_json();
    let kind = "content-type: application/problem+json";
    let mut whole = format!("{start}{kind}\r\ncontent-length: {}\r\n{end}", document.len());
    whole.push_str(std::str::from_utf8(&document).ok()?);
    Some((&bytes[..at], whole.into_bytes()))
}

fn problem_of(status: u16) -> Option<Box<Problem>> {
    Some(match status {
        400 => problem::BAD_REQUEST.because(
            "the head of the request is not HTTP/1.1; has a header a control character in its value, \
             or another than letters, digits and hyphens in its name?",
        ),
        414 => problem::URL_TOO_LONG.because("the path and query of the request are too long"),
        431 => problem::HEADERS_TOO_LARGE.because("the head of the request is too large"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &str = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\
                        date: Sat, 28 Nov 2026 19:33:33 GMT\r\n\r\n";

    #[test]
    fn a_refusal_without_content_gets_its_problem() {
        let before = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let bytes = format!("{before}{BARE}");
        let (rest, refusal) = split(bytes.as_bytes()).unwrap();
        assert_eq!(rest, before.as_bytes());
        let refusal = String::from_utf8(refusal).unwrap();
        let (head, document) = refusal.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n"), "{head}");
        assert!(head.contains("content-type: application/problem+json\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", document.len())), "{head}");
        assert!(document.starts_with("{\"type\":\"/problems/bad-request\""), "{document}");
    }

    #[test]
    fn answers_of_ours_are_left_alone() {
        for answer in [
            "HTTP/1.1 204 No Content\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: a/b\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
            "data\r\n\r\n",
        ] {
            assert!(!BareRefusals::default().is_concerned(answer.as_bytes()), "{answer:?}");
        }
        assert!(!BareRefusals::default().is_concerned(&BARE.as_bytes()[..BARE.len() - 2]));
    }
}
