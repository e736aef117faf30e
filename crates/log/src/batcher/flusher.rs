//! The thread that takes partitions and passes them to the sink.

use super::shared::{Partition, Shared};
use super::sink::{Sink, Trouble};
use crate::options::Clock;
use crate::threads;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pause after the sink was busy, after it had no node to store for it, and after its device was
/// full.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
const UNAVAILABLE_PAUSE: Duration = Duration::from_millis(20);
const FULL_PAUSE: Duration = Duration::from_millis(100);
/// Number of attempts on a full device while closing.
const LAST_ATTEMPTS: u32 = 10;
/// Maximum sleep. Wake-ups do not depend on it.
const SLEEP: Duration = Duration::from_secs(1);

pub(super) struct Flusher<S> {
    shared: Arc<Shared>,
    sink: S,
    clock: Arc<dyn Clock>,
    /// Sorted by order.
    partitions: Vec<Partition>,
    /// Start of the last flush, µs.
    flushed_us: u64,
    /// Since when events may have been waiting, µs: earlier pushes were observed then.
    looked_us: u64,
    attempts_left: u32,
}

/// Marks the end of the thread, however it ends: nothing is accepted any more, and waiters are
/// woken.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

enum NextStep {
    GoOn,
    End,
}

impl<S: Sink> Flusher<S> {
    pub(super) fn new(shared: Arc<Shared>, sink: S, clock: Arc<dyn Clock>) -> Flusher<S> {
        Flusher {
            shared,
            sink,
            partitions: Vec::new(),
            flushed_us: 0,
            // There are no producers yet, so nothing has been waiting.
            looked_us: clock.monotonic_us(),
            clock,
            attempts_left: LAST_ATTEMPTS,
        }
    }

    /// The thread's main loop.
    pub(super) fn run(mut self) {
        let _ending = Ending(Arc::clone(&self.shared));
        loop {
            // Read before observing, so that everything accepted before closing is observed.
            let closing = self.shared.is_closing();
            if closing && self.shared.terms.are_over() {
                return;
            }
            if !self.look() && !self.look_if_urgent() {
                self.retire();
                if closing {
                    return;
                }
                self.sleep();
                continue;
            }
            if let Some(pause) = self.may_wait().filter(|_| !closing) {
                std::thread::park_timeout(pause);
                continue;
            }
            if let NextStep::End = self.flush(closing) {
                return;
            }
        }
    }

    fn admit(&mut self) {
        let arrivals = self.shared.arrivals();
        if !arrivals.is_empty() {
            self.partitions.extend(arrivals);
            self.partitions.sort_by_key(|partition| partition.order);
        }
    }

    /// Observes every partition, the ones stored last first. If a thread has pushed to a partition
    /// with a lower order and then to this one, either both pushes are observed or the later one is
    /// not. For the same reason, new partitions are admitted before each lower order is observed.
    fn look(&mut self) -> bool {
        let mut some = false;
        let mut observed_from = None;
        loop {
            self.admit();
            let end = observed_from.map_or(self.partitions.len(), |order| self.first_of(order));
            let Some(order) = self.partitions[..end].last().map(|last| last.order) else {
                return some;
            };
            let start = self.first_of(order);
            for partition in &mut self.partitions[start..end] {
                partition.reader.observe();
                some |= partition.reader.has_content();
            }
            observed_from = Some(order);
        }
    }

    /// When nothing was found: clears the urgent flag, which would keep this thread from sleeping
    /// for ever, then observes again. Everything pushed before the flag was set is seen then.
    fn look_if_urgent(&mut self) -> bool {
        let found = self.shared.take_urgent() && self.look();
        if found {
            self.shared.hurry();
        }
        found
    }

    /// Index of the first partition with this order or a higher one.
    fn first_of(&self, order: u8) -> usize {
        self.partitions.partition_point(|partition| partition.order < order)
    }

    /// How long to keep gathering before a flush.
    fn may_wait(&self) -> Option<Duration> {
        let options = &self.shared.options;
        let largest = self.partitions.iter().map(|p| p.reader.observed_bytes()).max();
        if self.shared.is_urgent() || largest.unwrap_or(0) >= options.flush_bytes as u64 {
            return None;
        }
        let since_us = self.clock.monotonic_us().saturating_sub(self.flushed_us);
        let left = options.flush_age.saturating_sub(Duration::from_micros(since_us));
        (!left.is_zero()).then_some(left)
    }

    fn flush(&mut self, closing: bool) -> NextStep {
        let began_us = self.clock.monotonic_us();
        let waiting_since_us = std::mem::replace(&mut self.looked_us, began_us);
        self.flushed_us = began_us;
        // Before observing again: a request after this is covered by the next flush.
        self.shared.take_urgent();
        self.look();
        let parts: Vec<&[u8]> =
            self.partitions.iter().flat_map(|partition| partition.reader.parts()).collect();
        let stored = self.sink.store(&parts);
        // Counted before the room is released, so that a released receipt is always counted.
        self.shared.stored.add_alone(stored.events, stored.bytes as u64);
        self.release(stored.bytes);
        // Not if nothing was stored: waiters could not continue and would hurry this thread again.
        if stored.bytes > 0 {
            self.shared.waiters.wake_all();
        }
        let Some(trouble) = stored.trouble else {
            let now_us = self.clock.monotonic_us();
            let window_us = now_us.saturating_sub(waiting_since_us);
            self.shared.window_last_us.store(window_us, Ordering::Relaxed);
            self.shared.window_longest_us.fetch_max(window_us, Ordering::Relaxed);
            self.shared.take_again();
            self.answer();
            self.retire();
            return NextStep::GoOn;
        };
        // The rest has been waiting since before.
        self.looked_us = waiting_since_us;
        self.recover(trouble, closing)
    }

    fn recover(&mut self, trouble: Trouble, closing: bool) -> NextStep {
        self.shared.stay_urgent();
        let pause = match trouble {
            Trouble::Busy => BUSY_PAUSE,
            Trouble::Full | Trouble::Unavailable => {
                if trouble == Trouble::Full {
                    self.shared.refuse_as_full();
                }
                // With a limit, attempts continue as long as there is time.
                let left = self.shared.terms.left().filter(|_| closing);
                if closing && left.is_none() {
                    self.attempts_left -= 1;
                    if self.attempts_left == 0 {
                        return NextStep::End;
                    }
                }
                let pause = match trouble {
                    Trouble::Unavailable if !closing || left.is_some() => UNAVAILABLE_PAUSE,
                    _ => FULL_PAUSE,
                };
                left.map_or(pause, |left| left.min(pause))
            }
            Trouble::Closed(reason) => {
                self.shared.refuse(&reason);
                return NextStep::End;
            }
        };
        self.answer();
        self.pause(pause);
        NextStep::GoOn
    }

    /// Pauses completely, unless the batcher closes meanwhile. A request for a flush does not
    /// shorten it: each attempt wakes waiting producers, which ask again, so there would be no
    /// pause.
    fn pause(&self, pause: Duration) {
        // Real time, whatever clock the batcher is given, because a thread can only sleep by it.
        let until_us = threads::now_us() + pause.as_micros() as u64;
        let was_closing = self.shared.is_closing();
        loop {
            let left_us = until_us.saturating_sub(threads::now_us());
            if left_us == 0 || self.shared.is_closing() != was_closing {
                return;
            }
            std::thread::park_timeout(Duration::from_micros(left_us));
        }
    }

    /// Releases the first `bytes` of all parts.
    fn release(&mut self, mut bytes: usize) {
        for partition in &mut self.partitions {
            let content: usize = partition.reader.parts().iter().map(|part| part.len()).sum();
            let len = content.min(bytes);
            if len > 0 {
                partition.reader.release(len);
            }
            bytes -= len;
        }
        assert!(bytes == 0, "a sink stores no more than it is given");
    }

    fn answer(&self) {
        self.partitions.iter().for_each(|partition| partition.link.answer());
    }

    /// Removes empty partitions whose producers are gone.
    fn retire(&mut self) {
        let shared = &self.shared;
        self.partitions.retain_mut(|partition| {
            // The finished flag is read before the content: nothing is pushed after it is set.
            let gone = partition.link.finished.load(Ordering::Acquire) && {
                partition.reader.observe();
                !partition.reader.has_content()
            };
            if gone {
                shared.retire(&partition.link);
            }
            !gone
        });
    }

    /// Sleeps until a producer pushes.
    ///
    /// Producers check the flag without a fence, because they check it at every push. One may thus
    /// push just as the flag is set and miss it; its push becomes visible a moment later and is
    /// found when the first, short sleep ends.
    fn sleep(&mut self) {
        let shared = Arc::clone(&self.shared);
        shared.fall_asleep();
        let first = shared.options.flush_age.max(Duration::from_millis(1));
        for nap in [first, SLEEP] {
            if self.look() || shared.is_closing() || shared.is_urgent() || !shared.is_asleep() {
                break;
            }
            std::thread::park_timeout(nap);
        }
        shared.awake();
        self.looked_us = self.clock.monotonic_us();
    }
}
