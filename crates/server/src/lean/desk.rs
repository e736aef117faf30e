//! What all sessions of one thread share: who serves them, the limits, the
//! answers on their way out, buffers to use again, and what is to be counted.

use super::answer::FoundEnds;
use super::head::Limits;
use super::logged::Logged;
use super::repeat::{Repeat, RepeatVisit};
use super::seam::Serves;
use crate::http::body_memory::{BodyMemory, FREE_BYTES};
use crate::trouble::Cause;
use crate::wire::problem::Problem;

/// Buffers kept for the next request that needs one, and the largest of them.
const SPARE_BUFFERS: usize = 64;
/// No larger than what is not charged: a connection may hold one for long.
const SPARE_BYTES: usize = FREE_BYTES;

/// What all sessions of one thread share.
pub(crate) struct Desk<I: Serves> {
    /// Takes events in and knows where links lead.
    pub(crate) serving: I,
    /// Limits of a head.
    pub(crate) limits: Limits,
    /// Memory for bodies being received.
    pub(crate) memory: BodyMemory,
    /// The last head of an ingest request, likely to come again.
    pub(crate) repeat: Repeat<I::Pass>,
    /// The last head of a request for a link.
    pub(crate) visited: RepeatVisit,
    /// How redirects end.
    pub(crate) found_ends: FoundEnds,
    /// Answers of the session at work, not yet handed to its socket.
    pub(crate) out: Vec<u8>,
    /// Answers to be counted.
    pub(crate) tally: Tally,
    /// Buffers to use again.
    pub(crate) spare: Spare,
    /// Targets that had no room when last tried. Requests for them wait in line.
    pub(crate) full: Vec<I::Target>,
    /// Whether requests and bytes are limited.
    pub(crate) limited: bool,
    /// Whether the server stops.
    pub(crate) stopping: bool,
    /// Monotonic time of this turn of the loop, in µs.
    pub(crate) now_us: u64,
}

impl<I: Serves> Desk<I> {
    /// A desk at which nothing has happened yet.
    pub(crate) fn new(
        serving: I,
        limits: Limits,
        memory: BodyMemory,
        found_ends: FoundEnds,
    ) -> Desk<I> {
        Desk {
            limited: serving.counts_requests(),
            serving,
            limits,
            memory,
            repeat: Repeat::new(),
            visited: RepeatVisit::new(),
            found_ends,
            out: Vec::new(),
            tally: Tally::default(),
            spare: Spare(Vec::new()),
            full: Vec::new(),
            stopping: false,
            now_us: 0,
        }
    }

    /// Whether requests for `target` wait in line.
    pub(crate) fn is_full(&self, target: &I::Target) -> bool {
        self.full.iter().any(|full| I::same(full, target))
    }
}

/// When a request came, and what is logged of it if requests are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) at_us: u64,
    pub(crate) logged: Option<Box<Logged>>,
}

/// What requests are counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// `POST /e`, and what cannot be understood.
    Ingest,
    /// `GET /{code}`.
    Link,
}

/// An answer to be counted.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) family: Family,
    pub(crate) status: u16,
    /// Why, if it is 500 or above.
    pub(crate) cause: Option<Box<Cause>>,
    pub(crate) asked: Asked,
}

/// Answers to be counted once they are sent.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Requests accepted in the same turn of the loop in which they came.
    pub(crate) accepted: u32,
    /// Visitors told where a link leads, always in the same turn.
    pub(crate) found: u32,
    /// All others.
    pub(crate) others: Vec<Answered>,
    /// Whether requests are logged, so that more than their number must be kept.
    pub(crate) logs: bool,
}

impl Tally {
    /// Counts an answer.
    pub(crate) fn answered(&mut self, family: Family, status: u16, asked: Asked) {
        self.others.push(Answered { family, status, cause: None, asked });
    }

    /// Counts an answer that is a problem.
    pub(crate) fn refused(&mut self, family: Family, problem: &Problem, asked: Asked) {
        let (status, cause) = (problem.kind.status, Cause::of(problem));
        self.others.push(Answered { family, status, cause, asked });
    }
}

/// Buffers to use again.
pub(crate) struct Spare(Vec<Vec<u8>>);

impl Spare {
    /// An empty buffer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let size = buffer.capacity();
        if size > 0 && size <= SPARE_BYTES && self.0.len() < SPARE_BUFFERS {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}
