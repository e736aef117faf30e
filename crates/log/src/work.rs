//! Limits on index work: reads and judgements count their steps here and stop at a step limit, a
//! deadline or when the client leaves. Without limits, two common tags that never coincide would
//! keep a thread busy to the end of the log.

use crate::options::Clock;
use crate::threads;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps between two checks of the flag and the clock. A step costs from 20 ns (memory) to about 4
/// µs (a block read from a file), so a flag is noticed within about a millisecond.
const LOOK_STEPS: u64 = 256;

/// Steps after which work yields: about a quarter of a millisecond in memory. On a busy core each
/// yield can cost a scheduling slice of every thread that goes first.
const GIVE_WAY_STEPS: u64 = 16 * LOOK_STEPS;

/// The time limit on work counts processor time; this multiple of it may pass in total.
const PASSING_FACTOR: u64 = 10;

/// Why work stopped early. Results so far are not an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stopped {
    /// The deadline or the time limit passed. The same work needs more time or must be smaller.
    Deadline,
    /// The stop flag was set: the answer is no longer awaited.
    Cancelled,
    /// The step limit was reached. The same work may succeed with a higher limit, perhaps on
    /// another thread.
    Steps,
    /// An index must be rebuilt first, which can take seconds and which this work leaves to other
    /// threads ([`Work::leaving_repairs`]). The same work without that setting succeeds.
    Repair,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stopped::Deadline => "it exceeded its time limit; narrow the query",
            Stopped::Cancelled => "it was cancelled because its client has gone",
            Stopped::Steps => "it exceeded its step limit",
            Stopped::Repair => "an index must be rebuilt first",
        })
    }
}

/// A rule for yielding, where many long pieces of work take turns.
pub trait GiveWay: Send + Sync {
    /// Lets others run, perhaps until it is this work's turn again; returns how long that took, in
    /// µs.
    fn give_way(&self) -> u64;
}

/// Whether work may rebuild a damaged index that it encounters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repair {
    /// It rebuilds the index, which can take seconds.
    Here,
    /// It stops with [`Stopped::Repair`].
    Elsewhere,
}

/// The budget of one piece of index work, and how much of it has been used.
///
/// A step is an access to one index entry, one look-up of a term, or half a KiB of records read.
/// The clock and the flag are checked every 256 steps, the step limit at every step.
#[derive(Clone)]
pub struct Work {
    steps: u64,
    /// The step count at which something must be checked next: the limit, or flag and clock.
    next_look: u64,
    step_limit: u64,
    deadline: Option<(Arc<dyn Clock>, u64)>,
    time_limit: Option<TimeLimit>,
    stop: Option<Arc<AtomicBool>>,
    gives_way: Option<Arc<dyn GiveWay>>,
    repair: Repair,
    /// The step count at which it yields next.
    next_pause: u64,
}

impl Work {
    /// Unlimited work.
    #[must_use]
    pub const fn unbounded() -> Work {
        Work {
            steps: 0,
            next_look: u64::MAX,
            step_limit: u64::MAX,
            deadline: None,
            time_limit: None,
            stop: None,
            gives_way: None,
            repair: Repair::Here,
            next_pause: GIVE_WAY_STEPS,
        }
    }

    /// Adds a limit on the total number of steps, including those already taken.
    #[must_use]
    pub fn with_step_limit(mut self, steps: u64) -> Work {
        self.step_limit = steps;
        self.plan_look();
        self
    }

    /// Adds a deadline on the clock's monotonic time.
    #[must_use]
    pub fn with_deadline(mut self, clock: Arc<dyn Clock>, deadline_us: u64) -> Work {
        self.deadline = Some((clock, deadline_us));
        self.plan_look();
        self
    }

    /// Adds a limit on the processor time that the calling thread, which does the work, uses from
    /// now on, in µs. Ten times as much time may pass in all, waiting included.
    #[must_use]
    pub fn with_time_limit(mut self, clock: Arc<dyn Clock>, limit_us: u64) -> Work {
        self.time_limit = Some(TimeLimit::begin(clock, limit_us));
        self.plan_look();
        self
    }

    /// Adds a stop flag.
    #[must_use]
    pub fn with_stop(mut self, stop: Arc<AtomicBool>) -> Work {
        self.stop = Some(stop);
        self.plan_look();
        self
    }

    /// Makes the work yield to other threads that wait for the core every few thousand steps; for
    /// long work beside serving threads.
    #[must_use]
    pub fn giving_way(self) -> Work {
        self.giving_way_by(Arc::new(SchedulerYield))
    }

    /// Makes the work yield according to a rule. The time that others take extends the deadline.
    #[must_use]
    pub fn giving_way_by(mut self, rule: Arc<dyn GiveWay>) -> Work {
        self.gives_way = Some(rule);
        self.plan_look();
        self
    }

    /// Makes the work stop with [`Stopped::Repair`] at a damaged index; for serving threads.
    #[must_use]
    pub fn leaving_repairs(mut self) -> Work {
        self.repair = Repair::Elsewhere;
        self
    }

    /// Whether the work rebuilds damaged indexes.
    pub(crate) fn repair(&self) -> Repair {
        self.repair
    }

    /// Number of steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts `n` steps before they are taken.
    ///
    /// # Errors
    /// [`Stopped`]: they must not be taken. Later calls fail too, unless a deadline or a limit was
    /// extended.
    #[inline]
    pub fn step(&mut self, n: u64) -> Result<(), Stopped> {
        self.steps = self.steps.saturating_add(n);
        if self.steps < self.next_look { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&mut self) -> Result<(), Stopped> {
        // Stopped work checks again at its next step, so that it stays stopped.
        self.next_look = self.steps;
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Stopped::Cancelled);
        }
        if self.steps > self.step_limit {
            return Err(Stopped::Steps);
        }
        if self.deadline.as_ref().is_some_and(|(clock, at_us)| clock.monotonic_us() > *at_us) {
            return Err(Stopped::Deadline);
        }
        if self.time_limit.as_mut().is_some_and(TimeLimit::is_over) {
            return Err(Stopped::Deadline);
        }
        self.plan_look();
        if self.steps >= self.next_pause {
            self.next_pause = self.steps.saturating_add(GIVE_WAY_STEPS);
            self.pause();
        }
        Ok(())
    }

    /// Yields between two parts of the work that count no steps.
    pub(crate) fn pause(&mut self) {
        let Some(rule) = &self.gives_way else { return };
        let waited_us = rule.give_way();
        if let Some((_, at_us)) = &mut self.deadline {
            *at_us = at_us.saturating_add(waited_us);
        }
    }

    fn plan_look(&mut self) {
        let timed = self.gives_way.is_some()
            || self.deadline.is_some()
            || self.time_limit.is_some()
            || self.stop.is_some();
        let every = if timed { self.steps.saturating_add(LOOK_STEPS) } else { u64::MAX };
        self.next_look = every.min(self.step_limit.saturating_add(1));
    }
}

/// A limit on the processor time of one thread.
#[derive(Clone)]
struct TimeLimit {
    clock: Arc<dyn Clock>,
    limit_us: u64,
    /// The thread's processor time when the work began.
    began_us: u64,
    /// The monotonic time before which it cannot be over: processor time is asked of the system,
    /// which takes longer than a few steps.
    ask_at_us: u64,
    /// The monotonic time at which the work ends in any case.
    end_us: u64,
}

impl TimeLimit {
    fn begin(clock: Arc<dyn Clock>, limit_us: u64) -> TimeLimit {
        let (now_us, began_us) = (clock.monotonic_us(), clock.thread_us());
        let end_us = now_us.saturating_add(limit_us.saturating_mul(PASSING_FACTOR));
        TimeLimit { clock, limit_us, began_us, ask_at_us: now_us.saturating_add(limit_us), end_us }
    }

    fn is_over(&mut self) -> bool {
        let now_us = self.clock.monotonic_us();
        if now_us <= self.ask_at_us {
            return false;
        }
        let used_us = self.clock.thread_us().saturating_sub(self.began_us);
        let is_over = used_us > self.limit_us || now_us > self.end_us;
        if !is_over {
            self.ask_at_us = now_us.saturating_add(self.limit_us - used_us);
        }
        is_over
    }
}

/// Leaves the choice to the scheduler.
struct SchedulerYield;

impl GiveWay for SchedulerYield {
    fn give_way(&self) -> u64 {
        threads::give_way();
        0
    }
}

impl Default for Work {
    fn default() -> Work {
        Work::unbounded()
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("steps", &self.steps)
            .field("step_limit", &self.step_limit)
            .field("deadline_us", &self.deadline.as_ref().map(|(_, at_us)| at_us))
            .field("stop", &self.stop)
            .field("gives_way", &self.gives_way.is_some())
            .field("repair", &self.repair)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    struct SetClock(AtomicU64);

    /// Monotonic time, and a thread's.
    #[derive(Default)]
    struct TwoClocks(AtomicU64, AtomicU64);

    impl Clock for TwoClocks {
        fn wall_us(&self) -> u64 {
            0
        }
        fn monotonic_us(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
        fn thread_us(&self) -> u64 {
            self.1.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_time_limit_counts_the_time_of_the_thread_and_ends_in_any_case() {
        let clock = Arc::new(TwoClocks::default());
        let mut work = Work::unbounded().with_time_limit(clock.clone(), 100);
        let mut at = |monotonic_us: u64, thread_us: u64| {
            clock.0.store(monotonic_us, Ordering::Relaxed);
            clock.1.store(thread_us, Ordering::Relaxed);
            work.step(LOOK_STEPS)
        };
        assert_eq!(at(100, 100), Ok(()));
        assert_eq!(at(900, 60), Ok(()), "it has waited for a processor");
        assert_eq!(at(945, 101), Err(Stopped::Deadline));
        assert_eq!(at(945, 101), Err(Stopped::Deadline), "it stays stopped");
        let mut idle = Work::unbounded().with_time_limit(clock.clone(), 100);
        clock.0.store(945 + 1_001, Ordering::Relaxed);
        assert_eq!(idle.step(LOOK_STEPS), Err(Stopped::Deadline));
    }

    impl Clock for SetClock {
        fn wall_us(&self) -> u64 {
            0
        }
        fn monotonic_us(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_step_limit_is_exact() {
        let mut work = Work::unbounded().with_step_limit(10);
        assert_eq!(work.step(4), Ok(()));
        assert_eq!(work.step(6), Ok(()));
        assert_eq!(work.step(1), Err(Stopped::Steps));
        assert_eq!(work.step(0), Err(Stopped::Steps), "it stays stopped");
        assert_eq!(work.steps(), 11);
        let mut more = work.with_step_limit(12);
        assert_eq!(more.step(1), Ok(()));
    }

    #[test]
    fn a_flag_and_a_deadline_are_seen_within_256_steps() {
        let clock = Arc::new(SetClock(AtomicU64::new(5)));
        let stop = Arc::new(AtomicBool::new(false));
        let of = || Work::unbounded().with_deadline(clock.clone(), 7).with_stop(stop.clone());
        let steps_until_stopped = |mut work: Work| loop {
            if let Err(stopped) = work.step(1) {
                return (stopped, work.steps());
            }
        };
        let (mut late, cancelled) = (of(), of());
        assert_eq!(late.step(100_000), Ok(()), "neither has come");
        clock.0.store(8, Ordering::Relaxed);
        let before = late.steps();
        let (stopped, steps) = steps_until_stopped(late);
        assert_eq!((stopped, steps - before <= LOOK_STEPS), (Stopped::Deadline, true));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(steps_until_stopped(cancelled), (Stopped::Cancelled, LOOK_STEPS));
    }

    #[test]
    fn yielding_changes_only_which_thread_runs() {
        let mut work = Work::unbounded().giving_way().with_step_limit(LOOK_STEPS * 3);
        for _ in 0..LOOK_STEPS * 3 {
            assert_eq!(work.step(1), Ok(()));
        }
        assert_eq!(work.step(1), Err(Stopped::Steps));
    }

    #[test]
    fn time_given_to_others_is_not_the_works_own() {
        struct Slow(Arc<SetClock>);
        impl GiveWay for Slow {
            fn give_way(&self) -> u64 {
                self.0.0.fetch_add(1_000, Ordering::Relaxed);
                1_000
            }
        }
        let clock = Arc::new(SetClock(AtomicU64::new(0)));
        let rule = Arc::new(Slow(Arc::clone(&clock)));
        let mut work = Work::unbounded().with_deadline(clock.clone(), 50).giving_way_by(rule);
        for _ in 0..10 * GIVE_WAY_STEPS {
            assert_eq!(work.step(1), Ok(()));
        }
        assert!(clock.monotonic_us() >= 9_000, "it gave way");
        clock.0.fetch_add(51, Ordering::Relaxed);
        assert_eq!(work.step(LOOK_STEPS), Err(Stopped::Deadline));
    }

    #[test]
    fn unbounded_work_never_stops() {
        let mut work = Work::unbounded();
        assert_eq!(work.step(u64::MAX - 1), Ok(()));
        assert_eq!(work.steps(), u64::MAX - 1);
    }
}
