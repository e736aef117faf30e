//! A wire fed with bytes from nowhere: for fuzzing.

use super::{Advance, Heads, Http1, Http2, Layout, ServerFacts, Wire};
use crate::plan::Protocol;
use crate::result::ErrorKind;
use crate::workload::{Needs, Request};

/// What came of replayed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswersSeen {
    /// The statuses of the complete answers, in order.
    pub statuses: Vec<u16>,
    /// Why reading ended before the bytes did.
    pub error: Option<ErrorKind>,
}

/// Reads `bytes`, in pieces of at most `piece`, as what a server says on one connection.
#[must_use]
pub fn answers_of(bytes: &[u8], piece: usize, protocol: Protocol) -> AnswersSeen {
    let (mut wire, places) = match protocol {
        Protocol::Http1 => (Wire::Http1(Http1::new(true)), 1),
        Protocol::Http2 => (Wire::Http2(Box::new(Http2::new(4, true))), 4),
    };
    let (mut heads, mut seen, mut out) = (Heads::default(), ServerFacts::default(), Vec::new());
    let needs = Needs { head: true, body: true };
    let request =
        Request { endpoint: 0, fixed: None, method: "GET", path: "/", headers: &[], body: b"" };
    let layout = Layout { authority: "h", scheme: "http", keep_alive: true };
    wire.open(&mut out);
    for place in 0..places {
        wire.send(place, &request, needs, layout, &mut out);
    }
    let mut statuses = Vec::new();
    for mut rest in bytes.chunks(piece.max(1)) {
        loop {
            out.clear();
            match wire.advance(rest, &mut heads, &mut seen, &mut out) {
                Ok(Advance::More) => break,
                Ok(Advance::Begun { used, .. }) => rest = &rest[used..],
                Ok(Advance::Answered { used, place }) => {
                    rest = &rest[used..];
                    statuses.push(wire.answer(place, 0).status);
                    if !wire.reusable() || wire.going_away() {
                        return AnswersSeen { statuses, error: None };
                    }
                    wire.send(place, &request, needs, layout, &mut out);
                    if rest.is_empty() {
                        break;
                    }
                }
                Ok(Advance::Lost { used, place, .. } | Advance::Unprocessed { used, place }) => {
                    rest = &rest[used..];
                    if !wire.reusable() || wire.going_away() {
                        return AnswersSeen { statuses, error: None };
                    }
                    wire.send(place, &request, needs, layout, &mut out);
                }
                Err(error) => return AnswersSeen { statuses, error: Some(error) },
            }
        }
    }
    AnswersSeen { statuses, error: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_one_after_another_are_seen_however_they_arrive() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let one = answers_of(bytes, 3, Protocol::Http1);
        assert_eq!(one, AnswersSeen { statuses: vec![200], error: None });
        let wrong = answers_of(b"hello there, this is no HTTP\r\n\r\n", 100, Protocol::Http1);
        assert_eq!(wrong.error, Some(ErrorKind::Protocol));
        let frames = b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x05\0\0\0\x01\x88";
        let seen = answers_of(frames, 1, Protocol::Http2);
        assert_eq!(seen, AnswersSeen { statuses: vec![200], error: None });
    }
}
