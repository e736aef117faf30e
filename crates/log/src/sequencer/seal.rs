//! The indexes of full segments: written one after the other, on a thread that ends when there is
//! nothing to write. Commits go on meanwhile.
//!
//! One that cannot be written (a full disk, no descriptors) is kept: the index in memory goes on
//! serving. It is tried again after the next full segment, and by the journal's thread after a
//! while.

use super::merge::Merger;
use crate::options::Driver;
use crate::segments::Run;
use crate::threads::{self, lock};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// Time between attempts at indexes that could not be written.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(10);

/// A segment that takes no more events, and its length in bytes.
pub(crate) type FullSegment = (Arc<Run>, u64);

/// See the module.
pub(crate) struct Sealer {
    queue: Mutex<SealQueue>,
    /// Attempts that failed.
    failures: AtomicU64,
    /// Attempts that panicked. They have failed, too.
    panics: AtomicU64,
    /// The journal's thread, which is to look after what failed.
    journal: OnceLock<Thread>,
    merger: Arc<Merger>,
    driver: Driver,
    is_copy: bool,
}

#[derive(Default)]
struct SealQueue {
    waiting: VecDeque<FullSegment>,
    /// Tried, and to be tried again.
    failed: Vec<FullSegment>,
    /// The thread that works on `waiting`; it ends when that is empty.
    thread: Option<JoinHandle<()>>,
    running: bool,
}

impl Sealer {
    /// A sealer that is to try these again, which could not be written while the log was opened.
    /// The segments of a copy are full without a barrier, which it makes before it writes of them.
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

    /// Names the thread that tries again after a while.
    pub(crate) fn set_journal_thread(&self, thread: Thread) {
        let _ = self.journal.set(thread);
    }

    /// Has the index of a full segment written, and those that failed before.
    pub(super) fn seal(self: &Arc<Self>, full: FullSegment) {
        lock(&self.queue).waiting.push_back(full);
        self.retry();
    }

    /// Tries again what failed.
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

    /// Merges the indexes that there are.
    pub(crate) fn merge(&self) {
        self.merger.start();
    }

    /// Waits until nothing is being written.
    pub(super) fn finish(&self) {
        let thread = lock(&self.queue).thread.take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.merger.finish();
    }

    /// Indexes that are to be tried again.
    pub(crate) fn failed(&self) -> usize {
        lock(&self.queue).failed.len()
    }

    /// Attempts at writing or merging indexes that panicked since the log was opened.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed) + self.merger.panics()
    }

    /// Attempts that failed since the log was opened.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed) + self.merger.failures()
    }
}
