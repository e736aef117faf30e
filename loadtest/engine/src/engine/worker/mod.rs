//! One worker thread: its connections, its users, its clock, nothing shared.
//!
//! The loop waits for sockets with the precision of `epoll_pwait2` (or spins),
//! reads, judges, and sends what is next or what is due. Everything it measures
//! goes into its own [`Tally`].

use super::conn::{Conn, State};
use super::fault::Fault;
use super::pace::Pace;
use super::setup::{Control, Cut, Setup, WorkerResult};
use super::tally::{Tally, Times, Window};
use super::usage::ThreadUse;
use super::wire::{Heads, Layout, ServerFacts};
use crate::plan::Load;
use crate::random::SplitMix64;
use crate::result::{EndpointResult, ErrorKind};
use crate::workload::{Next, Workload};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// How long a user whose request could not be made waits before it tries again.
const RETRY_NS: u64 = 10_000_000;
/// How long overdue requests of an open loop may still be sent after the measured part.
const OVERDUE_GRACE_NS: u64 = 1_000_000_000;
/// How long answers are waited for after an interruption.
const INTERRUPTED_DRAIN_NS: u64 = 1_000_000_000;
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// Where one request at a time can be under way.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    phase: Phase,
    endpoint: u16,
    times: Times,
}

/// What a place is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Wants to go on as soon as its connection is open.
    #[default]
    Ready,
    /// In [`Worker::idle`].
    Idle,
    /// In [`Worker::sleeping`].
    Asleep,
    /// A request is under way.
    UnderWay,
    /// Its user has nothing more to send.
    Done,
}

/// How far the run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Sending.
    Sending,
    /// Past the end; waiting for answers until the moment given.
    Draining(u64),
}

pub(super) struct Worker {
    setup: Arc<Setup>,
    control: Arc<Control>,
    index: u32,
    started: bool,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to; the past if to nothing.
    timer_at_ns: u64,
    conns: Vec<Conn>,
    places: Vec<Place>,
    workload: Box<dyn Workload>,
    random: SplitMix64,
    /// Free places of an open loop, and of any loop before the start.
    idle: VecDeque<u32>,
    /// Users of a closed loop that think or wait to try again, by the moment they go on.
    sleeping: BinaryHeap<Reverse<(u64, u32)>>,
    heads: Heads,
    seen: ServerFacts,
    buffer: Vec<u8>,
    /// A connection whose requests are written with those that follow, if these are its own too.
    unflushed: Option<usize>,
    /// Whether requests were lost with connections that the server ended: it may do so without
    /// announcing it, after any answer.
    ends_unannounced: bool,
    in_flight: u64,
    granted: u64,
    next_scan_ns: u64,
    think_ns: u64,
    sent_of_due: u64,
    /// When requests were due that a server did not take, in open loop.
    due_again: VecDeque<u64>,
    /// Requests of these that found no free place when they were due.
    waited_for_place: u64,
    /// When a request was due and no place was free, last.
    starved_at_ns: u64,
    longest_loop_ns: u64,
    /// What the thread had used when sending ended: waiting for the last answers is no work to be
    /// shared out over.
    used_at_end: Option<ThreadUse>,
    /// Answers from a cache before the measured part.
    early_cache_hits: u64,
    first_error: Option<Fault>,
    /// What opening the first connections took.
    opening: Option<EndpointResult>,
    stage: Stage,
    in_flight_at_end: u64,
    exhausted: bool,
    cut: Option<Cut>,
    /// Since when no connection has been open.
    unreachable_since_ns: Option<u64>,
}

impl Worker {
    pub(super) fn new(setup: Arc<Setup>, control: Arc<Control>, index: u32) -> Result<Self, Errno> {
        let share = setup.share_of(index);
        let users = share.connections * setup.streams;
        let workload =
            setup.source.workload(index, setup.workers, setup.seed.wrapping_add(u64::from(index)));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        // No connection has this number: its events only wake the loop.
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(u64::MAX), edge)?;
        Ok(Worker {
            epoll,
            timer,
            timer_at_ns: 0,
            conns: (0..share.connections).map(|_| Conn::new(&setup)).collect(),
            places: vec![Place::default(); users as usize],
            started: false,
            random: SplitMix64::stream(setup.seed, 0x7417 ^ u64::from(index)),
            idle: VecDeque::with_capacity(users as usize),
            sleeping: BinaryHeap::new(),
            heads: Heads::default(),
            seen: ServerFacts::default(),
            buffer: vec![0; READ_BYTES],
            unflushed: None,
            ends_unannounced: false,
            in_flight: 0,
            granted: 0,
            next_scan_ns: 0,
            think_ns: 0,
            sent_of_due: 0,
            due_again: VecDeque::new(),
            waited_for_place: 0,
            starved_at_ns: 0,
            longest_loop_ns: 0,
            used_at_end: None,
            early_cache_hits: 0,
            first_error: None,
            opening: None,
            stage: Stage::Sending,
            in_flight_at_end: 0,
            exhausted: false,
            cut: None,
            unreachable_since_ns: None,
            setup,
            control,
            index,
            workload,
        })
    }

    /// Opens all connections, or as many as can be in the time for connecting.
    /// Returns how many are open, and the first error.
    pub(super) fn connect_all(&mut self) -> (u32, Option<Fault>) {
        // Nothing is measured yet; a window without length keeps these out of the figures.
        let (sender, _nobody) = std::sync::mpsc::channel();
        let window = Window { start_ns: u64::MAX, end_ns: u64::MAX };
        let mut unmeasured =
            Tally::new(&self.setup.names, false, self.setup.phases, window, sender);
        let give_up_ns = self.setup.clock.now_ns() + self.setup.connect_timeout_ns;
        for conn in 0..self.conns.len() {
            self.open(conn, &mut unmeasured);
        }
        let mut events = Vec::with_capacity(256);
        loop {
            let now_ns = self.setup.clock.now_ns();
            let pending =
                self.conns.iter().any(|c| matches!(c.state, State::Connecting | State::Secure));
            if !pending || now_ns > give_up_ns || self.control.stopping() {
                break;
            }
            self.wait(&mut events, now_ns + 10_000_000, now_ns);
            self.handle(&events, &mut unmeasured);
        }
        self.opening = unmeasured.endpoints.into_iter().next();
        let open = self.conns.iter().filter(|conn| conn.state == State::Open).count();
        (u32::try_from(open).unwrap_or(u32::MAX), self.first_error.clone())
    }

    /// Runs from `start_ns` to the end and returns what was measured.
    pub(super) fn run(
        mut self,
        start_ns: u64,
        slices: std::sync::mpsc::Sender<super::slice::Gathered>,
    ) -> WorkerResult {
        let window = self.setup.window(start_ns);
        let open = matches!(self.setup.load, Load::Open { .. });
        let mut tally = Tally::new(&self.setup.names, open, self.setup.phases, window, slices);
        let mut pace = self.setup.pace(self.index, start_ns);
        let mut events = Vec::with_capacity(256);
        let mut used = None;
        loop {
            let now_ns = self.setup.clock.now_ns();
            if now_ns >= start_ns {
                break;
            }
            self.wait(&mut events, start_ns, now_ns);
            self.handle(&events, &mut tally);
        }
        self.begin(&mut tally);
        let mut end_ns = window.end_ns;
        let mut looked_ns = self.setup.clock.now_ns();
        loop {
            let now_ns = self.setup.clock.now_ns();
            if used.is_none() && now_ns >= window.start_ns {
                used = Some(ThreadUse::now(now_ns));
                self.longest_loop_ns = 0;
                self.early_cache_hits = self.seen.cache_hits;
            }
            self.wake(now_ns, &mut tally);
            if let Some(pace) = &mut pace {
                self.dispatch(pace, now_ns, end_ns, &mut tally);
            }
            if now_ns >= self.next_scan_ns {
                self.scan(now_ns, &mut tally);
                tally.roll(now_ns);
                self.control.publish(self.index, &tally);
            }
            end_ns = self.maybe_end(now_ns, end_ns, pace.as_ref(), &mut tally);
            if self.finished(now_ns, end_ns, pace.as_ref()) {
                break;
            }
            let before_ns = self.setup.clock.now_ns();
            self.longest_loop_ns = self.longest_loop_ns.max(before_ns - looked_ns);
            let wake_ns = self.next_moment(pace.as_ref(), before_ns, end_ns);
            self.wait(&mut events, wake_ns, before_ns);
            looked_ns = self.setup.clock.now_ns();
            self.handle(&events, &mut tally);
        }
        self.result(window, end_ns, pace, used, tally)
    }

    fn begin(&mut self, tally: &mut Tally) {
        self.started = true;
        if tally.is_open() {
            return;
        }
        let waiting = std::mem::take(&mut self.idle);
        let now_ns = self.setup.clock.now_ns();
        for place in waiting {
            match self.setup.load {
                // Users do not begin in step: each at a moment of its own within the longest think
                // time.
                Load::Closed { think_max_us, .. } if think_max_us > 0 => {
                    let after_ns = self.random.between(0, think_max_us * 1000);
                    self.sleep(place, now_ns + after_ns);
                }
                _ => self.go_on(place, tally),
            }
        }
        self.flush_rest(tally);
    }

    fn sleep(&mut self, place: u32, until_ns: u64) {
        self.places[place as usize].phase = Phase::Asleep;
        self.sleeping.push(Reverse((until_ns, place)));
    }

    /// A user of a closed loop sends its next request, now or when its connection is open.
    fn go_on(&mut self, place: u32, tally: &mut Tally) {
        let conn = self.conn_of(place);
        if self.conns[conn].state == State::Open {
            self.send(place, None, tally);
            self.flush_in_turn(conn, tally);
        } else {
            self.places[place as usize].phase = Phase::Ready;
        }
    }

    /// Wakes users whose thinking is over.
    fn wake(&mut self, now_ns: u64, tally: &mut Tally) {
        while let Some(Reverse((at_ns, place))) = self.sleeping.peek().copied() {
            if at_ns > now_ns || self.stage != Stage::Sending {
                break;
            }
            self.sleeping.pop();
            self.go_on(place, tally);
        }
        self.flush_rest(tally);
    }

    /// Sends what is due, as long as places are free.
    fn dispatch(&mut self, pace: &mut Pace, now_ns: u64, end_ns: u64, tally: &mut Tally) {
        self.send_due(pace, now_ns, end_ns, tally);
        self.flush_rest(tally);
    }

    fn send_due(&mut self, pace: &mut Pace, mut now_ns: u64, end_ns: u64, tally: &mut Tally) {
        loop {
            let due_ns = self.due_again.front().copied().unwrap_or(pace.due_ns());
            if due_ns > now_ns || due_ns >= end_ns || !self.may_dispatch(now_ns, end_ns) {
                return;
            }
            let Some(place) = self.next_idle() else {
                if !self.unreachable() {
                    self.starved_at_ns = now_ns;
                    return;
                }
                // Whoever called now would be refused: the request is lost, not late.
                if !self.grant(tally.measures(due_ns)) {
                    return;
                }
                self.advance(pace);
                self.sent_of_due += u64::from(tally.measures(due_ns));
                tally.unsendable(0, ErrorKind::Connect, due_ns, now_ns);
                continue;
            };
            if !self.grant(tally.measures(due_ns)) {
                self.rest(place);
                return;
            }
            self.advance(pace);
            let measured = u64::from(tally.measures(due_ns));
            self.sent_of_due += measured;
            // Since it was due there was a moment when every place was taken.
            self.waited_for_place += if self.starved_at_ns >= due_ns { measured } else { 0 };
            self.send(place, Some(due_ns), tally);
            self.flush_in_turn(self.conn_of(place), tally);
            now_ns = self.setup.clock.now_ns();
        }
    }

    /// Goes on to the request that is due next.
    fn advance(&mut self, pace: &mut Pace) {
        if self.due_again.pop_front().is_none() {
            pace.advance();
        }
    }

    /// A free place on an open connection.
    fn next_idle(&mut self) -> Option<u32> {
        while let Some(place) = self.idle.pop_front() {
            if self.conns[self.conn_of(place)].state == State::Open {
                return Some(place);
            }
            // It comes back when its connection is open again.
            self.places[place as usize].phase = Phase::Ready;
        }
        None
    }

    /// Puts a place with those that are free.
    fn rest(&mut self, place: u32) {
        self.places[place as usize].phase = Phase::Idle;
        self.idle.push_back(place);
    }

    /// Whether one more request may be sent under a limit on their number.
    fn grant(&mut self, measured: bool) -> bool {
        if !measured || !self.control.limited {
            return true;
        }
        if self.granted == 0 {
            self.granted = self.control.take_budget();
        }
        if self.granted == 0 {
            self.exhausted = true;
            return false;
        }
        self.granted -= 1;
        true
    }

    /// Sends the next request of the user at `place`, whose connection is open. `due_ns` is given
    /// in open loop.
    fn send(&mut self, place: u32, due_ns: Option<u64>, tally: &mut Tally) {
        self.places[place as usize].phase = Phase::Done;
        if self.stage != Stage::Sending && due_ns.is_none() {
            return;
        }
        let conn_index = self.conn_of(place);
        let now_ns = self.setup.clock.now_ns();
        if due_ns.is_none() && !self.grant(tally.measures(now_ns)) {
            return;
        }
        let due = due_ns.unwrap_or(now_ns);
        let first_user = self.setup.first_place_of(self.index);
        match self.workload.next(first_user + place) {
            Next::Send(request) => {
                let conn = &mut self.conns[conn_index];
                let needs = self.setup.needs[usize::from(request.endpoint)];
                let layout = Layout {
                    authority: &self.setup.authority,
                    scheme: self.setup.scheme,
                    keep_alive: self.setup.keep_alive,
                };
                let before = conn.out.len();
                let on_conn = place % self.setup.streams;
                conn.wire.send(on_conn, &request, needs, layout, &mut conn.out);
                let times = Times { due_ns: due, sent_ns: now_ns, ..Times::default() };
                let bytes = conn.out.len() - before;
                tally.sent(request.endpoint, &times, bytes);
                self.places[place as usize] =
                    Place { phase: Phase::UnderWay, endpoint: request.endpoint, times };
                self.in_flight += 1;
            }
            Next::Failed { endpoint } => {
                tally.unsendable(endpoint, ErrorKind::Request, due, now_ns);
                if due_ns.is_some() {
                    self.rest(place);
                } else {
                    self.sleep(place, now_ns + RETRY_NS);
                }
            }
            // What was granted goes to somebody who has something to send.
            Next::Done => self.granted += u64::from(self.control.limited && tally.measures(due)),
        }
    }
}

mod answers;
mod conns;
mod end;
