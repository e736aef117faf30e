//! Cuts off the beginning of a log of files, in whole segments.
//!
//! ```text
//! index of what is kept ─► floor, barrier ─► readers' runs ─► segments and indexes removed
//! ```
//!
//! The floor decides: a crash before it leaves the log as it was, with an index too many, and one
//! after it leaves files that the next opening removes. Readers that have begun keep the runs that
//! they have, and so their files.

use super::Sequencer;
use crate::error::{ReadError, TrimError};
use crate::floor::Floor;
use crate::index::{self, SegmentIndex};
use crate::plants::{Plant, planted};
use crate::segments::{IndexOwner, NewIndexFile, Run, open_sealed};
use crate::storage::{is_full, write_under};
use std::io;
use std::sync::Arc;
use wellspring_format::segment::{index_name, segment_name};
use wellspring_types::Position;

impl Sequencer {
    /// Cuts off everything before the last segment that begins at or before `wanted` and holds a
    /// durable event, or before an earlier one if the index of the rest cannot be written. Returns
    /// the position of the first event that is left.
    pub(crate) fn trim(&self, wanted: Position) -> Result<Position, TrimError> {
        if self.shared_counters.is_some() {
            return Err(TrimError::Copy);
        }
        let Some(&history) = self.history.get() else { return Err(TrimError::Copy) };
        let _alone = self.sealer.own_indexes();
        let (runs, most) = (self.segments.runs(), wanted.min(self.feed.head()));
        let at = runs.partition_point(|run| run.base() <= most);
        let Some(run) = at.checked_sub(1).map(|at| &runs[at]) else {
            return Ok(runs[0].base());
        };
        let place = run.place_of(most);
        // Without room for another index, the whole run stays.
        let part = if place > 0 { self.without_beginning(run, place).ok() } else { None };
        let first = part.as_ref().map_or(run.base(), |part| part.base());
        if first == runs[0].base() {
            return Ok(first);
        }
        let snapshot = self.snapshot();
        let time_at = |position| snapshot.at(position, |record| record.recorded_at_us());
        // The last one that goes may be what is damaged.
        let removed_until_us = time_at(first - 1).or_else(|_| time_at(first));
        let removed_until_us = removed_until_us.map_err(TrimError::Read)?.unwrap_or(0);
        let floor = Floor { history, first, removed_until_us };
        let failed = |error: io::Error| TrimError::Io {
            is_full: is_full(&error),
            error: format!("writing floor: {error}"),
        };
        // Earlier appends must be durable before the floor is: a client may have appended again
        // what this trim removes, and with delayed barriers that append may still be lost.
        self.sync_end().map_err(failed)?;
        if !planted(Plant::ForgetsFloor) {
            floor.write(&*self.storage).map_err(|error| {
                if part.is_some() {
                    let _ = self.storage.remove(&index_name(first));
                }
                failed(error)
            })?;
        }
        let removed = self.segments.cut_beginning(&floor, part);
        self.remove_files(&removed, first);
        Ok(first)
    }

    /// A barrier for the segment that is being written.
    fn sync_end(&self) -> io::Result<()> {
        let runs = self.segments.runs();
        let segments = runs.iter().rev().flat_map(|run| run.segments().iter().rev());
        // One that was begun may have no file yet; nothing in it is answered.
        let mut files = segments.filter_map(|segment| segment.file().ok());
        files.next().map_or(Ok(()), |file| file.sync_data())
    }

    /// A run of the segments of `run` from this one on, with an index of its own.
    fn without_beginning(&self, run: &Run, place: usize) -> Result<Arc<Run>, ReadError> {
        let segments = run.segments()[place..].to_vec();
        let first = segments[0].base();
        let name = index_name(first);
        let failed = |error: String| ReadError::Io { doing: format!("writing {name}"), error };
        let SegmentIndex::Sealed(whole) = run.index() else {
            return Err(failed("the index before is not written yet".into()));
        };
        let written = write_under(&*self.storage, &format!("{name}.tmp"), |file| {
            index::without_beginning(&whole, first, run.seed(), &NewIndexFile(file))
        });
        written.map_err(|fault| run.index_error(fault))?;
        let placed = self
            .storage
            .rename(&format!("{name}.tmp"), &name)
            .and_then(|()| self.storage.sync_dir());
        placed.map_err(|error| failed(error.to_string()))?;
        let salt = segments[0].salt().map_err(|error| failed(error.to_string()))?;
        let opened = open_sealed(&*self.storage, first, salt).map_err(|e| failed(e.to_string()))?;
        let index = opened.ok_or_else(|| failed("it cannot be read back".into()))?;
        let events = index.len();
        let part = Run::of(Arc::clone(&self.storage), segments, SegmentIndex::Sealed(index));
        part.set_events(events);
        Ok(Arc::new(part))
    }

    /// Removes the files of segments before `first`. What fails is removed by the next opening.
    fn remove_files(&self, removed: &[Arc<Run>], first: Position) {
        for run in removed {
            // No reader that still has the run may write its index again.
            *run.own_index_file() = IndexOwner::Gone;
            let _ = self.storage.remove(&index_name(run.base()));
            for segment in run.segments().iter().filter(|segment| segment.base() < first) {
                let _ = self.storage.remove(&segment_name(segment.base()));
            }
        }
        let _ = self.storage.sync_dir();
    }
}

#[cfg(test)]
mod tests {
    use crate::append::Append;
    use crate::log::Log;
    use crate::options::Options;
    use crate::plants::{Plant, plant};
    use crate::storage::simulated::SimulatedStorage;
    use std::sync::Arc;
    use wellspring_format::record::EncodedEvents;
    use wellspring_types::{AppendCondition, Event, Query};

    fn append(number: u64, unless: Option<&str>) -> Append {
        let data = format!("\"{}\"", "x".repeat(9_000));
        let mut events = EncodedEvents::new();
        events.push(&Event::json("T", &[&format!("n:{number}")], &data).as_ref()).expect("valid");
        let condition = unless.map(|tag| AppendCondition::not_exists(Query::item(&[], &[tag])));
        Append { events, condition, ..Append::default() }
    }

    #[test]
    fn planted_bugs_of_cuts_are_found() {
        for planted in [None, Some(Plant::ForgetsFloor), Some(Plant::JudgesTheRest)] {
            plant(planted);
            let storage = SimulatedStorage::new(1);
            let options = || Options { segment_bytes: 64 << 10, ..Options::default() };
            let log = Log::open_on(Arc::new(storage.clone()), options()).expect("a log");
            while log.segments() < 3 {
                log.append(append(log.head(), None)).expect("room");
            }
            let first = log.trim(u64::MAX).expect("room");
            let claimed = log.append(append(0, Some("n:0")));
            log.close();
            let opened = Log::open_on(Arc::new(storage.crash()), options());
            plant(None);
            let is_right = claimed.is_err()
                && opened.is_ok_and(|log| log.snapshot().first() == first && log.head() >= first);
            assert_eq!(is_right, planted.is_none(), "{planted:?}");
        }
    }
}
