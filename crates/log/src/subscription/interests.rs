//! What idle subscriptions wait for: a committed batch wakes those alone that it may concern.
//!
//! A subscription that has looked at everything there is registers under **keys**: for each item of
//! its query one of the item's tags, or each of its types if it has no tag; one key for everything
//! if an item asks for nothing in particular. An event that matches the query has one of them. A
//! thread of the log's own, the **notifier**, reads the events that were committed since it last
//! looked and wakes the subscriptions whose keys occur in them. The committer does no more for all
//! this than to look whether anything waits and to unpark the notifier.
//!
//! - **No event is missed.** A subscription registers with the position up to which it has looked.
//!   It is taken only if no pass of the notifier, begun or ended, goes further; so every event
//!   behind that position is still to be matched against it, by a later pass. That such a pass
//!   comes: the publisher stores the head and then looks whether anything waits; a subscription
//!   counts itself as waiting and then looks at the head, and unparks the notifier if it has moved.
//!   One of the two sees the other.
//! - **Cost.** A pass wakes everything that waits if that is cheaper than reading, so it costs at
//!   most [`EVENTS_FOR_A_WAKE`] events of reading for each that waits, however large a batch was.
//!   After a pass the notifier pauses as long as it took, and a millisecond at least: under load
//!   commits are matched together, while a single quiet one is told at once.
//! - **Idle subscriptions advance.** Everything that a finished pass has gone over without waking
//!   a subscription does not match it: [`Interest::settled`].

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

/// Most slots of subscriptions that wait, threads not counted; one takes a slot for each key.
const MAX_SLOTS: usize = 1 << 20;
/// A subscription with more keys than this is woken by every event.
const MAX_KEYS: usize = 64;
/// So many events are read in the time that it takes to wake a subscription and let it look.
const EVENTS_FOR_A_WAKE: u64 = 16;
/// Shortest pause between two passes.
const PAUSE: Duration = Duration::from_millis(1);
/// Keys looked up under one hold of the lock.
const KEYS_AT_ONCE: usize = 1_024;

/// The key of every event.
const EVERYTHING: u64 = 0;

/// The subscriptions of one log that wait.
#[derive(Debug)]
pub(crate) struct Interests {
    shared: Arc<Shared>,
    /// Whether the notifier's thread was begun, or is not to be any more.
    begun: Mutex<bool>,
}

#[derive(Debug)]
struct Shared {
    feed: Feed,
    segments: Arc<Segments>,
    hasher: RandomState,
    /// Slots in lines.
    waiting: AtomicUsize,
    notifier: OnceLock<Thread>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    slots: Slots,
    /// By key. None is empty.
    lines: HashMap<u64, Line, BuildHasherDefault<Hashed>>,
    /// Everything up to here has been matched against all that waited, and they have been woken.
    matched: Position,
    /// The end of the pass that has begun last; `matched` if none is under way.
    matching: Position,
    closed: bool,
    /// The notifier has ended.
    unattended: bool,
}

/// Keys are hashes already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
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

/// A subscription's place among those that wait. Dropped, it waits no longer.
#[derive(Debug)]
pub(crate) struct Interest {
    shared: Arc<Shared>,
    keys: Box<[u64]>,
    /// One for each key while it waits.
    tickets: Vec<Ticket>,
    /// Everything up to here does not match or has been looked at.
    settled: Position,
}

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A task, which is bounded.
    Task,
    /// A thread, which is bounded elsewhere.
    Thread,
}

/// Whether there is reason to look at the log again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// There may be a matching event, or the log is closed.
    LookAgain,
    /// Nothing up to now; the waker is called when that may have changed.
    Waiting,
}

impl Interests {
    /// Nothing waits yet. The notifier's thread begins with the first that does.
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

    /// A place for a subscription to `query`, which does not wait yet. Begins the notifier's
    /// thread; if the system gives none, its waits are [refused](Interest::look).
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

    /// Says that the head has moved. Never waits; does nothing if nothing waits.
    pub(crate) fn head_moved(&self) {
        if self.shared.waiting.load(Ordering::SeqCst) > 0 {
            self.shared.nudge();
        }
    }

    /// Wakes everything that waits, for the last time, and ends the thread soon. The feed is
    /// closed.
    pub(crate) fn close(&self) {
        *lock(&self.begun) = true;
        self.shared.end(|state| state.closed = true);
        // Not waited for: one of the wakers that it calls may be what closes the log.
        self.shared.nudge();
    }
}

/// When the notifier ends, however it ends, nothing waits for it.
#[derive(Debug)]
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(|state| state.unattended = true);
    }
}

impl State {
    /// Rouses the lines of these keys; tells how many slots that were.
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
        // None is the key of everything. Terms with one key cost a look in vain.
        self.hasher.hash_one((kind, term)) | 1
    }

    fn type_key(&self, event_type: &str) -> u64 {
        self.key(0, event_type)
    }

    fn tag_key(&self, tag: &str) -> u64 {
        self.key(1, tag)
    }

    /// Keys such that every event that matches the query has one of them.
    fn keys(&self, query: &Query) -> Box<[u64]> {
        let mut keys = HashSet::new();
        for item in &query.items {
            // A long tag is more likely to name one thing than a short one.
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

    /// The life of the notifier.
    fn keep_notifying(&self) {
        loop {
            let stretch = {
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
            let Some((from, to)) = stretch else {
                std::thread::park();
                continue;
            };
            let begun_us = threads::now_us();
            self.pass(from, to);
            let took = Duration::from_micros(threads::now_us().saturating_sub(begun_us));
            // Not cut short by who unparks this thread meanwhile.
            std::thread::sleep(took.max(PAUSE));
        }
    }

    /// Wakes what the events after `from` and up to `to` may concern.
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

    /// The keys of the events after `from` and up to `to`, each once; `None` if they cannot be
    /// read: the subscriptions that are then all woken find out for themselves.
    fn read_keys(&self, from: Position, to: Position) -> Option<Vec<u64>> {
        let mut keys = HashSet::<u64, BuildHasherDefault<Hashed>>::default();
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
    /// Whether the log is to be looked at again, given that everything up to `seen` has been; if
    /// not, `waker` is called when that may have changed.
    ///
    /// # Errors
    /// [`TooManyWaiters`]. A retry helps when others have stopped waiting.
    pub(crate) fn look(
        &mut self,
        seen: Position,
        waker: &Waker,
        wait: Wait,
    ) -> Result<Outlook, TooManyWaiters> {
        self.settled = self.settled.max(seen);
        let shared = Arc::clone(&self.shared);
        let mut state = lock(&shared.state);
        if state.closed {
            return Ok(Outlook::LookAgain);
        }
        if !self.tickets.is_empty() {
            return Ok(self.look_again(&mut state, waker));
        }
        if state.unattended || shared.notifier.get().is_none() {
            return Err(TooManyWaiters { limit: 0 });
        }
        if shared.waiting.load(Ordering::SeqCst) == 0 && state.matching == state.matched {
            // Nothing waited, so nothing has been matched for a while, and nothing need be.
            let from = state.matched.max(seen);
            (state.matched, state.matching) = (from, from);
        }
        if seen < state.matching {
            // Events behind it have been matched already, or are being, without this one.
            return Ok(Outlook::LookAgain);
        }
        self.join(&mut state, waker, wait)?;
        shared.waiting.fetch_add(self.tickets.len(), Ordering::SeqCst);
        drop(state);
        // Counted, then looked: the publisher sees that something waits, or this sees the head.
        if shared.feed.head() > seen {
            shared.nudge();
        }
        Ok(Outlook::Waiting)
    }

    fn look_again(&mut self, state: &mut State, waker: &Waker) -> Outlook {
        let roused = self.tickets.iter().any(|ticket| state.slots.rest(ticket) != Rest::Waiting);
        if roused {
            self.leave(state);
            return Outlook::LookAgain;
        }
        for (ticket, key) in self.tickets.iter().zip(&self.keys) {
            let line = state.lines.get_mut(key).expect("it holds this slot");
            state.slots.register(line, ticket, waker);
        }
        Outlook::Waiting
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

    /// Everything up to here does not match or has been looked at, as far as this knows. Grows
    /// while it waits, though nothing wakes it.
    pub(crate) fn settled(&self) -> Position {
        if self.tickets.is_empty() {
            return self.settled;
        }
        let state = lock(&self.shared.state);
        self.settled.max(self.passed_over(&state))
    }

    /// How far passes have gone over what waits here without waking it.
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
            // A roused slot has no line any more, and none is made for it.
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
