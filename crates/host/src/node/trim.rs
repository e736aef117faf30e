//! How much of a log's beginning may go, and what still needs it.

use super::Node;
use super::views::first_match;
use serde::Serialize;
use std::sync::PoisonError;
use wellspring_log::{Log, ReadError, Work};
use wellspring_types::{Position, Query};

/// How much of a log's beginning is to go: what all of these allow.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrimTarget {
    /// Events before this position.
    pub before: Option<Position>,
    /// Events recorded before this time, µs since 1970 UTC.
    pub recorded_before_us: Option<u64>,
    /// Segments, until those that are left have at most this many bytes.
    pub most_bytes: Option<u64>,
}

/// What a cut removes, in whole segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimPlan {
    /// Position of the first event that is left.
    pub first: Position,
    /// Number of events removed.
    pub events: u64,
    /// Bytes of the segments removed.
    pub bytes: u64,
    /// Position of the first event before, and the bytes of each segment that goes, by its base.
    begins: Position,
    segments: Vec<(Position, u64)>,
}

/// Something that needs events from a position on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogReader {
    /// What it is: `view`, `consumer`, `sink`, `source`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The first event that it needs.
    pub position: Position,
}

impl TrimPlan {
    /// The plan for a log as it is now.
    ///
    /// # Errors
    /// [`ReadError`], also if `work` stops.
    pub fn of(log: &Log, target: TrimTarget, work: &mut Work) -> Result<TrimPlan, ReadError> {
        let (snapshot, segments) = (log.snapshot(), log.extent_now().segments);
        let lengths = segments.iter().map(|segment| segment.byte_len());
        let lengths: Vec<u64> = lengths.collect::<Result<_, ReadError>>()?;
        // The segment that is being written stays.
        let mut most = snapshot.head().min(target.before.unwrap_or(Position::MAX));
        if let Some(time_us) = target.recorded_before_us {
            most = most.min(match snapshot.first_since(time_us).step(work) {
                Err(ReadError::Trimmed { first }) => first,
                found => found?,
            });
        }
        if let Some(most_bytes) = target.most_bytes {
            let mut left: u64 = lengths.iter().sum();
            let sized = segments.iter().zip(&lengths);
            let begun = sized.take_while(|(_, len)| {
                let is_over = left > most_bytes;
                left = left.saturating_sub(**len);
                is_over
            });
            // The first that stays follows those.
            most = most.min(begun.last().map_or(0, |(segment, _)| segment.next()));
        }
        let count = segments.iter().filter(|segment| segment.base() <= most).count();
        let removed = count.saturating_sub(1);
        let first = segments.get(removed).map_or(1, |segment| segment.base());
        let bases = segments[..removed].iter().map(|segment| segment.base());
        let segments: Vec<(Position, u64)> = bases.zip(lengths).collect();
        let plan = TrimPlan { first, events: 0, bytes: 0, begins: snapshot.first(), segments };
        Ok(plan.up_to(first))
    }

    /// The same if the log begins at `first` already.
    #[must_use]
    pub fn up_to(self, first: Position) -> TrimPlan {
        let events = first.saturating_sub(self.begins);
        let removed = self.segments.iter().filter(|(base, _)| *base < first);
        TrimPlan { first, events, bytes: removed.map(|(_, bytes)| bytes).sum(), ..self }
    }
}

impl Node {
    /// The views that need events of a log before `first`, with the first that each needs: without
    /// them its fold would be another. Of any view, whether or not it is attached to the log.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn views_before(&self, log: &Log, first: Position) -> Result<Vec<LogReader>, ReadError> {
        let views: Vec<(&'static str, Query)> = {
            let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            let attached = changes.views.iter();
            attached.map(|attached| (attached.view.name(), attached.view.query())).collect()
        };
        let before = log.snapshot().up_to(first - 1);
        let mut found = Vec::new();
        for (name, query) in views {
            if let Some(position) = first_match(&before, &query)? {
                found.push(LogReader { kind: "view", name: name.to_owned(), position });
            }
        }
        Ok(found)
    }
}
