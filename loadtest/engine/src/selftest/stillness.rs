//! How still the machine is while a case runs: a thread that does nothing but
//! wake up once a millisecond and look how late it is.
//!
//! A case that misses its times on a machine that lets nobody wake up in time
//! says nothing of the client. On a still machine it does.

use crate::clock::Clock;
use crate::engine::spawn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks.
const LOOK_NS: u64 = 1_000_000;
/// A machine is still if half of the looks are at most so late …
const STILL_P50_NS: u64 = 200_000;
/// … and 99 of 100 at most so late.
const STILL_P99_NS: u64 = 1_000_000;

/// How late half of the looks are on a quiet machine, in nanoseconds.
const QUIET_P50_NS: u64 = 60_000;

/// How late a thread woke up that asked to be woken, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stillness {
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
}

impl Stillness {
    /// How much later than on a quiet machine half of the looks were, in nanoseconds: times cannot
    /// be kept more exactly than that here.
    pub(super) fn excess_ns(self) -> u64 {
        self.p50_ns.saturating_sub(QUIET_P50_NS)
    }

    pub(super) fn is_still(self) -> bool {
        self.p50_ns <= STILL_P50_NS && self.p99_ns <= STILL_P99_NS
    }
}

/// Watches until it is asked.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Stillness>>,
}

impl Watch {
    /// Begins to watch.
    pub(super) fn start() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = spawn("stillness", move || {
            crate::machine::fine_timers();
            let clock = Clock::start();
            let mut late_ns = Vec::new();
            while !stopping.load(Ordering::Relaxed) {
                let due_ns = clock.now_ns() + LOOK_NS;
                std::thread::sleep(Duration::from_nanos(LOOK_NS));
                late_ns.push(clock.now_ns().saturating_sub(due_ns));
            }
            late_ns.sort_unstable();
            let at = |hundredths: usize| {
                late_ns.get(late_ns.len() * hundredths / 100).copied().unwrap_or(0)
            };
            Stillness { p50_ns: at(50), p99_ns: at(99) }
        })?;
        Ok(Watch { stop, thread: Some(thread) })
    }

    /// What was seen since the beginning.
    pub(super) fn finish(mut self) -> Stillness {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waking_up_late_is_seen_and_judged() {
        let watch = Watch::start().unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let seen = watch.finish();
        assert!(seen.p50_ns > 0 && seen.p50_ns <= seen.p99_ns, "{seen:?}");
        assert!(Stillness { p50_ns: 200_000, p99_ns: 1_000_000 }.is_still());
        assert!(!Stillness { p50_ns: 200_001, p99_ns: 1_000_000 }.is_still());
        assert!(!Stillness { p50_ns: 60_000, p99_ns: 1_000_001 }.is_still());
        let excess = |p50_ns| Stillness { p50_ns, p99_ns: 0 }.excess_ns();
        assert_eq!((excess(30_000), excess(95_000)), (0, 35_000));
    }
}
