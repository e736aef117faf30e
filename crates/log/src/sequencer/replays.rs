//! Retries that overtook their first attempt. Once that is durable, a retry is compared with what
//! is stored. This takes look-ups in the whole log and disk reads, so it never happens on a
//! committing thread.
//!
//! One thread processes them and ends when there are none left. Their total size is bounded from
//! the moment they are recognised ([`Replays::reserve`]).

use super::gather::{ReplayRequest, answer};
use super::{Counters, judge};
use crate::append::{Append, Appended};
use crate::error::AppendError;
use crate::feed::Feed;
use crate::options::Driver;
use crate::read::Snapshot;
use crate::segments::Segments;
use crate::threads::{self, lock};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use wellspring_types::Position;

/// The queue; see the module's documentation.
pub(crate) struct Replays {
    segments: Arc<Segments>,
    feed: Feed,
    counters: Arc<Counters>,
    queue: Mutex<Queue>,
    /// Encoded size of retries that are recognised but not answered yet.
    bytes: Arc<AtomicUsize>,
    most_bytes: usize,
    driver: Driver,
}

/// A retry's reserved bytes, until it is answered.
pub(crate) struct ReplayBytes {
    bytes: usize,
    account: Arc<AtomicUsize>,
}

impl Drop for ReplayBytes {
    fn drop(&mut self) {
        self.account.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<ReplayRequest>,
    /// Whether a thread is processing them.
    running: bool,
}

impl Replays {
    pub(crate) fn new(
        segments: Arc<Segments>,
        feed: Feed,
        counters: Arc<Counters>,
        most_bytes: usize,
        driver: Driver,
    ) -> Replays {
        let bytes = Arc::default();
        Replays { segments, feed, counters, queue: Mutex::default(), bytes, most_bytes, driver }
    }

    /// Reserves a retry's bytes; `None` if too many wait. A single one always fits.
    pub(super) fn reserve(&self, append: &Append) -> Option<ReplayBytes> {
        let bytes = append.events.byte_len();
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let reserved = ReplayBytes { bytes, account: Arc::clone(&self.bytes) };
        (before == 0 || before + bytes <= self.most_bytes).then_some(reserved)
    }

    /// Answers retries on another thread, or on this one if the system cannot create one.
    pub(super) fn submit(self: &Arc<Self>, requests: Vec<ReplayRequest>) {
        let mut queue = lock(&self.queue);
        queue.requests.extend(requests);
        if queue.running {
            return;
        }
        queue.running = true;
        drop(queue);
        let replays = Arc::clone(self);
        if matches!(self.driver, Driver::Turns { .. })
            || threads::spawn("wellspring-replay", move || replays.work()).is_err()
        {
            self.work();
        }
    }

    /// The answer to a retry that met a durable event at `position`.
    pub(super) fn compare(
        &self,
        append: &Append,
        position: Position,
    ) -> Result<Appended, AppendError> {
        let snapshot = Snapshot::new(&self.feed, &self.segments);
        let appended = judge::replay(&snapshot, append, position)?;
        Counters::add(&self.counters.replays, 1);
        Ok(appended)
    }

    fn work(&self) {
        loop {
            let mut queue = lock(&self.queue);
            let Some(request) = queue.requests.pop_front() else {
                queue.running = false;
                return;
            };
            drop(queue);
            // A panic loses this answer only.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let ReplayRequest { replay, done } = request;
                answer(done, self.compare(&replay.append, replay.position));
            }));
        }
    }
}
