//! Merges the indexes of adjacent segments in the background, so that a query over the whole log
//! uses few of them although segments are small.
//!
//! [`FAN`] adjacent runs with the same number of segments become one, unless the resulting index is
//! too large: part of it is in memory during the merge. A failure leaves the old indexes in place.
//! The thread has the lowest priority, so on a busy machine merging takes longer.

use crate::error::ReadError;
use crate::index::{self, IndexError, SealedIndex, SegmentIndex};
use crate::options::Driver;
use crate::segments::{IndexOwner, NewIndexFile, Run, Segments, open_sealed};
use crate::storage::{Storage, write_under};
use crate::threads::{self, lock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use wellspring_format::segment::index_name;

/// Number of runs that become one.
const FAN: usize = 4;
/// Maximum size of merged index files. Merging takes about as much memory.
const MERGED_BYTES: u64 = 96 << 20;

/// The merger; see the module's documentation.
pub(crate) struct Merger {
    storage: Arc<dyn Storage>,
    segments: Arc<Segments>,
    driver: Driver,
    thread: Mutex<MergeThread>,
    /// Held while the runs of sealed segments are replaced by others.
    indexes: Mutex<()>,
    stop: AtomicBool,
    /// Number of failed attempts.
    failures: AtomicU64,
    /// Number of attempts that panicked.
    panics: AtomicU64,
}

#[derive(Default)]
struct MergeThread {
    handle: Option<JoinHandle<()>>,
    running: bool,
}

/// The result of a round.
enum Round {
    /// Some indexes were merged. There may be more to do.
    Merged,
    /// There is nothing to merge.
    Idle,
    /// It failed or was stopped. It is tried again when the next segment is full.
    Failed,
}

impl Merger {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        segments: Arc<Segments>,
        driver: Driver,
    ) -> Merger {
        Merger {
            storage,
            segments,
            driver,
            thread: Mutex::default(),
            indexes: Mutex::default(),
            stop: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    /// Merges all that can be merged, on a thread that then ends.
    pub(crate) fn start(self: &Arc<Self>) {
        let mut thread = lock(&self.thread);
        if thread.running || self.stop.load(Ordering::Relaxed) || self.next_runs().is_none() {
            return;
        }
        if let Driver::Turns { .. } = self.driver {
            thread.running = true;
            drop(thread);
            return self.work();
        }
        let merger = Arc::clone(self);
        // If no thread can be created, the next full segment tries again.
        if let Ok(handle) = threads::spawn_idle("wellspring-merge", move || merger.work()) {
            *thread = MergeThread { handle: Some(handle), running: true };
        }
    }

    fn work(&self) {
        loop {
            // A panic leaves the old indexes in place; the thread must be marked as ended.
            let round = catch_unwind(AssertUnwindSafe(|| self.merge_once())).unwrap_or_else(|_| {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.panics.fetch_add(1, Ordering::Relaxed);
                Round::Failed
            });
            let mut thread = lock(&self.thread);
            // Checked again under the lock: a sealer that comes now finds the thread running.
            let done = match round {
                Round::Merged => false,
                Round::Idle => self.next_runs().is_none(),
                Round::Failed => true,
            };
            if done {
                thread.running = false;
                return;
            }
        }
    }

    /// Stops the current merge and waits for it. Nothing is merged any more.
    pub(super) fn finish(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let handle = lock(&self.thread).handle.take();
        if let Some(handle) = handle {
            let _ = handle.join();
        }
    }

    /// Failed attempts since the log was opened.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Attempts that panicked since the log was opened.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// The oldest runs to merge.
    fn next_runs(&self) -> Option<Vec<(Arc<Run>, Arc<SealedIndex>)>> {
        let runs = self.segments.runs();
        runs.windows(FAN).find_map(|window| {
            let count = window[0].segments().len();
            let alike = window.iter().all(|run| run.segments().len() == count);
            if !alike || count * FAN > index::MOST_SEGMENTS {
                return None;
            }
            let sealed = window.iter().map(|run| match run.index() {
                SegmentIndex::Sealed(index) => Some((Arc::clone(run), index)),
                SegmentIndex::Active(_) => None,
            });
            let sealed = sealed.collect::<Option<Vec<_>>>()?;
            let bytes: u64 = sealed.iter().map(|(_, index)| index.file_bytes()).sum();
            (bytes <= MERGED_BYTES).then_some(sealed)
        })
    }

    /// While the result lives, no runs are merged.
    pub(super) fn own_indexes(&self) -> MutexGuard<'_, ()> {
        lock(&self.indexes)
    }

    fn merge_once(&self) -> Round {
        let _own = self.own_indexes();
        let Some(group) = self.next_runs() else { return Round::Idle };
        let (runs, indexes): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        // Written under a temporary name, so that readers can rebuild their indexes meanwhile.
        let base = runs[0].base();
        let temporary = format!("{}.merged.tmp", index_name(base));
        let mut last_read = 0;
        let written = write_under(&*self.storage, &temporary, |file| {
            index::merge(&indexes, runs[0].seed(), &self.stop, &NewIndexFile(file)).map_err(
                |(place, error)| {
                    last_read = place;
                    error
                },
            )
        });
        match written {
            Ok(_) if self.put_in_place(&runs, &temporary, indexes[0].salt()).is_ok() => {
                return Round::Merged;
            }
            Ok(_) => {}
            Err(IndexError::Stopped(_)) => return Round::Failed,
            // If it is damaged, it is rebuilt from its segments, as a reader would do.
            Err(fault) => drop(runs[last_read].mend(fault)),
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        Round::Failed
    }

    /// Makes the index in a temporary file replace those of these runs.
    fn put_in_place(&self, runs: &[Arc<Run>], temporary: &str, salt: u64) -> Result<(), ReadError> {
        let name = index_name(runs[0].base());
        let failed = |error: String| ReadError::Io { doing: format!("writing {name}"), error };
        let mut owned: Vec<_> = runs.iter().map(|run| run.own_index_file()).collect();
        let renamed = self.storage.rename(temporary, &name).and_then(|()| self.storage.sync_dir());
        renamed.map_err(|error| failed(error.to_string()))?;
        // The first run no longer owns the file, whatever happens now.
        *owned[0] = IndexOwner::Gone;
        let opened = open_sealed(&*self.storage, runs[0].base(), salt);
        let index = opened.map_err(|error| failed(error.to_string()))?;
        let index = index.ok_or_else(|| failed("it cannot be read back".into()))?;
        let segments: Vec<_> = runs.iter().flat_map(|run| run.segments().to_vec()).collect();
        let events = index.len();
        let run = Run::of(Arc::clone(&self.storage), segments, SegmentIndex::Sealed(index));
        run.set_events(events);
        self.segments.replace(Arc::new(run));
        owned.iter_mut().for_each(|owner| **owner = IndexOwner::Gone);
        // The next opening removes what a crash leaves of these.
        for run in &runs[1..] {
            let _ = self.storage.remove(&index_name(run.base()));
        }
        let _ = self.storage.sync_dir();
        Ok(())
    }
}
