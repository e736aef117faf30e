//! The staged state, decided but not durable: positions, the batches that hold them, the requests
//! that wait for them, and the ends of their segments.
//!
//! Positions in order, each in exactly one place:
//!
//! ```text
//! 1 … head │ in_flight[0] │ … │ queue[0] │ queue[1] │ … │ next
//! durable  │ at the journal   │ staged, in the order of positions
//! ```
//!
//! A request waits for a *position*: its own last one, that of the event that refuses it, or that
//! of its first attempt. It is answered as soon as that event's outcome is known, regardless of
//! later batches.
//!
//! A setback discards everything staged at once: the index entries are removed
//! ([`index/cut.rs`](crate::index)), positions are assigned again, and the setback count grows. A
//! decision made under an older count may depend on discarded events.

use super::gather::{self, Gathering, InFlight, Waiter};
use crate::index::{ActiveWriter, SegmentIndex};
use crate::journal::JournalBatch;
use crate::plants::{Plant, planted};
use crate::role::Role;
use crate::segments::{Run, Segments};
use crate::shared::rule::AcceptedBatch;
use crate::storage::Storage;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use wellspring_format::batch::BATCH_HEADER_BYTES;
use wellspring_format::record;
use wellspring_format::segment::{Features, SEGMENT_HEADER_BYTES};
use wellspring_types::Position;

/// Number of buffers kept for the next batches; larger buffers are freed.
const SPARE_BUFFERS: usize = 2;
const SPARE_BYTES: usize = 4 << 20;

/// The part of [`Staging`] that is read without its lock; written with the lock held.
#[derive(Debug)]
pub(crate) struct StagedMark {
    /// How often staged events were discarded. Stored after the index has been cut: a reader that
    /// loads the count before it looks at staged events, and finds the same count with the lock
    /// held, has not seen a cut.
    setbacks: AtomicU64,
    /// The next position. Stored after the index entries of earlier ones.
    next: AtomicU64,
    /// Whether the last batch found no room.
    full: AtomicBool,
    /// Whether this node judges appends.
    leads: AtomicBool,
}

/// The staged state.
pub(crate) struct Staging {
    pub(crate) next: Position,
    /// Recording times never decrease along positions.
    pub(crate) recorded_at_us: u64,
    pub(crate) queue: VecDeque<Gathering>,
    /// The batches that the journal has, oldest first.
    pub(crate) in_flight: VecDeque<InFlight>,
    /// Encoded size of `queue` and of the batches that the journal has.
    pub(crate) staged_bytes: usize,
    /// Of this, bytes from batchers.
    pub(crate) ingest_bytes: usize,
    /// The segment that later requests are staged into.
    pub(crate) tail: SegmentTail,
    /// Earlier segments, until a batch of a later one is durable: a setback may lead back to them.
    pub(crate) earlier: Vec<SegmentTail>,
    /// This node's role. Only a leader stages.
    pub(crate) role: Role,
    /// Why no more appends are taken, if so.
    pub(crate) closed: Option<String>,
    /// Buffers of committed batches, for reuse.
    pub(crate) spare: Vec<Vec<u8>>,
}

/// The staged part of a segment.
pub(crate) struct SegmentTail {
    pub(crate) base: Position,
    pub(crate) writer: ActiveWriter,
    /// Offset in the segment after everything staged.
    pub(crate) end: u64,
}

/// The inputs for starting a batch or a segment.
pub(crate) struct StagingContext<'a> {
    pub(crate) storage: &'a Arc<dyn Storage>,
    pub(crate) segments: &'a Segments,
    pub(crate) segment_bytes: u32,
    pub(crate) active_index_bytes: usize,
    /// Requests join a batch until it reaches this size in bytes.
    pub(crate) batch_bytes: usize,
    /// Each request gets its own batch: on a full disk, some may still fit.
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

    /// Whether this node judges appends. A judgement counts only if this still holds under the
    /// staging lock.
    pub(crate) fn leads(&self) -> bool {
        self.leads.load(Acquire)
    }

    /// Requires the staging lock.
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

    /// Requires the staging lock: everything before `next` is in the index.
    pub(super) fn staged(&self, next: Position) {
        debug_assert!(next >= self.next.load(Relaxed), "staging takes back no position");
        self.next.store(next, Release);
    }

    /// Requires the staging lock; called after everything from `next` on has been discarded.
    pub(super) fn set_back(&self, next: Position) {
        debug_assert!(next <= self.next.load(Relaxed), "a setback assigns no positions");
        self.next.store(next, Release);
        self.setbacks.fetch_add(1, Release);
    }
}

impl Staging {
    /// Makes `waiter` wait for a staged position. Returned if the position is durable already.
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

    /// Ensures that the last batch in the queue is one that the next request of `bytes` can join.
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
            let before = self.queue.back().map(|gathering| gathering.batch.last());
            debug_assert!(before.is_none_or(|last| last + 1 == self.next), "batches are dense");
            let spare = self.spare.pop().unwrap_or_default();
            let offset = self.tail.end as u32;
            self.queue.push_back(Gathering::new(self.tail.base, offset, self.next, spare));
            self.tail.end += BATCH_HEADER_BYTES as u64;
        }
    }

    fn begin_segment(&mut self, context: &StagingContext<'_>) {
        debug_assert!(self.next > self.tail.base, "no segment is left without events");
        let writer = ActiveWriter::new(self.next);
        let index = SegmentIndex::Active(Arc::clone(writer.index()));
        let storage = Arc::clone(context.storage);
        context.segments.push(Arc::new(Run::new(storage, self.next, None, index)));
        let end = SEGMENT_HEADER_BYTES as u64;
        let tail = SegmentTail { base: self.next, writer, end };
        self.earlier.push(std::mem::replace(&mut self.tail, tail));
    }

    /// Waits with the gathering batch, for the position staged last.
    pub(super) fn wait(&mut self, waiter: Waiter) {
        self.queue.back_mut().expect("something was just staged").waiters.push(waiter);
    }

    /// As [`wait`](Self::wait), for records from a batcher.
    pub(super) fn wait_ingested(&mut self, waiter: Waiter, records: &[u8]) {
        let batch = self.queue.back_mut().expect("something was just staged");
        batch.ingest_bytes += records.len();
        batch.waiters.push(waiter);
        self.ingest_bytes += records.len();
        assert!(self.ingest_bytes <= self.staged_bytes, "ingested bytes are staged");
    }

    /// Indexes a batch of another node, which follows everything known, and lays it out for its
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
            features: Features::None,
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

    /// Stamps records with the times that they want, or with the time that it is; adds them to the
    /// last batch and indexes them.
    pub(super) fn push(&mut self, records: &[u8], count: u32, now_us: u64) {
        let not_before = if planted(Plant::TimeGoesBack) { 0 } else { self.recorded_at_us };
        let mut recorded_at_us = not_before;
        let batch = &mut self.queue.back_mut().expect("make_room left one").batch;
        let mut at = batch.bytes.len();
        batch.bytes.extend_from_slice(records);
        for record in record::records(records) {
            let len = record.byte_len();
            recorded_at_us = match record.recorded_at_us() {
                0 => recorded_at_us.max(now_us),
                // `Sequencer::check_times` has found that it fits.
                wanted_us => wanted_us,
            };
            record::stamp(&mut batch.bytes[at..at + len], self.next, recorded_at_us);
            if record.is_sealed() {
                batch.features = Features::SealedParts;
            }
            self.tail.writer.push(self.tail.end as u32, &record);
            at += len;
            self.tail.end += len as u64;
            self.next += 1;
        }
        self.recorded_at_us = recorded_at_us;
        batch.count += count;
        batch.recorded_at_us = recorded_at_us;
        self.staged_bytes += records.len();
        assert_eq!(batch.last() + 1, self.next, "positions are dense within a batch");
        debug_assert_eq!(batch.segment_base, self.tail.base, "requests join the last segment");
        debug_assert_eq!(batch.end(), self.tail.end, "nothing is staged after the last batch");
    }

    /// Keeps the buffer of a committed batch for reuse.
    pub(super) fn keep_buffer(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES && self.spare.len() < SPARE_BUFFERS {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// A batch of the segment with this base is durable, so no setback leads to an earlier segment.
    pub(super) fn forget_before(&mut self, base: Position) {
        if !self.earlier.is_empty() {
            self.earlier.retain(|tail| tail.base >= base);
        }
    }

    /// Discards `dropped`: everything staged after the batches in flight, which stay, or after
    /// `durable` if there are none. Takes time proportional to what was staged.
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
            recorded_at_us: batch.recorded_at_us,
        });
        debug_assert!(self.queue.is_empty(), "what was never offered is discarded first");
        debug_assert!((to.segment_base..=self.next).contains(&to.next), "positions are taken back");
        while self.tail.base != to.segment_base {
            // Segments are staged before the journal creates their files, and kept until a later
            // one has a durable batch.
            self.tail = self.earlier.pop().expect("the journal's segment is among the staged");
        }
        segments.truncate_after(to.segment_base);
        let here = dropped.iter().filter(|batch| batch.segment_base == to.segment_base);
        let rel = (to.next - to.segment_base) as u32;
        self.tail.writer.cut(rel, here.flat_map(gather::records));
        self.tail.end = to.end;
        self.next = to.next;
        // Or what was discarded could not be staged again with the times that it wants.
        self.recorded_at_us = to.recorded_at_us;
        self.staged_bytes = self.in_flight.iter().map(|batch| batch.body_bytes).sum();
        self.ingest_bytes = self.in_flight.iter().map(|batch| batch.ingest_bytes).sum();
    }
}

/// Where staging continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagedEnd {
    pub(super) segment_base: Position,
    /// Offset in that segment.
    pub(super) end: u64,
    pub(super) next: Position,
    /// The time of the event before.
    pub(super) recorded_at_us: u64,
}
