//! Turns records into appends: gathers them by partition, stages each append on top of the previous
//! one, and learns the outcomes later. One barrier thus makes many appends durable, even of a
//! single partition.

use super::advance::{SourceAdvanced, unchanged_since};
use super::interruption::Interruption;
use super::mapping::Mapper;
use super::origin::{EventIds, Origin, SOURCE_ADVANCED};
use super::rejects::{Reject, RejectStore};
use crate::control::Control;
use crate::fault::{Fault, StopCode};
use crate::status::{Counters, Status};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use wellspring_kafka::Record;
use wellspring_log::{Append, AppendError, Appended, Basis, CommitOn, EncodedEvents, Log, Staged};
use wellspring_types::Position;
use wellspring_types::limits::MAX_EVENTS;

/// Maximum number of records in an append, whose last event is the cursor.
const CHUNK_RECORDS: u64 = MAX_EVENTS as u64 - 1;
/// Encoded size at which an append is full; one more event and the cursor always fit.
const CHUNK_BYTES: usize = 4 << 20;
/// Maximum encoded size of staged appends that are not durable yet.
const STAGED_BYTES: usize = 16 << 20;
/// Maximum size of values gathered for the reject log.
const REJECT_BYTES: usize = 16 << 20;
/// Maximum number of waits of [`LOOK`] for staged appends when the source stops.
const LAST_LOOKS: usize = 50;
/// Maximum wait for an outcome before checking whether the source should stop.
const LOOK: Duration = Duration::from_millis(100);

/// A partition being read.
pub(super) struct PartitionState {
    /// The next offset to read; records with lower offsets have been read.
    pub(super) next: i64,
    /// The partition's end at the last check.
    pub(super) end: i64,
    /// Position of the newest cursor, including staged ones.
    pub(super) position: Position,
    /// The setback count at which that cursor was staged, while it is not durable.
    setbacks: Option<u64>,
    in_flight: usize,
    ids: EventIds,
    chunk: Chunk,
}

impl PartitionState {
    /// A partition read from an offset on, whose newest cursor has this position.
    pub(super) fn new(
        origin: &Origin,
        partition: i32,
        next: i64,
        position: Position,
    ) -> PartitionState {
        PartitionState {
            next,
            end: next,
            position,
            setbacks: None,
            in_flight: 0,
            ids: origin.event_ids(partition),
            chunk: Chunk::default(),
        }
    }
}

/// An append being filled.
#[derive(Default)]
struct Chunk {
    events: EncodedEvents,
    rejects: Vec<Reject>,
    reject_bytes: usize,
    /// Number of records, including rejected ones.
    records: u64,
    /// Offset of the first one.
    first: i64,
    /// Offset of the last one.
    last: i64,
    /// Bytes of payloads.
    bytes: u64,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.records >= CHUNK_RECORDS
            || self.events.byte_len() >= CHUNK_BYTES
            || self.reject_bytes >= REJECT_BYTES
    }
}

/// The outcome of an append.
struct Answer {
    partition: i32,
    /// Offset of its first record.
    first: i64,
    /// Encoded bytes.
    staged_bytes: usize,
    /// Number of events without the cursor.
    events: u64,
    bytes: u64,
    outcome: Result<Appended, AppendError>,
}

/// Appends the records read.
pub(super) struct Intake {
    log: Log,
    origin: Origin,
    mapper: Mapper,
    pub(super) partitions: BTreeMap<i32, PartitionState>,
    rejects: Option<RejectStore>,
    /// Whether events get ids.
    with_ids: bool,
    staged_bytes: usize,
    in_flight: usize,
    tell: Sender<Answer>,
    answers: Receiver<Answer>,
    status: Arc<Status>,
    control: Arc<Control>,
}

impl Intake {
    pub(super) fn new(
        log: Log,
        origin: Origin,
        mapper: Mapper,
        rejects: Option<RejectStore>,
        with_ids: bool,
        status: Arc<Status>,
        control: Arc<Control>,
    ) -> Intake {
        let (tell, answers) = channel();
        Intake {
            log,
            origin,
            mapper,
            partitions: BTreeMap::new(),
            rejects,
            with_ids,
            staged_bytes: 0,
            in_flight: 0,
            tell,
            answers,
            status,
            control,
        }
    }

    /// Known number of records in the topic that have not been read.
    pub(super) fn records_behind(&self) -> u64 {
        self.partitions
            .values()
            .map(|state| u64::try_from(state.end - state.next).unwrap_or(0))
            .sum()
    }

    /// Takes records, in order within each partition, and stages them all.
    ///
    /// # Errors
    /// An [`Interruption`]; the intake cannot be used any more.
    pub(super) fn take(&mut self, records: Vec<Record>) -> Result<(), Interruption> {
        for record in records {
            let partition = record.partition;
            if self.push(record)? {
                self.flush(partition)?;
            }
        }
        let filled = self.partitions.iter().filter(|(_, state)| state.chunk.records > 0);
        let filled: Vec<i32> = filled.map(|(partition, _)| *partition).collect();
        for partition in filled {
            self.flush(partition)?;
        }
        if self.in_flight > 0 {
            self.log.commit(CommitOn::JournalThread);
        }
        Ok(())
    }

    /// Adds a record to its chunk; returns whether the chunk is full.
    fn push(&mut self, record: Record) -> Result<bool, Interruption> {
        let (partition, offset) = (record.partition, record.offset);
        let Some(state) = self.partitions.get_mut(&partition) else { return Ok(false) };
        if offset < state.next {
            return Ok(false);
        }
        let rejects = self.rejects.as_ref();
        let pushed = if rejects.is_some_and(|rejects| rejects.holds(partition, offset)) {
            Err("the record was rejected before".into())
        } else {
            let ids = self.with_ids.then_some(&state.ids);
            self.mapper.push(&mut state.chunk.events, &record, ids)
        };
        match pushed {
            Ok(bytes) => state.chunk.bytes += bytes,
            Err(reason) if rejects.is_some() => {
                state.chunk.reject_bytes += record.value.as_ref().map_or(0, bytes::Bytes::len);
                state.chunk.rejects.push(Reject { record, reason: reason.into() });
            }
            Err(reason) => {
                self.flush(partition)?;
                let topic = &self.origin.topic;
                let detail = format!(
                    "the record at offset {offset} of partition {partition} of the topic {topic} cannot be made an \
                     event, and there is no reject log: {reason}"
                );
                return Err(Fault::stop(StopCode::Rejected, detail).into());
            }
        }
        if state.chunk.records == 0 {
            state.chunk.first = offset;
        }
        state.chunk.records += 1;
        state.chunk.last = offset;
        state.next = offset + 1;
        Ok(state.chunk.is_full())
    }

    /// Stages a partition's chunk, its rejects first.
    fn flush(&mut self, partition: i32) -> Result<(), Interruption> {
        let Some(state) = self.partitions.get_mut(&partition) else { return Ok(()) };
        let Chunk { mut events, rejects, records, first, last, bytes, .. } =
            std::mem::take(&mut state.chunk);
        if records == 0 {
            return Ok(());
        }
        if let Some(store) = self.rejects.as_mut().filter(|_| !rejects.is_empty()) {
            let stored = store.store(&self.origin, partition, &rejects)?;
            Counters::add(&self.status.counters.set_aside, stored);
        }
        let event_count = events.len() as u64;
        let advance = SourceAdvanced::new(&self.origin, partition, last, records);
        advance.push(&self.origin, &mut events).map_err(AppendError::from)?;
        let staged_bytes = events.byte_len();
        let query = self.origin.partition_query(SOURCE_ADVANCED, partition);
        let condition = unchanged_since(query, state.position);
        let basis = Basis { setbacks: state.setbacks, ..Basis::default() };
        let tell = self.tell.clone();
        let done = Box::new(move |outcome| {
            let answer =
                Answer { partition, first, staged_bytes, events: event_count, bytes, outcome };
            // The receiver is gone if the source has continued without this append.
            let _ = tell.send(answer);
        });
        self.in_flight += 1;
        self.staged_bytes += staged_bytes;
        state.in_flight += 1;
        match self.log.stage_on(basis, Append { events, condition, ..Append::default() }, done) {
            Staged::Placed { last, setbacks, .. } => {
                state.position = last;
                state.setbacks = Some(setbacks);
            }
            // Refused, or about to be: later appends must not be staged on top of it.
            Staged::Answered | Staged::WaitsFor { .. } => {
                self.settle()?;
                let detail = format!("an append for partition {partition} was not placed");
                return Err(Interruption::Conflict(detail));
            }
        }
        if self.staged_bytes >= STAGED_BYTES {
            self.wait_until(STAGED_BYTES / 2)?;
        }
        Ok(())
    }

    /// Waits until everything staged is durable.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn settle(&mut self) -> Result<(), Interruption> {
        self.wait_until(0)
    }

    /// Waits until at most this many bytes are staged. The outcomes of the other appends arrive
    /// later or never.
    fn wait_until(&mut self, staged_bytes: usize) -> Result<(), Interruption> {
        self.log.commit(CommitOn::JournalThread);
        let mut looks = 0;
        while self.in_flight > 0 && self.staged_bytes > staged_bytes {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => self.absorb(answer)?,
                Err(RecvTimeoutError::Timeout) if self.control.is_stopping() => {
                    looks += 1;
                    if looks >= LAST_LOOKS {
                        return Err(
                            Fault::transient("the log did not complete an append in time").into()
                        );
                    }
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Handles the outcomes that have arrived, without waiting.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn look(&mut self) -> Result<(), Interruption> {
        while let Ok(answer) = self.answers.try_recv() {
            self.absorb(answer)?;
        }
        Ok(())
    }

    fn absorb(&mut self, answer: Answer) -> Result<(), Interruption> {
        self.in_flight -= 1;
        self.staged_bytes -= answer.staged_bytes;
        let Answer { partition, first, .. } = answer;
        let appended = match answer.outcome {
            Ok(appended) => appended,
            Err(error @ AppendError::IdReused { .. }) => {
                return Err(Interruption::IdReused { partition, first, detail: error.to_string() });
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(state) = self.partitions.get_mut(&partition) {
            state.in_flight -= 1;
            if state.in_flight == 0 {
                state.setbacks = None;
            }
        }
        let counters = &self.status.counters;
        Counters::add(&counters.events, answer.events);
        Counters::add(&counters.bytes, answer.bytes);
        Counters::add(&counters.batches, 1);
        self.status.set_position(self.status.position().max(appended.last));
        Ok(())
    }

    /// Waits for the outcome of everything staged, whatever it is, so that the cursors read next
    /// are the newest.
    pub(super) fn drain(&mut self) {
        while self.in_flight > 0 && !self.log.feed().is_closed() {
            if let Err(Interruption::Fault(fault)) = self.settle() {
                tracing::debug!(%fault, "an append was discarded");
                if self.control.is_stopping() {
                    return;
                }
            }
        }
    }
}
