//! Writes the indexes of full segments one after another, on a thread that ends when there are none
//! left. Commits continue meanwhile.
//!
//! If one cannot be written (a full disk, no descriptors), the index in memory stays in use.
//! Writing is retried after the next full segment, and by the journal's thread after a while.

use super::merge::Merger;
use crate::options::Driver;
use crate::segments::Run;
use crate::threads::{self, lock};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// Time between attempts to write failed indexes.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(10);

/// A segment that accepts no more events, and its size in bytes.
pub(crate) type FullSegment = (Arc<Run>, u64);

/// The sealer; see the module's documentation.
pub(crate) struct Sealer {
    queue: Mutex<SealQueue>,
    /// Number of failed attempts.
    failures: AtomicU64,
    /// Number of attempts that panicked; they also count as failed.
    panics: AtomicU64,
    /// The journal's thread, which schedules retries.
    journal: OnceLock<Thread>,
    merger: Arc<Merger>,
    driver: Driver,
    is_copy: bool,
}

#[derive(Default)]
struct SealQueue {
    waiting: VecDeque<FullSegment>,
    /// Segments whose attempt failed, to be retried.
    failed: Vec<FullSegment>,
    /// The thread that processes `waiting`; it ends when that is empty.
    thread: Option<JoinHandle<()>>,
    running: bool,
}

impl Sealer {
    /// A sealer that will retry these segments, which failed while the log was opened. Segments of
    /// a copy are full without a barrier, so it makes one before it writes their index.
    pub(crate) fn with_failed(
        failed: Vec<FullSegment>,
        merger: Merger,
        driver: Driver,
        is_copy: bool,
    ) -> Sealer {
        let failures = AtomicU64::new(failed.len() as u64);
        let queue = Mutex::new(SealQueue { failed, ..SealQueue::default() });
        let panics = AtomicU64::new(0);
        let (journal, merger) = (OnceLock::new(), Arc::new(merger));
        Sealer { queue, failures, panics, journal, merger, driver, is_copy }
    }

    /// Sets the thread that schedules retries.
    pub(crate) fn set_journal_thread(&self, thread: Thread) {
        let _ = self.journal.set(thread);
    }

    /// Writes the index of a full segment, and retries those that failed before.
    pub(super) fn seal(self: &Arc<Self>, full: FullSegment) {
        lock(&self.queue).waiting.push_back(full);
        self.retry();
    }

    /// Retries those that failed.
    pub(super) fn retry(self: &Arc<Self>) {
        let mut queue = lock(&self.queue);
        let failed = std::mem::take(&mut queue.failed);
        queue.waiting.extend(failed);
        if queue.running || queue.waiting.is_empty() {
            return;
        }
        if let Driver::Turns { .. } = self.driver {
            queue.running = true;
            drop(queue);
            return self.work();
        }
        let sealer = Arc::clone(self);
        match threads::spawn("wellspring-seal", move || sealer.work()) {
            Ok(thread) => {
                queue.running = true;
                queue.thread = Some(thread);
            }
            Err(_) => {
                let waiting = std::mem::take(&mut queue.waiting);
                self.failures.fetch_add(waiting.len() as u64, Ordering::Relaxed);
                queue.failed.extend(waiting);
            }
        }
    }

    fn work(&self) {
        loop {
            let mut queue = lock(&self.queue);
            let Some((segment, end)) = queue.waiting.pop_front() else {
                queue.running = false;
                return;
            };
            drop(queue);
            let sealed = catch_unwind(AssertUnwindSafe(|| {
                (!self.is_copy || segment.sync().is_ok()) && segment.seal(end).is_ok()
            }));
            if matches!(sealed, Ok(true)) {
                self.merger.start();
            } else {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.panics.fetch_add(sealed.is_err().into(), Ordering::Relaxed);
                lock(&self.queue).failed.push((segment, end));
                if let Some(thread) = self.journal.get() {
                    thread.unpark();
                }
            }
        }
    }

    /// Merges the existing indexes.
    pub(crate) fn merge(&self) {
        self.merger.start();
    }

    /// While the result lives, no runs are merged.
    pub(crate) fn own_indexes(&self) -> MutexGuard<'_, ()> {
        self.merger.own_indexes()
    }

    /// Waits until nothing is being written.
    pub(super) fn finish(&self) {
        let thread = lock(&self.queue).thread.take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.merger.finish();
    }

    /// Number of indexes to be retried.
    pub(crate) fn failed(&self) -> usize {
        lock(&self.queue).failed.len()
    }

    /// Attempts to write or merge indexes that panicked since the log was opened.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed) + self.merger.panics()
    }

    /// Attempts that failed since the log was opened.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed) + self.merger.failures()
    }
}
