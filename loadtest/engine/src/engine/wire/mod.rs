//! The protocols: requests to bytes and bytes to answers, without sockets.
//!
//! A wire belongs to one connection and has one or more *places* (one for
//! HTTP/1.1, a stream each for HTTP/2), each with at most one request under way.

mod http1;
mod http2;
#[cfg(any(test, feature = "fuzzing"))]
mod replay;

pub(crate) use http1::Http1;
pub(crate) use http2::Http2;
#[cfg(any(test, feature = "fuzzing"))]
pub use replay::{AnswersSeen, answers_of};

use crate::result::ErrorKind;
use crate::workload::{Answer, Needs, Request};

/// The largest body kept for a workload that wants to see it.
pub(crate) const LARGEST_KEPT_BYTES: usize = 64 << 20;

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// All input was used (or kept); more is needed.
    More,
    /// `used` bytes were used; the answer at `place` has begun. Told only with phases.
    Begun {
        /// Bytes of the input that were used.
        used: usize,
        /// Where.
        place: u32,
    },
    /// `used` bytes were used; the answer at `place` is complete and [`Wire::answer`] shows it.
    Answered {
        /// Bytes of the input that were used.
        used: usize,
        /// Where.
        place: u32,
    },
    /// `used` bytes were used; the request at `place` will get no answer, the connection goes on.
    Lost {
        /// Bytes of the input that were used.
        used: usize,
        /// Where.
        place: u32,
        /// Why.
        kind: ErrorKind,
    },
    /// `used` bytes were used; the server says that it did not take the request at `place`, and
    /// ends the connection in order.
    Unprocessed {
        /// Bytes of the input that were used.
        used: usize,
        /// Where.
        place: u32,
    },
}

/// What must be known to lay out a request besides itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout<'a> {
    /// `Host` or `:authority`.
    pub(crate) authority: &'a str,
    /// `http` or `https`.
    pub(crate) scheme: &'a str,
    /// Whether the connection is to be kept open.
    pub(crate) keep_alive: bool,
}

/// What is known of the server from its answers, for the report.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerFacts {
    /// The first `Server` field.
    pub(crate) server: Option<String>,
    /// Answers that came from a cache.
    pub(crate) cache_hits: u64,
}

/// What a worker remembers of answer heads, for whichever protocol it speaks.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    http1: http1::HeadCache,
    http2: http2::BlockCache,
}

/// The protocol state of one connection.
pub(crate) enum Wire {
    /// HTTP/1.1.
    Http1(Http1),
    /// HTTP/2.
    Http2(Box<Http2>),
}

impl Wire {
    /// The connection is open: appends what must be said first.
    pub(crate) fn open(&mut self, out: &mut Vec<u8>) {
        match self {
            Wire::Http1(_) => {}
            Wire::Http2(wire) => wire.open(out),
        }
    }

    /// Gives up the request at `place`. Returns whether the connection can go on.
    pub(crate) fn cancel(&mut self, place: u32, out: &mut Vec<u8>) -> bool {
        match self {
            Wire::Http1(_) => false,
            Wire::Http2(wire) => wire.cancel(place, out),
        }
    }

    /// Appends the request to `out`. The place must be free.
    pub(crate) fn send(
        &mut self,
        place: u32,
        request: &Request<'_>,
        needs: Needs,
        layout: Layout<'_>,
        out: &mut Vec<u8>,
    ) {
        match self {
            Wire::Http1(wire) => wire.send(place, request, needs, layout, out),
            Wire::Http2(wire) => wire.send(place, request, needs, layout, out),
        }
    }

    /// Reads on; what must be sent in return (settings, windows) is appended to `out`.
    /// After an [`Advance::Answered`] that used the whole input there is nothing more to tell.
    ///
    /// # Errors
    /// The connection is of no further use; every request on it is lost for this reason.
    pub(crate) fn advance(
        &mut self,
        input: &[u8],
        heads: &mut Heads,
        seen: &mut ServerFacts,
        out: &mut Vec<u8>,
    ) -> Result<Advance, ErrorKind> {
        match self {
            Wire::Http1(wire) => wire.advance(input, &mut heads.http1, seen),
            Wire::Http2(wire) => wire.advance(input, &mut heads.http2, seen, out),
        }
    }

    /// Whether a request is under way, alone, and not a byte of its answer has come.
    pub(crate) fn awaits_first_byte(&self) -> bool {
        match self {
            Wire::Http1(wire) => wire.awaits_first_byte(),
            Wire::Http2(_) => false,
        }
    }

    /// The peer closed its side. `Ok(place)` if that completes the answer there.
    ///
    /// # Errors
    /// Why the requests under way are lost.
    pub(crate) fn closed(&mut self) -> Result<u32, ErrorKind> {
        match self {
            Wire::Http1(wire) => wire.closed(),
            Wire::Http2(wire) => wire.closed(),
        }
    }

    /// The answer that [`Wire::advance`] just completed.
    pub(crate) fn answer(&self, place: u32, endpoint: u16) -> Answer<'_> {
        match self {
            Wire::Http1(wire) => wire.answer(place, endpoint),
            Wire::Http2(wire) => wire.answer(place, endpoint),
        }
    }

    /// Whether another request may follow on this connection after the answer just completed.
    pub(crate) fn reusable(&self) -> bool {
        match self {
            Wire::Http1(wire) => wire.reusable(),
            Wire::Http2(wire) => wire.reusable(),
        }
    }

    /// Whether the server has said that it wants no further requests on this connection.
    pub(crate) fn going_away(&self) -> bool {
        match self {
            Wire::Http1(_) => false,
            Wire::Http2(wire) => wire.going_away(),
        }
    }

    /// Why requests were lost, in words, where there is more to say than the kind of error.
    pub(crate) fn why(&self) -> Option<String> {
        match self {
            Wire::Http1(_) => None,
            Wire::Http2(wire) => wire.why(),
        }
    }
}
