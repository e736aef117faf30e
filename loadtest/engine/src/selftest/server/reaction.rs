//! What a server of known behaviour does with one request.

use std::borrow::Cow;
use std::collections::VecDeque;

/// A request as the server saw it.
#[derive(Clone, Copy, Debug)]
pub(in crate::selftest) struct ReceivedRequest {
    /// How many requests this server had read before, over all connections.
    pub(in crate::selftest) number: u64,
    /// The number in its path, which the client chose: `/17`.
    pub(in crate::selftest) tag: u64,
}

/// Bytes to be written some time after what came before them.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) after_ns: u64,
    pub(super) bytes: Cow<'static, [u8]>,
}

/// What happens to the connection when everything has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It serves the next request.
    KeepOpen,
    /// It is closed.
    Close,
    /// It is reset (RST instead of FIN).
    Reset,
    /// Nothing, for ever: the answer is never finished.
    Silence,
}

/// What the server as a whole does before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interlude {
    None,
    /// It reads and writes nothing for so long, in nanoseconds, then goes on.
    Stall(u64),
    /// It reads and writes nothing ever again, and closes nothing.
    Freeze,
    /// It closes every connection and does not listen for so long, in nanoseconds.
    Vanish(u64),
}

/// What a server does with one request.
#[derive(Clone, Debug)]
pub(in crate::selftest) struct Reaction {
    pub(super) interlude: Interlude,
    pub(super) pieces: VecDeque<Piece>,
    pub(super) end: End,
    /// Whether the pieces are one whole answer that a client may call a success …
    pub(super) whole: bool,
    /// … but for so many at the end that are more than it.
    pub(super) surplus: usize,
}

impl Reaction {
    /// A whole answer: `200` and the request's number as body, which the client checks.
    pub(in crate::selftest) fn answer(asked: &ReceivedRequest) -> Self {
        Self::status(asked, 200)
    }

    /// A whole answer with this status.
    pub(in crate::selftest) fn status(asked: &ReceivedRequest, status: u16) -> Self {
        let body = asked.tag.to_string();
        let head = format!("HTTP/1.1 {status} As Told\r\nContent-Length: {}\r\n\r\n", body.len());
        Self::whole(head + &body)
    }

    /// These bytes, which are a whole answer.
    pub(in crate::selftest) fn whole(bytes: impl Into<Vec<u8>>) -> Self {
        Reaction { whole: true, ..Self::bytes(bytes) }
    }

    /// These bytes, whatever they are; no client may call them a success.
    pub(in crate::selftest) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        let piece = Piece { after_ns: 0, bytes: Cow::Owned(bytes.into()) };
        Reaction { pieces: VecDeque::from([piece]), ..Self::nothing() }
    }

    /// No answer, and the connection stays open.
    pub(in crate::selftest) fn silence() -> Self {
        Reaction { end: End::Silence, ..Self::nothing() }
    }

    /// No byte.
    pub(in crate::selftest) fn nothing() -> Self {
        Reaction {
            interlude: Interlude::None,
            pieces: VecDeque::new(),
            end: End::KeepOpen,
            whole: false,
            surplus: 0,
        }
    }

    /// The server answers nothing from here on, this request included.
    pub(in crate::selftest) fn freeze() -> Self {
        Reaction { interlude: Interlude::Freeze, ..Self::silence() }
    }

    /// The server goes away for `ns` with everything it had open, and then listens again.
    pub(in crate::selftest) fn vanish(ns: u64) -> Self {
        Reaction { interlude: Interlude::Vanish(ns), ..Self::silence() }
    }

    /// The whole server first does nothing for `ns`.
    pub(in crate::selftest) fn after_stall(mut self, ns: u64) -> Self {
        self.interlude = Interlude::Stall(ns);
        self
    }

    /// The answer begins `ns` after the request was read; other connections are served meanwhile.
    pub(in crate::selftest) fn after(mut self, ns: u64) -> Self {
        if let Some(first) = self.pieces.front_mut() {
            first.after_ns = ns;
        }
        self
    }

    /// Cuts the bytes: the lengths of the parts come from `length`, the time before each
    /// but the first is `gap_ns`.
    pub(in crate::selftest) fn in_parts(
        mut self,
        gap_ns: u64,
        mut length: impl FnMut() -> usize,
    ) -> Self {
        let first_after_ns = self.pieces.front().map_or(0, |piece| piece.after_ns);
        let bytes: Vec<u8> =
            self.pieces.iter().flat_map(|piece| piece.bytes.iter().copied()).collect();
        self.pieces.clear();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (part, more) = rest.split_at(length().clamp(1, rest.len()));
            let after_ns = if self.pieces.is_empty() { first_after_ns } else { gap_ns };
            self.pieces.push_back(Piece { after_ns, bytes: Cow::Owned(part.to_vec()) });
            rest = more;
        }
        self
    }

    /// More bytes than the answer has, `ns` after it.
    pub(in crate::selftest) fn then(mut self, ns: u64, bytes: impl Into<Vec<u8>>) -> Self {
        self.pieces.push_back(Piece { after_ns: ns, bytes: Cow::Owned(bytes.into()) });
        self.surplus += 1;
        self
    }

    /// Closes the connection afterwards.
    pub(in crate::selftest) fn close(mut self) -> Self {
        self.end = End::Close;
        self
    }

    /// Resets the connection afterwards.
    pub(in crate::selftest) fn reset(mut self) -> Self {
        self.end = End::Reset;
        self
    }
}
