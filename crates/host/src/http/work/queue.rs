//! Queues of work: a bounded number of pieces run at a time, the others wait in order. Long work
//! yields to the others every few milliseconds.
//!
//! A piece that has begun keeps its thread, also while it waits for its next turn. So the number of
//! those that have begun has to stay below the number of threads: otherwise all of them wait for a
//! piece whose turn it is and for which no thread is left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wellspring_log::{Clock, GiveWay};

/// Time after which work yields to others, in µs.
const TURN_US: u64 = 10_000;

/// A queue of work with a bounded number of running pieces.
#[derive(Clone)]
pub(super) struct WorkQueue {
    turns: Arc<Semaphore>,
    /// How many more may begin.
    begun: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
}

/// The right to run, until dropped.
pub(super) struct Turn {
    queue: WorkQueue,
    /// Present until the turn ends, except while it waits.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// Present until it ends.
    begun: Mutex<Option<OwnedSemaphorePermit>>,
    began_us: AtomicU64,
    runtime: Handle,
    /// Whether another runs in its place until it ends.
    is_replaced: AtomicBool,
}

impl WorkQueue {
    /// A queue in which `width` pieces of work run at a time, at least one, of `most` that have
    /// begun.
    pub(super) fn new(width: usize, most: usize, clock: &Arc<dyn Clock>) -> WorkQueue {
        let [turns, begun] = [width.max(1), most].map(|many| Arc::new(Semaphore::new(many)));
        WorkQueue { turns, begun, clock: Arc::clone(clock) }
    }

    /// Waits for a turn. A dropped future leaves the queue.
    pub(super) async fn enter(&self) -> Turn {
        let (begun, turns) = (Arc::clone(&self.begun), Arc::clone(&self.turns));
        let begun = begun.acquire_owned().await.expect("a queue is never closed");
        let permit = turns.acquire_owned().await.expect("a queue is never closed");
        Turn {
            queue: self.clone(),
            permit: Mutex::new(Some(permit)),
            begun: Mutex::new(Some(begun)),
            began_us: AtomicU64::new(self.clock.monotonic_us()),
            runtime: Handle::current(),
            is_replaced: AtomicBool::new(false),
        }
    }
}

impl Turn {
    /// Lets the next in the queue run. Also done when dropped.
    pub(super) fn end(&self) {
        drop(self.begun.lock().unwrap_or_else(PoisonError::into_inner).take());
        let permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(permit) = permit
            && self.is_replaced.load(Relaxed)
        {
            permit.forget();
        }
    }

    /// Lets one more run until this ends. Without effect on work that waits or has ended.
    pub(super) fn replace(&self) {
        if let Ok(permit) = self.permit.try_lock()
            && permit.is_some()
            && !self.is_replaced.swap(true, Relaxed)
        {
            self.queue.turns.add_permits(1);
        }
    }
}

impl GiveWay for Turn {
    /// Waits at the end of the queue if its turn is over. Not for serving threads.
    fn give_way(&self) -> u64 {
        std::thread::yield_now();
        let clock = &self.queue.clock;
        let now_us = clock.monotonic_us();
        if now_us.saturating_sub(self.began_us.load(Relaxed)) < TURN_US {
            return 0;
        }
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(permit.is_some(), "work goes on only in its turn");
        // Returned first: the queue is served in order, so waiting work gets it before this.
        drop(permit.take());
        let turns = Arc::clone(&self.queue.turns);
        let next = match Arc::clone(&turns).try_acquire_owned() {
            Ok(next) => next,
            Err(_) => {
                self.runtime.block_on(turns.acquire_owned()).expect("a queue is never closed")
            }
        };
        *permit = Some(next);
        let then_us = clock.monotonic_us();
        self.began_us.store(then_us, Relaxed);
        then_us.saturating_sub(now_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    #[test]
    fn work_that_does_not_end_is_replaced_until_it_does() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let queue = WorkQueue::new(1, 8, &crate::clock::system());
            let stuck = queue.enter().await;
            stuck.replace();
            stuck.replace();
            let other = queue.enter().await;
            assert_eq!(queue.turns.available_permits(), 0);
            stuck.end();
            stuck.replace();
            assert_eq!(queue.turns.available_permits(), 0);
            drop(other);
            assert_eq!(queue.turns.available_permits(), 1);
        });
    }

    #[test]
    fn work_that_gives_way_leaves_threads_for_what_comes_next() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(4).build().unwrap();
        let all = async {
            let queue = WorkQueue::new(1, 3, &crate::clock::system());
            let piece = async |queue: WorkQueue| {
                let turn = queue.enter().await;
                let work = move || {
                    for _ in 0..3 {
                        std::thread::sleep(Duration::from_micros(TURN_US));
                        turn.give_way();
                    }
                    turn.end();
                };
                tokio::task::spawn_blocking(work).await.expect("it does not panic");
            };
            let pieces: Vec<_> =
                (0..8).map(|_| tokio::task::spawn_local(piece(queue.clone()))).collect();
            for piece in pieces {
                piece.await.expect("it does not panic");
            }
        };
        let ended = async { tokio::time::timeout(wellspring_patience::PATIENCE, all).await };
        let here = tokio::task::LocalSet::new();
        here.block_on(&runtime, ended).expect("no piece waits for ever");
    }

    #[test]
    fn work_that_runs_for_long_lets_the_line_go_first() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let queue = WorkQueue::new(1, 8, &crate::clock::system());
            let (most, running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let done = Arc::new(AtomicBool::new(false));
            let turn = queue.enter().await;
            let (told, counts) = (Arc::clone(&done), (Arc::clone(&most), Arc::clone(&running)));
            let long = tokio::task::spawn_blocking(move || {
                let (mut pauses, mut waited_us) = (0, 0);
                while !told.load(Relaxed) {
                    counts.0.fetch_max(counts.1.fetch_add(1, Relaxed) + 1, Relaxed);
                    std::thread::sleep(Duration::from_millis(2));
                    counts.1.fetch_sub(1, Relaxed);
                    let us = turn.give_way();
                    waited_us += us;
                    pauses += u32::from(us >= 1_000);
                }
                (waited_us, pauses)
            });
            for _ in 0..3 {
                let turn = queue.enter().await;
                let counts = (Arc::clone(&most), Arc::clone(&running));
                let short = tokio::task::spawn_blocking(move || {
                    counts.0.fetch_max(counts.1.fetch_add(1, Relaxed) + 1, Relaxed);
                    std::thread::sleep(Duration::from_millis(3));
                    counts.1.fetch_sub(1, Relaxed);
                    drop(turn);
                });
                short.await.unwrap();
            }
            done.store(true, Relaxed);
            let (waited_us, pauses) = long.await.unwrap();
            assert_eq!(most.load(Relaxed), 1, "one at a time");
            assert!((1..=3).contains(&pauses) && waited_us >= 3_000, "{pauses}, {waited_us} µs");
        });
    }
}
