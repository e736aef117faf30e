//! The part of a worker that looks after time: waiting, time limits, and the end of a run.

use super::{
    Cut, INTERRUPTED_DRAIN_NS, OVERDUE_GRACE_NS, Phase, Reverse, Stage, Worker, WorkerResult,
};
use crate::engine::conn::State;
use crate::engine::pace::Pace;
use crate::engine::tally::{Tally, Window};
use crate::engine::usage::ThreadUse;
use crate::plan::Load;
use crate::result::{ErrorKind, OpenLoop, WorkerUse};
use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};

/// The longest time between two looks at time limits and the user's wish to stop.
const SCAN_NS: u64 = 50_000_000;

impl Worker {
    /// Waits for sockets until `wake_ns` at the latest; with spinning it only looks.
    ///
    /// `epoll_wait` counts in milliseconds; a moment before the next look at
    /// time limits is somebody's due time and gets a timer of its own.
    pub(super) fn wait(&mut self, events: &mut Vec<epoll::Event>, wake_ns: u64, now_ns: u64) {
        events.clear();
        let mut wait_ns = wake_ns.saturating_sub(now_ns).min(SCAN_NS);
        if self.setup.spin {
            wait_ns = 0;
        } else if wait_ns > 0 && wake_ns < self.next_scan_ns && self.timer_at_ns != wake_ns {
            self.timer_at_ns = wake_ns;
            let value = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait_ns).unwrap_or(1) };
            let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
            // If it cannot be set, the wait below still ends, only less exactly.
            let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait_ns).unwrap_or(0) };
        // Interrupted by a signal: the loop looks again.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout));
    }

    /// The next moment at which something must be done without a socket asking for it.
    pub(super) fn next_moment(&self, pace: Option<&Pace>, now_ns: u64, end_ns: u64) -> u64 {
        let mut next_ns = self.next_scan_ns;
        if self.stage == Stage::Sending {
            next_ns = next_ns.min(end_ns);
        }
        if let Some(Reverse((at_ns, _))) = self.sleeping.peek() {
            next_ns = next_ns.min(*at_ns);
        }
        match pace {
            // With no free place only an answer helps, and that wakes us; a server that
            // cannot be reached refuses each request when it is due.
            Some(pace)
                if (!self.idle.is_empty() || self.unreachable())
                    && pace.due_ns() < end_ns
                    && self.may_dispatch(now_ns, end_ns) =>
            {
                next_ns.min(pace.due_ns())
            }
            _ => next_ns,
        }
    }

    /// Looks after time limits and broken connections.
    pub(super) fn scan(&mut self, now_ns: u64, tally: &mut Tally) {
        self.next_scan_ns = now_ns + (self.setup.timeout_ns / 50).clamp(1_000_000, SCAN_NS);
        let down =
            |state| matches!(state, State::Broken { .. } | State::Connecting | State::Secure);
        if self.conns.iter().all(|conn| down(conn.state)) {
            self.unreachable_since_ns.get_or_insert(now_ns);
        } else {
            self.unreachable_since_ns = None;
        }
        for index in 0..self.conns.len() {
            match self.conns[index].state {
                State::Broken { retry_ns } if retry_ns <= now_ns => {
                    if self.stage == Stage::Sending {
                        self.open(index, tally);
                    }
                }
                State::Broken { retry_ns } => self.next_scan_ns = self.next_scan_ns.min(retry_ns),
                State::Connecting | State::Secure => {
                    let limit_ns = self.setup.connect_timeout_ns;
                    if now_ns.saturating_sub(self.conns[index].begun_ns) > limit_ns {
                        self.broken(index, ErrorKind::Connect, tally);
                    }
                }
                State::Open | State::Ending => self.scan_places(index, now_ns, tally),
            }
        }
    }

    fn scan_places(&mut self, index: usize, now_ns: u64, tally: &mut Tally) {
        for place in 0..self.setup.streams {
            let number = self.number(index, place);
            let at = self.places[number as usize];
            let passed_ns = now_ns.saturating_sub(at.times.sent_ns);
            if at.phase != Phase::UnderWay || passed_ns <= self.setup.timeout_ns {
                continue;
            }
            let conn = &mut self.conns[index];
            if conn.wire.cancel(place, &mut conn.out) {
                self.lose(number, ErrorKind::Timeout, tally);
                let generation = self.conns[index].generation;
                self.released(index, number, tally);
                if self.conns[index].generation != generation {
                    return;
                }
                self.flush(index, tally);
            } else {
                self.broken(index, ErrorKind::Timeout, tally);
                return;
            }
        }
    }

    /// Ends sending when time, count or the user says so, and waiting for answers soon
    /// after the user does. Returns the end of the measured part.
    pub(super) fn maybe_end(
        &mut self,
        now_ns: u64,
        end_ns: u64,
        pace: Option<&Pace>,
        tally: &mut Tally,
    ) -> u64 {
        let interrupted = self.control.stopping();
        if let Stage::Draining(until_ns) = &mut self.stage {
            if interrupted {
                *until_ns = (*until_ns).min(now_ns + INTERRUPTED_DRAIN_NS);
            }
            return end_ns;
        }
        let nobody_left = self.exhausted || self.places.iter().all(|at| at.phase == Phase::Done);
        let cut = self.cut(now_ns);
        if now_ns < end_ns && cut.is_none() && !(nobody_left && self.in_flight == 0) {
            return end_ns;
        }
        // Later than everything that was sent in this turn of the loop: it belongs to the figures.
        let end_ns = end_ns.min(self.setup.clock.now_ns() + 1);
        tally.end_at(end_ns);
        self.in_flight_at_end = self.in_flight;
        self.used_at_end = Some(ThreadUse::now(now_ns));
        self.cut = cut.filter(|_| now_ns < end_ns);
        let overdue = pace.is_some_and(|pace| pace.due_ns() < end_ns) && !self.exhausted;
        let drain_ns = match (interrupted, overdue) {
            (true, _) => INTERRUPTED_DRAIN_NS,
            (false, true) => self.setup.timeout_ns + OVERDUE_GRACE_NS,
            (false, false) => self.setup.timeout_ns,
        };
        // One scan more, so that a request sent at the very end meets its own time limit first.
        self.stage = Stage::Draining(now_ns + drain_ns + 2 * SCAN_NS);
        end_ns
    }

    /// What ends the run early at this moment, if anything does.
    fn cut(&self, now_ns: u64) -> Option<Cut> {
        if self.control.stopping() {
            return Some(Cut::Interrupted);
        }
        let since_ns = self.unreachable_since_ns?;
        // With a duration the run has an end anyway, and the server may come back.
        let endless = self.setup.duration_ns.is_none();
        (endless && now_ns - since_ns > self.setup.timeout_ns).then_some(Cut::Unreachable)
    }

    /// Whether requests of an open loop may still be sent: not for long after the
    /// end, and not at all after an interruption.
    pub(super) fn may_dispatch(&self, now_ns: u64, end_ns: u64) -> bool {
        let in_time = match self.stage {
            Stage::Sending => true,
            Stage::Draining(_) => {
                self.cut.is_none()
                    && !self.control.stopping()
                    && now_ns < end_ns.saturating_add(OVERDUE_GRACE_NS)
            }
        };
        in_time && !self.exhausted
    }

    /// Whether everything that will be answered has been.
    pub(super) fn finished(&self, now_ns: u64, end_ns: u64, pace: Option<&Pace>) -> bool {
        let Stage::Draining(until_ns) = self.stage else { return false };
        let due = pace.is_some_and(|pace| pace.due_ns() < end_ns) || !self.due_again.is_empty();
        let overdue = self.may_dispatch(now_ns, end_ns) && due;
        (self.in_flight == 0 && !overdue) || now_ns >= until_ns
    }

    /// Requests of the warm-up that still have no answer.
    fn waiting_since_warmup(&self, window: Window) -> u64 {
        let waiting =
            |at: &&super::Place| at.phase == Phase::UnderWay && at.times.due_ns < window.start_ns;
        self.places.iter().filter(waiting).count() as u64
    }

    pub(super) fn result(
        mut self,
        window: Window,
        end_ns: u64,
        pace: Option<Pace>,
        used: Option<ThreadUse>,
        mut tally: Tally,
    ) -> WorkerResult {
        let now_ns = self.setup.clock.now_ns();
        let ended = self.used_at_end.unwrap_or_else(|| ThreadUse::now(now_ns));
        let used = used.unwrap_or(ended).until(ended);
        let measured = |tally: &Tally, at: &super::Place| {
            at.phase == Phase::UnderWay && tally.measures(at.times.due_ns)
        };
        let unanswered = self.places.iter().filter(|at| measured(&tally, at)).count() as u64;
        let open_loop = pace.map(|mut pace| {
            // A backlog may reach back into the warm-up, which is in no figure.
            pace.skip_until(window.start_ns);
            let again = self.due_again.iter().filter(|due_ns| tally.measures(**due_ns)).count();
            let never_sent = if self.exhausted { 0 } else { pace.skip_until(end_ns) };
            let never_sent = never_sent + again as u64;
            let rate_per_s = match self.setup.load {
                Load::Open { rate_per_s, .. } => rate_per_s / f64::from(self.setup.workers),
                Load::Closed { .. } => 0.0,
            };
            OpenLoop {
                offered_rate_per_s: rate_per_s,
                due: self.sent_of_due + never_sent,
                sent: self.sent_of_due,
                never_sent,
                waited_for_connection: Some(self.waited_for_place),
            }
        });
        tally.finish();
        let sent: u64 = tally.endpoints.iter().map(|e| e.counters.sent).sum();
        // The warm-up made requests, too; not more can be different than were sent.
        let distinct = self.workload.distinct_requests().map(|distinct| distinct.min(sent));
        if let Some(first) = tally.endpoints.first_mut() {
            first.counters.cache_hits =
                Some(self.seen.cache_hits.saturating_sub(self.early_cache_hits));
            first.counters.distinct_requests = distinct;
            if let Some(opening) = &self.opening {
                first.merge(opening);
            }
        }
        WorkerResult {
            start_ns: window.start_ns,
            end_ns,
            warmup_requests: tally.warmup_requests,
            warmup_successes: tally.warmup_successes,
            warmup_unanswered: tally.warmup_lost + self.waiting_since_warmup(window),
            think_ns: self.think_ns,
            open_loop,
            unanswered,
            last_answer_ns: tally.last_answer_ns,
            waiting: self.in_flight_at_end > 0 || tally.lost_since_answer,
            server: self.seen.server.take(),
            first_error: self.first_error,
            usage: WorkerUse {
                pinned_cpu: self.setup.cpu_of(self.index),
                wall_ns: used.wall_ns,
                cpu_ns: used.cpu_ns,
                run_delay_ns: used.run_delay_ns,
                longest_loop_ns: self.longest_loop_ns,
                spin: self.setup.spin,
            },
            exhausted: self.exhausted,
            cut: self.cut,
            endpoints: tally.endpoints,
        }
    }
}
