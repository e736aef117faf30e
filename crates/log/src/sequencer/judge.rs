//! Judges whether a request is allowed, or is a retry of an earlier one.
//!
//! Reads the index and changes nothing.

use super::condition::{JudgedCondition, TooMuch};
use crate::append::{Append, Appended, Basis};
use crate::error::{AppendError, ReadError};
use crate::index::SegmentIndex;
use crate::plants::{Plant, planted};
use crate::read::{PositionRange, Snapshot, find_id, find_key};
use crate::segments::Run;
use crate::work::Work;
use std::sync::Arc;
use wellspring_format::record::RequestKey;
use wellspring_types::{AppendCondition, EventId, Position};

/// Maximum number of steps for judging a window under the staging lock. With known terms, a step is
/// a memory access, so all of them take a fraction of a millisecond.
const WINDOW_STEPS: u64 = 16_384;

/// The verdict on a request for a range of the log.
#[derive(Debug)]
pub(crate) enum Judgement {
    /// Nothing in the range forbids it.
    Allowed,
    /// A request with its key, or an event with one of its ids, is at this position.
    SeenBefore(Position),
    Refused(AppendError),
}

/// A request prepared for judging over several ranges of the log: its condition is compiled once,
/// and look-ups for one range are reused for the next.
#[derive(Debug)]
pub(crate) struct Judge<'a> {
    key: Option<&'a str>,
    /// The key is known to be absent up to this position.
    key_absent_through: Position,
    ids: &'a [EventId],
    /// The ids are known to be absent up to this position.
    ids_absent_through: Position,
    condition: Option<JudgedCondition<'a>>,
}

impl<'a> Judge<'a> {
    /// Performs no look-ups yet. `ids` are those of the request's events, `condition` is its
    /// condition.
    pub(crate) fn new(
        append: &'a Append,
        condition: Option<&'a AppendCondition>,
        basis: Basis,
        ids: &'a [EventId],
    ) -> Judge<'a> {
        Judge {
            key: append.key.as_ref().map(|key| key.key.as_str()),
            key_absent_through: basis.key_absent_through,
            ids,
            ids_absent_through: basis.ids_absent_through,
            condition: condition.map(JudgedCondition::new),
        }
    }

    /// Whether nothing can forbid the request.
    pub(crate) fn is_idle(&self) -> bool {
        self.key.is_none() && self.ids.is_empty() && self.condition.is_none()
    }

    /// Judges the request against a range of the log, including staged events. May read files, so
    /// no lock may be held.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Stopped`] if the work stopped first.
    pub(crate) fn over(
        &mut self,
        runs: &[Arc<Run>],
        positions: PositionRange,
        work: &mut Work,
    ) -> Result<Judgement, ReadError> {
        if let Some(position) = self.seen_before(runs, positions, work)? {
            return Ok(Judgement::SeenBefore(position));
        }
        let Some(condition) = &mut self.condition else { return Ok(Judgement::Allowed) };
        let conflict = condition.judge(runs, positions, work)?;
        Ok(conflict.map_or(Judgement::Allowed, |conflict| {
            Judgement::Refused(AppendError::Conflict(conflict))
        }))
    }

    /// The same for a short range at the end of the log, under the staging lock: uses only
    /// in-memory indexes, looks up only terms that were absent before, and takes a bounded number
    /// of steps.
    ///
    /// # Errors
    /// [`TooMuch`]: release the lock and judge the range with [`over`](Self::over).
    pub(crate) fn window(
        &mut self,
        runs: &[Arc<Run>],
        positions: PositionRange,
    ) -> Result<Judgement, TooMuch> {
        if positions.low >= positions.high || self.is_idle() {
            return Ok(Judgement::Allowed);
        }
        if positions.require(runs).is_err() {
            return Err(TooMuch::Sealed);
        }
        for run in runs.iter().rev() {
            let sealed = matches!(run.index(), SegmentIndex::Sealed(_));
            if sealed && run.base() <= positions.high {
                return Err(TooMuch::Sealed);
            }
            if run.base() <= positions.low + 1 {
                break;
            }
        }
        let mut work = Work::unbounded().with_step_limit(WINDOW_STEPS).leaving_repairs();
        match self.seen_before(runs, positions, &mut work) {
            Ok(Some(position)) => return Ok(Judgement::SeenBefore(position)),
            Ok(None) => {}
            // A segment has just been sealed and its file cannot be read.
            Err(_) => return Err(TooMuch::Sealed),
        }
        let Some(condition) = &mut self.condition else { return Ok(Judgement::Allowed) };
        let conflict = condition.judge_window(runs, positions, &mut work)?;
        Ok(conflict.map_or(Judgement::Allowed, |conflict| {
            Judgement::Refused(AppendError::Conflict(conflict))
        }))
    }

    /// Where the request's key, or one of its ids, occurs in the range.
    fn seen_before(
        &self,
        runs: &[Arc<Run>],
        positions: PositionRange,
        work: &mut Work,
    ) -> Result<Option<Position>, ReadError> {
        if positions.low >= positions.high || planted(Plant::LostRetry) {
            return Ok(None);
        }
        // A retry of a successful request must find itself before its own condition finds it.
        let unseen = PositionRange { low: positions.low.max(self.key_absent_through), ..positions };
        if let Some(key) = self.key
            && unseen.low < unseen.high
            && let Some(position) = find_key(runs, key, unseen, work)?
        {
            return Ok(Some(position));
        }
        let unseen = PositionRange { low: positions.low.max(self.ids_absent_through), ..positions };
        if unseen.low >= unseen.high {
            return Ok(None);
        }
        for id in self.ids {
            if let Some(position) = find_id(runs, &id.0, unseen, work)? {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }
}

/// The ids of a request's events.
pub(crate) fn ids(append: &Append) -> Vec<EventId> {
    append.events.iter().filter_map(|record| record.id()).collect()
}

/// The answer to a request whose key or id was found durable at `position`.
pub(crate) fn replay(
    snapshot: &Snapshot,
    append: &Append,
    position: Position,
) -> Result<Appended, AppendError> {
    let count = append.events.len() as u64;
    let mut first = position;
    if let Some(key) = &append.key {
        let stored = snapshot
            .at(position, |record| {
                record.request_key().map(|(text, digest, count)| {
                    (text == key.key, digest == key.digest, u64::from(count))
                })
            })
            .map_err(AppendError::Read)?;
        match stored.flatten() {
            Some((true, true, stored_count)) if stored_count == count => {
                return Ok(replayed(snapshot, position, count));
            }
            Some((true, ..)) => return Err(AppendError::KeyReused { first: position }),
            _ => {}
        }
    }
    // Found by an id. The request is a retry if all its events, in order, equal the stored ones.
    // Otherwise the answer names an event whose id is used.
    for (i, record) in append.events.iter().enumerate() {
        let taken = match record.id() {
            Some(id) => snapshot.find_id(id).map_err(AppendError::Read)?,
            None => None,
        };
        if i == 0 {
            first = taken.unwrap_or(position);
        }
        let expected = first + i as u64;
        let same = taken == Some(expected)
            && snapshot
                .at(expected, |stored| stored.says_the_same(&record))
                .map_err(AppendError::Read)?
                .unwrap_or(false);
        if !same {
            let (event, position) = match taken {
                Some(position) => (i, position),
                None => first_taken(snapshot, append, position)?,
            };
            return Err(AppendError::IdReused { event, position });
        }
    }
    Ok(replayed(snapshot, first, count))
}

/// The append with this key, if any, whatever its content.
pub(crate) fn find_request(
    snapshot: &Snapshot,
    key: &RequestKey,
) -> Result<Option<Appended>, AppendError> {
    let stored = snapshot.request_with_key_after(&key.key, 0, &mut Work::unbounded());
    match stored.map_err(AppendError::Read)? {
        None => Ok(None),
        Some(stored) if stored.digest == key.digest => {
            Ok(Some(replayed(snapshot, stored.first, stored.events)))
        }
        Some(stored) => Err(AppendError::KeyReused { first: stored.first }),
    }
}

/// The first event of the request whose id is in the log, given that one was found.
fn first_taken(
    snapshot: &Snapshot,
    append: &Append,
    found: Position,
) -> Result<(usize, Position), AppendError> {
    for (i, record) in append.events.iter().enumerate() {
        if let Some(id) = record.id()
            && let Some(position) = snapshot.find_id(id).map_err(AppendError::Read)?
        {
            return Ok((i, position));
        }
    }
    Ok((0, found))
}

fn replayed(snapshot: &Snapshot, first: Position, count: u64) -> Appended {
    Appended { first, last: first + count - 1, head: snapshot.head(), replayed: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::options::Options;
    use crate::storage::simulated::SimulatedStorage;
    use wellspring_format::record::EncodedEvents;
    use wellspring_types::{Event, Query};

    fn append(bytes: usize, id: Option<u8>) -> Append {
        let data = format!("\"{}\"", "x".repeat(bytes));
        let mut event = Event::json("T", &["common"], &data);
        event.id = id.map(|id| EventId([id; 16]));
        let mut events = EncodedEvents::new();
        events.push(&event.as_ref()).expect("a valid event");
        Append { events, ..Append::default() }
    }

    #[test]
    fn a_window_reads_no_file_and_one_that_reaches_a_sealed_segment_is_not_judged() {
        let storage = SimulatedStorage::new(1);
        let options = Options { segment_bytes: 64 << 10, ..Options::default() };
        let log = Log::open_on(Arc::new(storage.clone()), options).expect("a log");
        let is_sealed = |run: &Arc<Run>| matches!(run.index(), SegmentIndex::Sealed(_));
        while log.segments() < 3 {
            log.append(append(5_000, None)).expect("room");
        }
        let runs = loop {
            let runs = log.sequencer().segments.runs();
            if runs.iter().filter(|run| is_sealed(run)).count() == 2 {
                break runs;
            }
            std::thread::yield_now();
        };
        let active = runs.iter().find(|run| !is_sealed(run)).expect("the last").base();
        let head = log.head();
        let mut request = append(10, Some(7));
        request.key = Some(RequestKey { key: "k".into(), digest: [0; 16] });
        // A tag of all events combined with a tag of none: every segment's index must be queried.
        let condition =
            AppendCondition::not_exists(Query::item(&["T", "U"], &["common", "absent"]));
        let ids = ids(&request);
        let mut judge = Judge::new(&request, Some(&condition), Basis::default(), &ids);
        let uncompiled = judge.window(&runs, PositionRange { low: head - 1, high: head });
        assert!(matches!(uncompiled, Err(TooMuch::Steps)), "nothing is compiled under a lock");
        let newest =
            judge.over(&runs, PositionRange { low: head - 1, high: head }, &mut Work::unbounded());
        assert!(matches!(newest, Ok(Judgement::Allowed)), "{newest:?}");
        let before = storage.bytes_read();
        for (low, expected) in
            [(active - 1, None), (active - 2, Some(TooMuch::Sealed)), (0, Some(TooMuch::Sealed))]
        {
            let verdict = judge.window(&runs, PositionRange { low, high: head });
            assert_eq!(verdict.as_ref().err().copied(), expected, "after {low}: {verdict:?}");
            assert!(verdict.is_err() || matches!(verdict, Ok(Judgement::Allowed)), "{verdict:?}");
        }
        assert_eq!(storage.bytes_read(), before, "no file was read");
        let over = judge.over(&runs, PositionRange { low: 0, high: head }, &mut Work::unbounded());
        assert!(matches!(over, Ok(Judgement::Allowed)), "{over:?}");
        assert!(storage.bytes_read() > before, "files are read outside the lock");
    }
}
