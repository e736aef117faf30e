//! The segments of an open log for readers and the judge: in runs of one or more, each with an
//! index, by position.

mod index_file;
mod open_segment;
mod run;

pub(crate) use index_file::{
    NewIndexFile, build_active, check_next, first_salt_in_index, knows_of_more, lost_after,
    open_sealed,
};
pub(crate) use open_segment::OpenSegment;
pub(crate) use run::{IndexOwner, Run};

use crate::error::Corruption;
use crate::floor::Floor;
use crate::index::Terms;
use crate::storage::StorageFile;
use crate::threads::lock;
use std::sync::{Arc, Mutex};
use wellspring_format::segment::index_name;
use wellspring_types::{HistoryId, Position};

/// The memory and disk usage of a log's indexes.
#[derive(Debug, Default)]
pub(crate) struct IndexUsage {
    pub(crate) memory_bytes: u64,
    /// Of this, the memory of the active segment's index.
    pub(crate) active_memory_bytes: u64,
    pub(crate) terms: Terms,
}

/// All segments of a log, in runs.
#[derive(Debug)]
pub(crate) struct Segments {
    runs: Mutex<Arc<Vec<Arc<Run>>>>,
}

impl Segments {
    pub(crate) fn new(runs: Vec<Arc<Run>>) -> Segments {
        Segments { runs: Mutex::new(Arc::new(runs)) }
    }

    /// The runs in order. The lock is held while one pointer is copied.
    pub(crate) fn runs(&self) -> Arc<Vec<Arc<Run>>> {
        Arc::clone(&lock(&self.runs))
    }

    /// Number of segments.
    pub(crate) fn count(&self) -> u64 {
        self.runs().iter().map(|run| run.segments().len() as u64).sum()
    }

    /// The first damage found in each segment, by position.
    pub(crate) fn damage(&self) -> Vec<Corruption> {
        let runs = self.runs();
        let segments = runs.iter().flat_map(|run| run.segments());
        segments.filter_map(|segment| segment.damage().cloned()).collect()
    }

    /// How often a damaged index has been rebuilt.
    pub(crate) fn indexes_mended(&self) -> u64 {
        let runs = self.runs();
        runs.iter().flat_map(|run| run.segments()).map(|segment| segment.indexes_mended()).sum()
    }

    /// The indexes that have been rebuilt because of damage, each with how often, by position.
    pub(crate) fn mended(&self) -> Vec<(String, u64)> {
        let runs = self.runs();
        let segments = runs.iter().flat_map(|run| run.segments());
        let counted =
            segments.map(|segment| (index_name(segment.base()), segment.indexes_mended()));
        counted.filter(|(_, times)| *times > 0).collect()
    }

    /// The indexes that have been rebuilt because of damage since this was last asked.
    pub(crate) fn take_mended(&self) -> Vec<String> {
        let runs = self.runs();
        let segments = runs.iter().flat_map(|run| run.segments());
        let mended = segments.filter(|segment| segment.take_mended() > 0);
        mended.map(|segment| index_name(segment.base())).collect()
    }

    pub(crate) fn push(&self, run: Arc<Run>) {
        Arc::make_mut(&mut *lock(&self.runs)).push(run);
    }

    /// Removes the segments that begin after `base`: none of their events was made durable.
    pub(crate) fn truncate_after(&self, base: Position) {
        Arc::make_mut(&mut *lock(&self.runs)).retain(|run| run.base() <= base);
    }

    /// Replaces the runs that have a run's segments by that run.
    pub(crate) fn replace(&self, merged: Arc<Run>) {
        let mut runs = lock(&self.runs);
        let (mut kept, mut replaced): (Vec<_>, Vec<_>) = runs.iter().cloned().partition(|run| {
            let base = run.base();
            merged.segments().iter().all(|segment| segment.base() != base)
        });
        let segments = replaced.drain(..).flat_map(|run| run.segments().to_vec());
        let same = segments.zip(merged.segments()).filter(|(one, other)| Arc::ptr_eq(one, other));
        assert_eq!(same.count(), merged.segments().len(), "the same segments in the same order");
        let at = kept.partition_point(|run| run.base() < merged.base());
        kept.insert(at, merged);
        *runs = Arc::new(kept);
    }

    /// Removes the runs with segments before a floor, and puts `part` in the place of what is kept
    /// of the last of them. Returns those removed.
    pub(crate) fn cut_beginning(&self, floor: &Floor, part: Option<Arc<Run>>) -> Vec<Arc<Run>> {
        let mut runs = lock(&self.runs);
        let (removed, kept): (Vec<_>, Vec<_>) =
            runs.iter().cloned().partition(|run| run.base() < floor.first);
        let runs_left: Vec<_> = part.into_iter().chain(kept).collect();
        let first = &runs_left[0].segments()[0];
        assert_eq!(first.base(), floor.first, "the log begins with a segment");
        first.begins_the_log(floor.removed_until_us);
        *runs = Arc::new(runs_left);
        removed
    }

    /// Where the log begins, if its beginning was cut off.
    pub(crate) fn floor(&self, history: HistoryId) -> Option<Floor> {
        let runs = self.runs();
        let first = &runs[0].segments()[0];
        let removed_until_us = first.removed_until_us()?;
        Some(Floor { history, first: first.base(), removed_until_us })
    }

    /// Replaces a damaged file: readers that start from now on use the new one.
    pub(crate) fn replace_file(&self, base: Position, file: Arc<dyn StorageFile>) {
        let mut runs = lock(&self.runs);
        let holds = |run: &Arc<Run>| run.segments().iter().any(|segment| segment.base() == base);
        let at = runs.iter().position(holds).expect("a segment of this log");
        let mended = runs[at].with_file(base, file);
        Arc::make_mut(&mut *runs)[at] = Arc::new(mended);
    }

    /// The damaged segments, ascending.
    pub(crate) fn damaged(&self) -> Vec<Position> {
        let runs = self.runs();
        let segments = runs.iter().flat_map(|run| run.segments());
        segments.filter(|segment| segment.damage().is_some()).map(|s| s.base()).collect()
    }

    /// The file of a segment and the base of the next one, if there is one.
    pub(crate) fn segment(&self, base: Position) -> Option<(Arc<OpenSegment>, Option<Position>)> {
        let runs = self.runs();
        let mut segments = runs.iter().flat_map(|run| run.segments());
        let segment = segments.by_ref().find(|segment| segment.base() == base)?;
        Some((Arc::clone(segment), segments.next().map(|after| after.base())))
    }

    /// The base of the segment before this one.
    pub(crate) fn base_before(&self, base: Position) -> Option<Position> {
        let runs = self.runs();
        let segments = runs.iter().flat_map(|run| run.segments());
        segments.map(|segment| segment.base()).take_while(|&of| of < base).last()
    }

    pub(crate) fn index_usage(&self) -> IndexUsage {
        let mut usage = IndexUsage::default();
        for run in self.runs().iter() {
            let index = run.index();
            let memory_bytes = index.memory_bytes() as u64;
            usage.memory_bytes += memory_bytes;
            // The last segment is being written; the one before may be active until it is sealed.
            usage.active_memory_bytes = memory_bytes;
            let Terms { types, tags } = index.terms();
            usage.terms.types += types;
            usage.terms.tags += tags;
        }
        usage
    }

    /// The run that begins with this segment.
    pub(crate) fn find(&self, base: Position) -> Option<Arc<Run>> {
        self.runs().iter().rev().find(|run| run.base() == base).cloned()
    }

    pub(crate) fn set_file(&self, base: Position, file: Arc<dyn StorageFile>) {
        if let Some(run) = self.find(base) {
            run.segments()[0].set_file(file);
        }
    }
}
