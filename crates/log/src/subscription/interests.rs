//! The interests of idle subscriptions: a committed batch wakes only those that it may concern.
//!
//! A subscription that has read everything registers under **keys**: for each item of its query one
//! of the item's tags, or each of its types if it has no tag; or the key of every event if an item
//! has neither. An event that matches the query has one of these keys. A separate thread, the
//! **notifier**, reads newly committed events and wakes the subscriptions whose keys occur in them.
//! The committer only checks whether any subscription waits and unparks the notifier.
//!
//! - **No event is missed.** A subscription registers with the position up to which it has read.
//!   The registration is accepted only if no pass of the notifier, running or finished, goes
//!   further; so a later pass matches every event after that position. Such a pass will happen: the
//!   publisher stores the head and then checks whether any subscription waits; a subscription
//!   counts itself as waiting and then checks the head, and unparks the notifier if it has moved.
//!   One of the two sees the other.
//! - **Cost.** A pass wakes all waiting subscriptions if that is cheaper than reading, so it reads
//!   at most [`EVENTS_FOR_A_WAKE`] events for each of them, however large a batch is. After a pass
//!   the notifier pauses as long as the pass took, and at least a millisecond: under load, commits
//!   are matched together, while an isolated one is announced at once.
//! - **Idle subscriptions advance.** Events that a finished pass has covered without waking a
//!   subscription do not match it: [`Interest::settled`].

use crate::feed::Feed;
use crate::read::{ReadOptions, Snapshot};
use crate::segments::Segments;
use crate::threads::{self, lock};
use crate::waiters::{Line, Rest, Slots, Ticket, TooManyWaiters, Wakers};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;
use wellspring_types::{Position, Query};

/// Maximum number of slots of waiting subscriptions, not counting threads; a subscription takes a
/// slot for each key.
const MAX_SLOTS: usize = 1 << 20;
/// A subscription with more keys than this is woken by every event.
const MAX_KEYS: usize = 64;
/// Number of events that can be read in the time it takes to wake a subscription and let it check.
const EVENTS_FOR_A_WAKE: u64 = 16;
/// Minimum pause between two passes.
const PAUSE: Duration = Duration::from_millis(1);
/// Number of keys looked up per lock acquisition.
const KEYS_AT_ONCE: usize = 1_024;

/// The key of every event.
const EVERYTHING: u64 = 0;

/// The waiting subscriptions of one log.
#[derive(Debug)]
pub(crate) struct Interests {
    shared: Arc<Shared>,
    /// Whether the notifier's thread was started, or must not be any more.
    begun: Mutex<bool>,
}

#[derive(Debug)]
struct Shared {
    feed: Feed,
    segments: Arc<Segments>,
    hasher: RandomState,
    /// Number of slots in lines.
    waiting: AtomicUsize,
    notifier: OnceLock<Thread>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    slots: Slots,
    /// By key. None is empty.
    lines: HashMap<u64, Line, BuildHasherDefault<IdentityHasher>>,
    /// Everything up to this position has been matched against all waiting subscriptions, and the
    /// matching ones were woken.
    matched: Position,
    /// The end of the latest pass; `matched` if none is running.
    matching: Position,
    closed: bool,
    /// Whether the notifier has ended.
    unattended: bool,
}

/// Keys are hashes already.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A waiting subscription's registration. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct Interest {
    shared: Arc<Shared>,
    keys: Box<[u64]>,
    /// One for each key while it waits.
    tickets: Vec<Ticket>,
    /// Everything up to this position does not match or has been read.
    settled: Position,
}

/// The kind of waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A task, which is bounded.
    Task,
    /// A thread, which is bounded elsewhere.
    Thread,
}

/// Whether to read the log again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// There may be a matching event, or the log is closed.
    LookAgain,
    /// No matching event up to now; the waker is called when that may have changed.
    Waiting,
}

impl Interests {
    /// Creates the registry. The notifier's thread starts with the first waiting subscription.
    pub(crate) fn new(feed: Feed, segments: Arc<Segments>) -> Interests {
        let head = feed.head();
        let state = State {
            slots: Slots::bounded(MAX_SLOTS),
            lines: HashMap::default(),
            matched: head,
            matching: head,
            closed: false,
            unattended: false,
        };
        let shared = Shared {
            feed,
            segments,
            hasher: RandomState::new(),
            waiting: AtomicUsize::new(0),
            notifier: OnceLock::new(),
            state: Mutex::new(state),
        };
        Interests { shared: Arc::new(shared), begun: Mutex::new(false) }
    }

    /// A registration for a subscription to `query`, which does not wait yet. Starts the notifier's
    /// thread; if the system cannot create it, waits are [refused](Interest::look).
    pub(crate) fn of(&self, query: &Query) -> Interest {
        self.begin();
        Interest {
            shared: Arc::clone(&self.shared),
            keys: self.shared.keys(query),
            tickets: Vec::new(),
            settled: 0,
        }
    }

    fn begin(&self) {
        if self.shared.notifier.get().is_some() {
            return;
        }
        let mut begun = lock(&self.begun);
        if *begun {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let life = move || {
            let _ending = Ending(Arc::clone(&shared));
            shared.keep_notifying();
        };
        if let Ok(thread) = threads::spawn("wellspring-notify", life) {
            let _ = self.shared.notifier.set(thread.thread().clone());
            *begun = true;
        }
    }

    /// Announces that the head has moved. Never blocks; does nothing if no subscription waits.
    pub(crate) fn head_moved(&self) {
        if self.shared.waiting.load(Ordering::SeqCst) > 0 {
            self.shared.nudge();
        }
    }

    /// Wakes all waiters for the last time, and ends the thread soon. The feed is closed.
    pub(crate) fn close(&self) {
        *lock(&self.begun) = true;
        self.shared.end(|state| state.closed = true);
        // Does not wait for the thread: one of the wakers that it calls may be closing the log.
        self.shared.nudge();
    }
}

/// When the notifier ends, however it ends, no waiter stays behind.
#[derive(Debug)]
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(|state| state.unattended = true);
    }
}

impl State {
    /// Rouses the lines of these keys; returns the number of slots.
    fn rouse(&mut self, keys: &[u64], note: Position, wakers: &mut Wakers) -> usize {
        let before = wakers.len();
        for key in keys {
            if let Some(mut line) = self.lines.remove(key) {
                self.slots.rouse(&mut line, note, wakers);
                assert!(line.is_empty(), "a line is roused as a whole");
            }
        }
        wakers.len() - before
    }

    fn rouse_all(&mut self, note: Position, wakers: &mut Wakers) -> usize {
        let before = wakers.len();
        for (_, mut line) in self.lines.drain() {
            self.slots.rouse(&mut line, note, wakers);
        }
        wakers.len() - before
    }
}

impl Shared {
    fn end(&self, mark: impl FnOnce(&mut State)) {
        let mut wakers = Wakers::unbounded();
        let mut state = lock(&self.state);
        mark(&mut state);
        let note = state.matched;
        let roused = state.rouse_all(note, &mut wakers);
        self.waiting.fetch_sub(roused, Ordering::SeqCst);
        drop(state);
        wakers.wake();
    }

    fn nudge(&self) {
        if let Some(thread) = self.notifier.get() {
            thread.unpark();
        }
    }

    fn key(&self, kind: u8, term: &str) -> u64 {
        // Differs from the key of every event. Terms that share a key cost an unnecessary check.
        self.hasher.hash_one((kind, term)) | 1
    }

    fn type_key(&self, event_type: &str) -> u64 {
        self.key(0, event_type)
    }

    fn tag_key(&self, tag: &str) -> u64 {
        self.key(1, tag)
    }

    /// Keys such that every event that matches the query has at least one of them.
    fn keys(&self, query: &Query) -> Box<[u64]> {
        let mut keys = HashSet::new();
        for item in &query.items {
            // A long tag is more likely to be specific than a short one.
            if let Some(tag) = item.tags.iter().max_by_key(|tag| tag.len()) {
                keys.insert(self.tag_key(tag));
            } else {
                keys.extend(item.types.iter().map(|event_type| self.type_key(event_type)));
            }
            if item.is_all() || keys.len() > MAX_KEYS {
                return [EVERYTHING].into();
            }
        }
        if keys.is_empty() { [EVERYTHING].into() } else { keys.into_iter().collect() }
    }

    /// The notifier's main loop.
    fn keep_notifying(&self) {
        loop {
            let unmatched = {
                let mut state = lock(&self.state);
                if state.closed {
                    return;
                }
                let head = self.feed.head();
                let idle = head <= state.matched || self.waiting.load(Ordering::SeqCst) == 0;
                (!idle).then(|| {
                    state.matching = head;
                    (state.matched, head)
                })
            };
            let Some((from, to)) = unmatched else {
                std::thread::park();
                continue;
            };
            let begun_us = threads::now_us();
            self.pass(from, to);
            let took = Duration::from_micros(threads::now_us().saturating_sub(begun_us));
            // Not shortened when this thread is unparked meanwhile.
            std::thread::sleep(took.max(PAUSE));
        }
    }

    /// Wakes the subscriptions that the events after `from` and up to `to` may concern.
    fn pass(&self, from: Position, to: Position) {
        assert!(from < to, "a pass goes over something");
        let waiting = self.waiting.load(Ordering::SeqCst) as u64;
        let all_want_all = {
            let state = lock(&self.state);
            state.lines.len() == 1 && state.lines.contains_key(&EVERYTHING)
        };
        let wake_all = all_want_all || waiting.saturating_mul(EVENTS_FOR_A_WAKE) <= to - from;
        let keys = if wake_all { None } else { self.read_keys(from, to) };
        let mut wakers = Wakers::unbounded();
        match keys {
            Some(keys) => {
                for keys in keys.chunks(KEYS_AT_ONCE) {
                    let mut state = lock(&self.state);
                    let roused = state.rouse(keys, from, &mut wakers);
                    self.waiting.fetch_sub(roused, Ordering::SeqCst);
                    drop(state);
                    wakers.wake();
                }
            }
            None => {
                let mut state = lock(&self.state);
                let roused = state.rouse_all(from, &mut wakers);
                self.waiting.fetch_sub(roused, Ordering::SeqCst);
                drop(state);
                wakers.wake();
            }
        }
        let mut state = lock(&self.state);
        assert!(state.matching == to, "one pass at a time");
        state.matched = to;
    }

    /// The distinct keys of the events after `from` and up to `to`; `None` if they cannot be read:
    /// then all subscriptions are woken and find out themselves.
    fn read_keys(&self, from: Position, to: Position) -> Option<Vec<u64>> {
        let mut keys = HashSet::<u64, BuildHasherDefault<IdentityHasher>>::default();
        keys.insert(EVERYTHING);
        let options = ReadOptions { after: Some(from), ..ReadOptions::default() };
        let mut events = Snapshot::new(&self.feed, &self.segments).read(&Query::all(), options);
        while let Some(event) = events.next().ok()? {
            if event.position() > to {
                break;
            }
            keys.insert(self.type_key(event.event_type()));
            keys.extend(event.tags().map(|tag| self.tag_key(tag)));
        }
        Some(keys.into_iter().collect())
    }
}

impl Interest {
    /// Whether to read the log again, given that everything up to `seen` has been read; if not,
    /// `waker` is called when that may have changed.
    ///
    /// # Errors
    /// [`TooManyWaiters`]. A retry helps once others have stopped waiting.
    pub(crate) fn look(
        &mut self,
        seen: Position,
        waker: &Waker,
        wait: Wait,
    ) -> Result<WaitOutcome, TooManyWaiters> {
        self.settled = self.settled.max(seen);
        let shared = Arc::clone(&self.shared);
        let mut state = lock(&shared.state);
        if state.closed {
            return Ok(WaitOutcome::LookAgain);
        }
        if !self.tickets.is_empty() {
            return Ok(self.look_again(&mut state, waker));
        }
        if state.unattended || shared.notifier.get().is_none() {
            return Err(TooManyWaiters { limit: 0 });
        }
        if shared.waiting.load(Ordering::SeqCst) == 0 && state.matching == state.matched {
            // No subscription waited, so nothing has been matched for a while, and nothing needs to
            // be.
            let from = state.matched.max(seen);
            (state.matched, state.matching) = (from, from);
        }
        if seen < state.matching {
            // Later events have been matched already, or are being matched, without this
            // subscription.
            return Ok(WaitOutcome::LookAgain);
        }
        self.join(&mut state, waker, wait)?;
        shared.waiting.fetch_add(self.tickets.len(), Ordering::SeqCst);
        drop(state);
        // Counted, then checked: the publisher sees a waiter, or this sees the head.
        if shared.feed.head() > seen {
            shared.nudge();
        }
        Ok(WaitOutcome::Waiting)
    }

    fn look_again(&mut self, state: &mut State, waker: &Waker) -> WaitOutcome {
        let roused = self.tickets.iter().any(|ticket| state.slots.rest(ticket) != Rest::Waiting);
        if roused {
            self.leave(state);
            return WaitOutcome::LookAgain;
        }
        for (ticket, key) in self.tickets.iter().zip(&self.keys) {
            let line = state.lines.get_mut(key).expect("it holds this slot");
            state.slots.register(line, ticket, waker);
        }
        WaitOutcome::Waiting
    }

    fn join(&mut self, state: &mut State, waker: &Waker, wait: Wait) -> Result<(), TooManyWaiters> {
        let room = state.slots.room();
        if wait == Wait::Task && room < self.keys.len() {
            return Err(TooManyWaiters { limit: MAX_SLOTS });
        }
        for key in &self.keys {
            let line = state.lines.entry(*key).or_default();
            self.tickets.push(state.slots.join_regardless(line, waker));
        }
        Ok(())
    }

    /// Everything up to this position is known not to match or has been read. Grows while it waits,
    /// without wake-ups.
    pub(crate) fn settled(&self) -> Position {
        if self.tickets.is_empty() {
            return self.settled;
        }
        let state = lock(&self.shared.state);
        self.settled.max(self.passed_over(&state))
    }

    /// How far passes have gone without waking this subscription.
    fn passed_over(&self, state: &State) -> Position {
        let roused = self.tickets.iter().filter_map(|ticket| match state.slots.rest(ticket) {
            Rest::Waiting => None,
            Rest::Roused(before) => Some(before),
        });
        roused.min().unwrap_or(state.matched)
    }

    fn leave(&mut self, state: &mut State) {
        self.settled = self.settled.max(self.passed_over(state));
        let mut in_line = 0;
        for (ticket, key) in self.tickets.drain(..).zip(&self.keys) {
            in_line += usize::from(state.slots.rest(&ticket) == Rest::Waiting);
            // A roused slot has left its line, and gets no new one.
            let mut none = Line::EMPTY;
            let line = state.lines.get_mut(key).unwrap_or(&mut none);
            state.slots.leave(line, ticket);
            if line.is_empty() {
                state.lines.remove(key);
            }
        }
        self.shared.waiting.fetch_sub(in_line, Ordering::SeqCst);
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        if !self.tickets.is_empty() {
            let shared = Arc::clone(&self.shared);
            self.leave(&mut lock(&shared.state));
        }
    }
}
