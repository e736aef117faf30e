//! Finding the first event of a time. Times never decrease along positions, so no index is needed:
//! a binary search over the segments, then over the positions of one.

use super::snapshot::{ReadOptions, Snapshot};
use crate::error::ReadError;
use crate::query::CompiledQuery;
use crate::segments::OpenSegment;
use crate::work::Work;
use std::sync::Arc;
use wellspring_types::{Position, Query};

/// The search for the first event that was recorded at a time or later, in steps.
#[derive(Debug)]
pub struct TimeSearch {
    snapshot: Snapshot,
    every: Arc<CompiledQuery>,
    time_us: u64,
    /// Everything up to this position was recorded before.
    before: Position,
    /// This event, or the end after the head, was recorded then or later.
    found: Position,
}

impl Snapshot {
    /// Searches for the first event that was recorded at `time_us` (since 1970 UTC) or later, using
    /// [`TimeSearch::step`], which reads files.
    #[must_use]
    pub fn first_since(&self, time_us: u64) -> TimeSearch {
        let every = CompiledQuery::shared(&Query::all());
        let (before, found) = (self.first() - 1, self.head() + 1);
        TimeSearch { snapshot: self.clone(), every, time_us, before, found: found.max(before + 1) }
    }
}

impl TimeSearch {
    /// Continues the search to its end: the position of the first of these events, or the one after
    /// the head if there is none yet.
    ///
    /// # Errors
    /// [`ReadError`]: damage in the way, or `work` stops; the search keeps its state for a retry.
    /// [`ReadError::Trimmed`] if events of that time may have been cut off.
    pub fn step(&mut self, work: &mut Work) -> Result<Position, ReadError> {
        while self.before + 1 < self.found {
            let (position, segment) = self.probe();
            let known_us = segment.as_ref().and_then(|segment| segment.first_time_us());
            let recorded_us = match known_us {
                Some(known_us) => known_us,
                None => self.time_at(position, work)?,
            };
            if let Some(segment) = segment {
                segment.know_first_time(recorded_us);
            }
            if recorded_us < self.time_us {
                self.before = position;
            } else {
                self.found = position;
            }
        }
        let first = self.snapshot.first();
        let begins = &self.snapshot.runs()[0].segments()[0];
        if self.found == first && begins.removed_until_us().is_some_and(|us| self.time_us <= us) {
            return Err(ReadError::Trimmed { first });
        }
        Ok(self.found)
    }

    /// The next position to look at: the beginning of the middle one of the runs that begin in
    /// between, or of the segments; or the middle, when all that is left lies in one segment.
    fn probe(&self) -> (Position, Option<Arc<OpenSegment>>) {
        let runs = self.snapshot.runs();
        let begins_before = |base: Position, end: Position| base < end;
        let first = runs.partition_point(|run| begins_before(run.base(), self.before + 1));
        let last = runs.partition_point(|run| begins_before(run.base(), self.found));
        let segments = match runs.get(first..last).unwrap_or_default() {
            [] => {
                let segments = runs[first.saturating_sub(1)].segments();
                let first = segments.partition_point(|s| begins_before(s.base(), self.before + 1));
                let last = segments.partition_point(|s| begins_before(s.base(), self.found));
                &segments[first..last.max(first)]
            }
            between => &between[between.len() / 2].segments()[..1],
        };
        match segments.get(segments.len() / 2) {
            Some(segment) => (segment.base(), Some(Arc::clone(segment))),
            None => (self.before.midpoint(self.found), None),
        }
    }

    fn time_at(&self, position: Position, work: &mut Work) -> Result<u64, ReadError> {
        let options =
            ReadOptions { after: Some(position - 1), limit: Some(1), ..ReadOptions::default() };
        let mut events = self.snapshot.read_compiled(Arc::clone(&self.every), options);
        events.bound(std::mem::take(work));
        let recorded_us = events.next().map(|event| event.map(|event| event.recorded_at_us()));
        *work = events.take_work();
        recorded_us?.ok_or_else(|| ReadError::Io {
            doing: format!("reading position {position}"),
            error: "no segment holds it".into(),
        })
    }
}
