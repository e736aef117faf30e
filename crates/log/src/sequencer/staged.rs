//! What is decided and not yet durable: positions, the batches that hold them, the requests that
//! wait for them, and the ends of the segments they go to.
//!
//! Positions in order, each in exactly one place:
//!
//! ```text
//! 1 … head │ in_flight[0] │ … │ queue[0] │ queue[1] │ … │ next
//! durable  │ at the journal   │ staged, in the order of positions
//! ```
//!
//! A request waits for a *position*: its own last one, that of the event that refuses it, or that
//! of its first attempt. So it is told what becomes of that event, as soon as it is known, whatever
//! becomes of the batches behind it.
//!
//! A setback drops everything staged at once: the index entries are taken back
//! ([`index/cut.rs`](crate::index)), positions are given out again, and the number of setbacks
//! grows. A decision made under another number rests on something that is not there any more.

use super::gather::{self, Gathering, InFlight, Waiter};
use crate::batch::BATCH_HEADER_BYTES;
use crate::index::{ActiveWriter, SegmentIndex};
use crate::journal::JournalBatch;
use crate::plants::{Plant, planted};
use crate::record;
use crate::role::Role;
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::segments::{Run, Segments};
use crate::shared::rule::AcceptedBatch;
use crate::storage::Storage;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use wellspring_types::Position;

/// Buffers kept for the next batches; larger ones are given back to the allocator.
const SPARE_BUFFERS: usize = 2;
const SPARE_BYTES: usize = 4 << 20;

/// What of [`Staging`] is read without its lock; written with it held.
#[derive(Debug)]
pub(crate) struct StagedMark {
    /// How often what was staged has come to nothing. Stored after the index has been cut: a reader
    /// that loads a number before it looks at what is staged, and finds the same number with the
    /// lock held, has seen nothing of a cut.
    setbacks: AtomicU64,
    /// The next position. Stored after the index entries of those before it.
    next: AtomicU64,
    /// The last batch found no room.
    full: AtomicBool,
    /// This node judges appends.
    leads: AtomicBool,
}

/// Everything that is decided but not yet durable.
pub(crate) struct Staging {
    /// The next position.
    pub(crate) next: Position,
    /// Recorded times never decrease along positions.
    pub(crate) recorded_at_us: u64,
    pub(crate) queue: VecDeque<Gathering>,
    /// The batches that the journal has, oldest first.
    pub(crate) in_flight: VecDeque<InFlight>,
    /// Encoded bytes in `queue` and in the batches the journal has.
    pub(crate) staged_bytes: usize,
    /// Of these, bytes from batchers.
    pub(crate) ingest_bytes: usize,
    /// The segment that what comes next is staged into.
    pub(crate) tail: SegmentTail,
    /// Segments before it until a batch of one after them is durable: a setback may lead back
    /// there.
    pub(crate) earlier: Vec<SegmentTail>,
    /// What this node is to the log. Only a leader stages.
    pub(crate) role: Role,
    /// Why no more appends are taken, if so.
    pub(crate) closed: Option<String>,
    /// Buffers of committed batches, to be used again.
    pub(crate) spare: Vec<Vec<u8>>,
}

/// A segment as far as it is staged.
pub(crate) struct SegmentTail {
    pub(crate) base: Position,
    pub(crate) writer: ActiveWriter,
    /// Offset in the segment after everything staged.
    pub(crate) end: u64,
}

/// What staging needs to know of the log to begin a batch or a segment.
pub(crate) struct StagingContext<'a> {
    pub(crate) storage: &'a Arc<dyn Storage>,
    pub(crate) segments: &'a Segments,
    pub(crate) segment_bytes: u32,
    pub(crate) active_index_bytes: usize,
    /// Requests go on joining a batch until it has this many bytes.
    pub(crate) batch_bytes: usize,
    /// Each request makes a batch of its own: of those behind a full disk, some may still fit.
    pub(crate) small_batches: bool,
}

impl StagedMark {
    pub(crate) fn new(next: Position, leads: bool) -> StagedMark {
        StagedMark {
            setbacks: AtomicU64::new(0),
            next: AtomicU64::new(next),
            full: AtomicBool::new(false),
            leads: AtomicBool::new(leads),
        }
    }

    /// Whether this node judges appends. What is judged counts only if it still does with the
    /// staging lock held.
    pub(crate) fn leads(&self) -> bool {
        self.leads.load(Acquire)
    }

    /// With the staging lock held.
    pub(super) fn set_leads(&self, leads: bool) {
        self.leads.store(leads, Release);
    }

    pub(crate) fn setbacks(&self) -> u64 {
        self.setbacks.load(Acquire)
    }

    pub(crate) fn next(&self) -> Position {
        self.next.load(Acquire)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Relaxed)
    }

    pub(crate) fn set_full(&self, full: bool) {
        self.full.store(full, Relaxed);
    }

    /// With the staging lock held: everything before `next` is in the index.
    pub(super) fn staged(&self, next: Position) {
        debug_assert!(next >= self.next.load(Relaxed));
        self.next.store(next, Release);
    }

    /// With the staging lock held, after everything from `next` on has been taken back.
    pub(super) fn set_back(&self, next: Position) {
        self.next.store(next, Release);
        self.setbacks.fetch_add(1, Release);
    }
}

impl Staging {
    /// Makes `waiter` wait for a staged position. Handed back if the position is durable already.
    pub(super) fn attach(&mut self, position: Position, waiter: Waiter) -> Result<(), Waiter> {
        assert!(position < self.next, "position {position} is waited for, {} is next", self.next);
        let at = self.in_flight.partition_point(|batch| batch.last < position);
        if let Some(batch) = self.in_flight.get_mut(at).filter(|batch| batch.first <= position) {
            batch.waiters.push(waiter);
            return Ok(());
        }
        let at = self.queue.partition_point(|gathering| gathering.batch.last() < position);
        match self.queue.get_mut(at).filter(|gathering| gathering.batch.first <= position) {
            Some(gathering) => {
                gathering.waiters.push(waiter);
                Ok(())
            }
            None => Err(waiter),
        }
    }

    /// Leaves, at the back of the queue, a batch that the next request of `bytes` may join.
    pub(super) fn make_room(&mut self, context: &StagingContext<'_>, bytes: usize) {
        let header = if self.queue.is_empty() { BATCH_HEADER_BYTES } else { 0 };
        let end = self.tail.end + (header + bytes) as u64;
        let fresh = self.next == self.tail.base;
        let full = end > u64::from(context.segment_bytes)
            || self.tail.writer.is_full(context.active_index_bytes);
        if full && !fresh {
            self.begin_segment(context);
        }
        let joins = self.queue.back().is_some_and(|gathering| {
            gathering.batch.segment_base == self.tail.base
                && gathering.batch.bytes.len() + bytes <= context.batch_bytes
                && !context.small_batches
        });
        if !joins {
            let spare = self.spare.pop().unwrap_or_default();
            let offset = self.tail.end as u32;
            self.queue.push_back(Gathering::new(self.tail.base, offset, self.next, spare));
            self.tail.end += BATCH_HEADER_BYTES as u64;
        }
    }

    fn begin_segment(&mut self, context: &StagingContext<'_>) {
        let writer = ActiveWriter::new(self.next);
        let index = SegmentIndex::Active(Arc::clone(writer.index()));
        let storage = Arc::clone(context.storage);
        context.segments.push(Arc::new(Run::new(storage, self.next, None, index)));
        let end = SEGMENT_HEADER_BYTES as u64;
        let tail = SegmentTail { base: self.next, writer, end };
        self.earlier.push(std::mem::replace(&mut self.tail, tail));
    }

    /// Waits with the batch that gathers: for the position staged last.
    pub(super) fn wait(&mut self, waiter: Waiter) {
        self.queue.back_mut().expect("something was just staged").waiters.push(waiter);
    }

    /// As [`wait`](Self::wait), for records from a batcher.
    pub(super) fn wait_ingested(&mut self, waiter: Waiter, records: &[u8]) {
        let batch = self.queue.back_mut().expect("something was just staged");
        batch.ingest_bytes += records.len();
        batch.waiters.push(waiter);
        self.ingest_bytes += records.len();
        assert!(self.ingest_bytes <= self.staged_bytes);
    }

    /// Indexes a batch of another node, which follows everything there is, and lays it out for its
    /// segment.
    pub(super) fn adopt(
        &mut self,
        context: &StagingContext<'_>,
        accepted: &AcceptedBatch,
    ) -> JournalBatch {
        let foreign = &accepted.batch;
        assert!(self.queue.is_empty() && self.in_flight.is_empty(), "nothing else is staged");
        assert_eq!(foreign.first, self.next, "batches of others are dense");
        if (foreign.begins_segment || planted(Plant::OtherCut)) && self.next != self.tail.base {
            self.begin_segment(context);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.resize(BATCH_HEADER_BYTES, 0);
        accepted.body_slices().for_each(|piece| bytes.extend_from_slice(piece));
        let batch = JournalBatch {
            segment_base: self.tail.base,
            offset: self.tail.end as u32,
            first: foreign.first,
            count: foreign.count,
            recorded_at_us: foreign.recorded_at_us,
            bytes,
        };
        self.tail.end += BATCH_HEADER_BYTES as u64;
        for record in gather::records(&batch) {
            self.tail.writer.push(self.tail.end as u32, &record);
            self.tail.end += record.byte_len() as u64;
            self.next += 1;
        }
        assert_eq!(batch.last() + 1, self.next, "as many records as the batch says");
        self.recorded_at_us = self.recorded_at_us.max(foreign.recorded_at_us);
        batch
    }

    /// Stamps records into the last batch and indexes them.
    pub(super) fn push(&mut self, records: &[u8], count: u32, now_us: u64) {
        let not_before = if planted(Plant::TimeGoesBack) { 0 } else { self.recorded_at_us };
        self.recorded_at_us = not_before.max(now_us);
        let batch = &mut self.queue.back_mut().expect("make_room left one").batch;
        let mut at = batch.bytes.len();
        batch.bytes.extend_from_slice(records);
        for record in record::records(records) {
            let len = record.byte_len();
            record::stamp(&mut batch.bytes[at..at + len], self.next, self.recorded_at_us);
            self.tail.writer.push(self.tail.end as u32, &record);
            at += len;
            self.tail.end += len as u64;
            self.next += 1;
        }
        batch.count += count;
        batch.recorded_at_us = self.recorded_at_us;
        self.staged_bytes += records.len();
        assert_eq!(batch.last() + 1, self.next, "positions are dense within a batch");
    }

    /// Keeps the buffer of a committed batch for one to come.
    pub(super) fn keep_buffer(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES && self.spare.len() < SPARE_BUFFERS {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// A batch of the segment with this base is durable: no setback leads to one before it.
    pub(super) fn forget_before(&mut self, base: Position) {
        if !self.earlier.is_empty() {
            self.earlier.retain(|tail| tail.base >= base);
        }
    }

    /// Takes back what stands in `dropped`: everything staged behind the batches in flight, which
    /// stay, or behind `durable` if there is none. Costs what was staged.
    pub(super) fn take_back(
        &mut self,
        segments: &Segments,
        durable: StagedEnd,
        dropped: &[JournalBatch],
    ) {
        let to = self.in_flight.back().map_or(durable, |batch| StagedEnd {
            segment_base: batch.segment_base,
            end: batch.end,
            next: batch.last + 1,
        });
        while self.tail.base != to.segment_base {
            // Segments are staged before the journal makes their files, and kept until one after
            // them holds a durable batch.
            self.tail = self.earlier.pop().expect("the journal's segment is among the staged");
        }
        segments.truncate_after(to.segment_base);
        let here = dropped.iter().filter(|batch| batch.segment_base == to.segment_base);
        let rel = (to.next - to.segment_base) as u32;
        self.tail.writer.cut(rel, here.flat_map(gather::records));
        self.tail.end = to.end;
        self.next = to.next;
        self.staged_bytes = self.in_flight.iter().map(|batch| batch.body_bytes).sum();
        self.ingest_bytes = self.in_flight.iter().map(|batch| batch.ingest_bytes).sum();
    }
}

/// Where what is staged goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagedEnd {
    pub(super) segment_base: Position,
    /// Offset in that segment.
    pub(super) end: u64,
    pub(super) next: Position,
}
