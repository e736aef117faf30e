//! Finds work that goes on although its time is over or its client has gone: a defect, because work
//! asks every millisecond whether it may go on. It is logged, and replaced in its queue.

use super::queue::Turn;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wellspring_log::Clock;

/// Time without a question after which work that should have ended is stuck, in µs; and the time
/// between two looks.
const PATIENCE_US: u64 = 1_000_000;

/// A piece of work in its queue.
pub(super) struct WatchedWork {
    pub(super) turn: Turn,
    stop: Arc<AtomicBool>,
    subject: Arc<str>,
    clock: Arc<dyn Clock>,
    limit_us: u64,
    began_us: u64,
    /// When it last asked whether it may go on.
    asked_us: AtomicU64,
    is_logged: AtomicBool,
}

impl WatchedWork {
    /// Work that begins now.
    pub(super) fn begin(
        turn: Turn,
        stop: Arc<AtomicBool>,
        subject: Arc<str>,
        clock: &Arc<dyn Clock>,
        limit_us: u64,
    ) -> WatchedWork {
        let began_us = clock.monotonic_us();
        WatchedWork {
            turn,
            stop,
            subject,
            clock: Arc::clone(clock),
            limit_us,
            began_us,
            asked_us: AtomicU64::new(began_us),
            is_logged: AtomicBool::new(false),
        }
    }

    /// Notes that it has asked whether it may go on.
    pub(super) fn ask(&self, now_us: u64) {
        self.asked_us.store(now_us, Relaxed);
    }

    fn look(&self) {
        let now_us = self.clock.monotonic_us();
        let running_us = now_us.saturating_sub(self.began_us);
        let should_have_ended = self.stop.load(Relaxed) || running_us > self.limit_us;
        let is_silent = now_us.saturating_sub(self.asked_us.load(Relaxed)) > PATIENCE_US;
        if should_have_ended && is_silent && !self.is_logged.swap(true, Relaxed) {
            let running_ms = running_us / 1_000;
            tracing::warn!(subject = &*self.subject, running_ms, "work does not end in time");
            self.turn.replace();
        }
    }
}

/// The work in progress. A task looks at it every second as long as there is any.
#[derive(Clone, Default)]
pub(super) struct Watchdog(Arc<Mutex<RunningWork>>);

#[derive(Default)]
struct RunningWork {
    works: HashMap<u64, Arc<WatchedWork>>,
    last: u64,
    is_looking: bool,
}

/// Watches work until dropped.
pub(super) struct Watch {
    pub(super) work: Arc<WatchedWork>,
    watchdog: Watchdog,
    number: u64,
}

impl Watchdog {
    /// Watches a piece of work.
    pub(super) fn watch(&self, work: WatchedWork) -> Watch {
        let work = Arc::new(work);
        let mut running = self.lock();
        running.last += 1;
        let number = running.last;
        running.works.insert(number, Arc::clone(&work));
        if !std::mem::replace(&mut running.is_looking, true) {
            tokio::spawn(self.clone().look());
        }
        drop(running);
        Watch { work, watchdog: self.clone(), number }
    }

    async fn look(self) {
        loop {
            tokio::time::sleep(Duration::from_micros(PATIENCE_US)).await;
            let mut running = self.lock();
            running.is_looking = !running.works.is_empty();
            if !running.is_looking {
                return;
            }
            running.works.values().for_each(|work| work.look());
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunningWork> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watchdog.lock().works.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::WorkQueue;
    use super::*;

    struct HandClock(AtomicU64);

    impl Clock for HandClock {
        fn wall_us(&self) -> u64 {
            0
        }
        fn monotonic_us(&self) -> u64 {
            self.0.load(Relaxed)
        }
    }

    #[test]
    fn work_that_goes_on_without_its_client_gives_its_lane_another_thread() {
        let hand = Arc::new(HandClock(AtomicU64::new(0)));
        let clock: Arc<dyn Clock> = Arc::clone(&hand) as _;
        let (queue, watchdog) = (WorkQueue::new(1, 8, &clock), Watchdog::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stop = Arc::new(AtomicBool::new(false));
            let turn = queue.enter().await;
            let work =
                WatchedWork::begin(turn, Arc::clone(&stop), "RETURN 1".into(), &clock, 30_000_000);
            let watch = watchdog.watch(work);
            let at = |now_us: u64| {
                hand.0.store(now_us, Relaxed);
                watch.work.look();
                tokio::time::timeout(Duration::from_millis(20), queue.enter())
            };
            assert!(at(20_000_000).await.is_err(), "it may run");
            stop.store(true, Relaxed);
            watch.work.ask(20_000_000);
            assert!(at(20_900_000).await.is_err(), "it has asked a moment ago");
            let other = at(21_100_000).await.expect("a thread more");
            assert!(at(50_000_000).await.is_err(), "and only one");
            watch.work.turn.end();
            assert!(at(60_000_000).await.is_err(), "the queue has its width again");
            drop(other);
            assert!(at(60_000_000).await.is_ok());
            drop(watch);
            assert!(watchdog.lock().works.is_empty());
        });
    }
}
