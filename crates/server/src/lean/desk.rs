//! What all sessions of one thread share: who takes events in, the limits, the
//! answers on their way out, buffers to use again, and what is to be counted.

use super::head::Limits;
use super::repeat::Repeat;
use super::seam::Ingest;
use crate::http::problem::{self, Problem};
use crate::stats::Stats;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bodies up to this size are not charged, as in `http/body.rs`.
const FREE_BYTES: usize = 16 << 10;
/// Buffers kept for the next request that needs one, and the largest of them.
const SPARE_BUFFERS: usize = 64;
/// No larger than what is not charged: a connection may hold one for long.
const SPARE_BYTES: usize = FREE_BYTES;

/// What all sessions of one thread share.
pub(crate) struct Desk<I: Ingest> {
    /// Takes events in.
    pub(crate) ingest: I,
    /// Limits of a head.
    pub(crate) limits: Limits,
    /// Memory for bodies being received.
    pub(crate) memory: BodyMemory,
    /// The last head, likely to come again.
    pub(crate) repeat: Repeat,
    /// Answers of the session at work, not yet handed to its socket.
    pub(crate) out: Vec<u8>,
    /// Answers to be counted.
    pub(crate) tally: Tally,
    /// Buffers to use again.
    pub(crate) spare: Spare,
    /// Targets that had no room when last tried. Requests for them wait in line.
    pub(crate) full: Vec<I::Target>,
    /// Whether the server stops.
    pub(crate) stopping: bool,
    /// Monotonic time of this turn of the loop, in µs.
    pub(crate) now_us: u64,
}

impl<I: Ingest> Desk<I> {
    /// A desk at which nothing has happened yet.
    pub(crate) fn new(ingest: I, limits: Limits, memory: BodyMemory) -> Desk<I> {
        Desk {
            ingest,
            limits,
            memory,
            repeat: Repeat::new(),
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

/// When a request came, and its path if requests are logged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) at_us: u64,
    pub(crate) path: Option<Box<str>>,
}

/// An answer to be counted.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) asked: Asked,
}

/// Answers to be counted once they are sent.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Requests accepted in the same turn of the loop in which they came.
    pub(crate) prompt: u32,
    /// All others.
    pub(crate) others: Vec<Answered>,
    /// Whether requests are logged, so that their paths must be kept.
    pub(crate) paths: bool,
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

/// The memory that bodies being received may take, shared by all threads.
#[derive(Clone)]
pub(crate) struct BodyMemory {
    stats: Arc<Stats>,
    limit: usize,
}

impl BodyMemory {
    /// At most `limit` bytes, counted in `stats.body_bytes`.
    pub(crate) fn new(stats: &Arc<Stats>, limit: usize) -> BodyMemory {
        BodyMemory { stats: Arc::clone(stats), limit }
    }
}

/// What one body is charged. Given back when dropped.
#[derive(Default)]
pub(crate) struct Charge(Option<(BodyMemory, usize)>);

impl Charge {
    /// Counts the body's memory as `bytes`.
    ///
    /// # Errors
    /// 503: all bodies together would take more than they may. A retry helps.
    pub(crate) fn raise(&mut self, memory: &BodyMemory, bytes: usize) -> Result<(), Box<Problem>> {
        let charged = self.0.as_ref().map_or(0, |(_, charged)| *charged);
        if bytes <= FREE_BYTES.max(charged) {
            return Ok(());
        }
        let more = (bytes - charged) as i64;
        let counter = &memory.stats.body_bytes;
        if counter.fetch_add(more, Relaxed) + more > memory.limit as i64 {
            counter.fetch_sub(more, Relaxed);
            return Err(problem::OVERLOADED
                .because("bodies being received take all the memory they may")
                .limit(memory.limit as u64));
        }
        self.0.get_or_insert_with(|| (memory.clone(), 0)).1 = bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some((memory, charged)) = &self.0 {
            memory.stats.body_bytes.fetch_sub(*charged as i64, Relaxed);
        }
    }
}
