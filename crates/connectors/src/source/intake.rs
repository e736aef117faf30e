//! From records to appends: gathers them by partition, stages each append upon the one before, and
//! hears later what became of them. So one barrier makes many appends durable, also those of a
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

/// Records of one append: its last event is the cursor.
const CHUNK_RECORDS: u64 = MAX_EVENTS as u64 - 1;
/// Encoded bytes after which an append is full; one more event and the cursor always fit.
const CHUNK_BYTES: usize = 4 << 20;
/// Encoded bytes that may be staged and not yet durable.
const STAGED_BYTES: usize = 16 << 20;
/// Bytes of values kept for the reject log before they are stored.
const REJECT_BYTES: usize = 16 << 20;
/// How long what is staged is waited for when the source is to stop, in looks of [`LOOK`].
const LAST_LOOKS: usize = 50;
/// How long to wait for an answer before looking whether the source is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A partition that is read.
pub(super) struct Lane {
    /// The offset to read next: what comes with a lower one was read before.
    pub(super) next: i64,
    /// Where the partition ended when it was last asked.
    pub(super) end: i64,
    /// Position of the newest cursor, staged ones counted.
    pub(super) position: Position,
    /// The number of setbacks at which that was staged, as long as it is not durable.
    setbacks: Option<u64>,
    in_flight: usize,
    ids: EventIds,
    chunk: Chunk,
}

impl Lane {
    /// A partition that is read from an offset on, with its newest cursor at a position.
    pub(super) fn new(origin: &Origin, partition: i32, next: i64, position: Position) -> Lane {
        Lane {
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

/// An append that is filled.
#[derive(Default)]
struct Chunk {
    events: EncodedEvents,
    rejects: Vec<Reject>,
    reject_bytes: usize,
    /// All records, rejected ones counted.
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

/// What became of an append.
struct Answer {
    partition: i32,
    /// Offset of its first record.
    first: i64,
    /// Encoded bytes.
    staged_bytes: usize,
    /// Events besides the cursor.
    events: u64,
    bytes: u64,
    outcome: Result<Appended, AppendError>,
}

/// Appends what is read.
pub(super) struct Intake {
    log: Log,
    origin: Origin,
    mapper: Mapper,
    pub(super) lanes: BTreeMap<i32, Lane>,
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
        (status, control): (Arc<Status>, Arc<Control>),
    ) -> Intake {
        let (tell, answers) = channel();
        Intake {
            log,
            origin,
            mapper,
            lanes: BTreeMap::new(),
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

    /// Records that are in the topic and were not read, as far as known.
    pub(super) fn records_behind(&self) -> u64 {
        self.lanes.values().map(|lane| u64::try_from(lane.end - lane.next).unwrap_or(0)).sum()
    }

    /// Takes records, in order of each partition, and stages them all.
    ///
    /// # Errors
    /// An [`Interruption`]: the intake is spent.
    pub(super) fn take(&mut self, records: Vec<Record>) -> Result<(), Interruption> {
        for record in records {
            let partition = record.partition;
            if self.push(record)? {
                self.flush(partition)?;
            }
        }
        let filled = self.lanes.iter().filter(|(_, lane)| lane.chunk.records > 0);
        let filled: Vec<i32> = filled.map(|(partition, _)| *partition).collect();
        for partition in filled {
            self.flush(partition)?;
        }
        if self.in_flight > 0 {
            self.log.commit(CommitOn::JournalThread);
        }
        Ok(())
    }

    /// Puts a record into its chunk; tells if that is full.
    fn push(&mut self, record: Record) -> Result<bool, Interruption> {
        let (partition, offset) = (record.partition, record.offset);
        let Some(lane) = self.lanes.get_mut(&partition) else { return Ok(false) };
        if offset < lane.next {
            return Ok(false);
        }
        let rejects = self.rejects.as_ref();
        let pushed = match rejects.is_some_and(|rejects| rejects.holds(partition, offset)) {
            true => Err("the record was rejected before".to_owned()),
            false => {
                let ids = self.with_ids.then_some(&lane.ids);
                self.mapper.push(&mut lane.chunk.events, &record, ids)
            }
        };
        match pushed {
            Ok(bytes) => lane.chunk.bytes += bytes,
            Err(reason) if rejects.is_some() => {
                lane.chunk.reject_bytes += record.value.as_ref().map_or(0, bytes::Bytes::len);
                lane.chunk.rejects.push(Reject { record, reason });
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
        if lane.chunk.records == 0 {
            lane.chunk.first = offset;
        }
        lane.chunk.records += 1;
        lane.chunk.last = offset;
        lane.next = offset + 1;
        Ok(lane.chunk.is_full())
    }

    /// Stages what a partition's chunk holds, its rejects first.
    fn flush(&mut self, partition: i32) -> Result<(), Interruption> {
        let Some(lane) = self.lanes.get_mut(&partition) else { return Ok(()) };
        let Chunk { mut events, rejects, records, first, last, bytes, .. } =
            std::mem::take(&mut lane.chunk);
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
        let condition = unchanged_since(query, lane.position);
        let basis = Basis { setbacks: lane.setbacks, ..Basis::default() };
        let tell = self.tell.clone();
        let done = Box::new(move |outcome| {
            let answer =
                Answer { partition, first, staged_bytes, events: event_count, bytes, outcome };
            // Nobody listens any more when the source has gone on without this append.
            let _ = tell.send(answer);
        });
        self.in_flight += 1;
        self.staged_bytes += staged_bytes;
        lane.in_flight += 1;
        match self.log.stage_on(basis, Append { events, condition, ..Append::default() }, done) {
            Staged::Placed { last, setbacks, .. } => {
                lane.position = last;
                lane.setbacks = Some(setbacks);
            }
            // Refused, or about to be: what comes behind it must not be staged.
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

    /// Waits until all is durable that is staged.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn settle(&mut self) -> Result<(), Interruption> {
        self.wait_until(0)
    }

    /// Waits until no more than so many bytes are staged. Every append that is not durable then is
    /// heard of later or never.
    fn wait_until(&mut self, staged_bytes: usize) -> Result<(), Interruption> {
        self.log.commit(CommitOn::JournalThread);
        let mut looks = 0;
        while self.in_flight > 0 && self.staged_bytes > staged_bytes {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => self.absorb(answer)?,
                Err(RecvTimeoutError::Timeout) if self.control.is_stopping() => {
                    looks += 1;
                    if looks >= LAST_LOOKS {
                        return Err(Fault::transient("the log does not answer an append").into());
                    }
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Hears what became of appends meanwhile, without waiting.
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
        if let Some(lane) = self.lanes.get_mut(&partition) {
            lane.in_flight -= 1;
            if lane.in_flight == 0 {
                lane.setbacks = None;
            }
        }
        let counters = &self.status.counters;
        Counters::add(&counters.events, answer.events);
        Counters::add(&counters.bytes, answer.bytes);
        Counters::add(&counters.batches, 1);
        self.status.set_position(self.status.position().max(appended.last));
        Ok(())
    }

    /// Hears of everything that is staged, whatever comes of it, so that the cursors found next are
    /// the newest.
    pub(super) fn drain(&mut self) {
        while self.in_flight > 0 && !self.log.feed().is_closed() {
            if let Err(Interruption::Fault(fault)) = self.settle() {
                tracing::debug!(%fault, "an append came to nothing");
                if self.control.is_stopping() {
                    return;
                }
            }
        }
    }
}
