//! The state of a consumer, and how a key goes from one event to the next.

use crate::definition::{Definition, FailureRule};
use crate::delivery::HeldDelivery;
use crate::key::{Key, KeyName, KeyState};
use crate::plants::{Plant, planted};
use crate::table::KeyTable;
use crate::worker::Workers;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wellspring_types::Position;

/// Whether a consumer delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// It does.
    Running,
    /// An operator has paused it. What is held can still be settled.
    Paused,
    /// An event has failed too often ([`FailureRule::Stop`]).
    Stopped,
}

/// What happened since the consumer was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Deliveries taken.
    pub delivered: u64,
    /// Events settled.
    pub settled: u64,
    /// Deliveries that their worker reported as failed.
    pub failed: u64,
    /// Deliveries taken from a worker that was silent or held them for too long.
    pub expired: u64,
    /// Calls refused as their delivery was lost.
    pub late: u64,
}

/// The part of the log in which settlements are looked up after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Appends up to here are in the checkpoint.
    pub after: Position,
    /// The head of the log when the consumer was opened.
    pub up_to: Position,
}

/// Events of one key that one append has settled: only by the first of them is the append found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledRun {
    /// The key.
    pub key: Box<str>,
    /// Its first event.
    pub first: Position,
    /// Its last event.
    pub last: Position,
}

/// What the checkpoints say, and what they do not say yet.
#[derive(Debug, Default)]
pub(crate) struct Unsaved {
    /// Keys that differ from the checkpoints. Some may be closed by now, or be other keys.
    pub(crate) changed: Vec<u32>,
    /// Keys of the checkpoints that are closed.
    pub(crate) closed: Vec<KeyName>,
    /// Closed keys that the last checkpoint calls open, for a run that it cuts.
    pub(crate) cut: Vec<KeyName>,
    /// Something has to be durable before it counts.
    pub(crate) is_urgent: bool,
    /// Keys that wait for the next checkpoint: one each of the events to be parked, and all that
    /// are replayed.
    pub(crate) pending: Vec<u32>,
    /// Those that wait for the checkpoint that is being appended, if one is.
    pub(crate) in_flight: Option<Vec<u32>>,
    /// How far the checkpoints say that the log was scanned.
    pub(crate) scanned: Position,
    /// Sizes of the last full checkpoint and of the deltas since; none: the next one is full.
    pub(crate) chain: Option<(usize, usize)>,
}

/// A consumer of one log. See the documentation of the crate.
#[derive(Debug)]
pub struct Consumer {
    pub(crate) definition: Definition,
    pub(crate) generation: u64,
    pub(crate) state: RunState,
    /// Whether a checkpoint of this generation is durable. Before, nothing is delivered: after a
    /// crash another generation would have the same number.
    pub(crate) is_placed: bool,
    /// The position up to which the log was looked at.
    pub(crate) scanned: Position,
    /// How many keys the next event may open, as far as it is known.
    pub(crate) next_keys: usize,
    pub(crate) keys: KeyTable,
    /// The known events with several keys.
    pub(crate) shared: BTreeMap<Position, Box<[u32]>>,
    /// One key each of the events that can be delivered.
    pub(crate) ready: VecDeque<u32>,
    pub(crate) lookups: VecDeque<u32>,
    /// One key each of the events that wait for a retry, by the time when it is due.
    pub(crate) retries: BTreeSet<(u64, u32)>,
    /// By number, hence by the time when they were taken.
    pub(crate) deliveries: BTreeMap<u64, HeldDelivery>,
    pub(crate) next_number: u64,
    pub(crate) workers: Workers,
    pub(crate) unsaved: Unsaved,
    pub(crate) recovery: Option<Recovery>,
    /// Runs that are left out for recovery; some may end behind `scanned`.
    pub(crate) left_out: Vec<SettledRun>,
    pub(crate) counters: Counters,
    /// Events to be parked whose last delivery expired, with its worker.
    pub(crate) parked_by_expiry: Vec<(Position, Box<str>)>,
}

impl Consumer {
    /// A consumer that begins after this position, and delivers as soon as its first checkpoint is
    /// durable.
    #[must_use]
    pub fn new(definition: Definition, generation: u64, after: Position) -> Consumer {
        Consumer {
            definition,
            generation,
            state: RunState::Running,
            is_placed: false,
            scanned: after,
            next_keys: 1,
            keys: KeyTable::default(),
            shared: BTreeMap::new(),
            ready: VecDeque::new(),
            lookups: VecDeque::new(),
            retries: BTreeSet::new(),
            deliveries: BTreeMap::new(),
            next_number: 0,
            workers: Workers::default(),
            unsaved: Unsaved { is_urgent: true, scanned: after, ..Unsaved::default() },
            recovery: None,
            left_out: Vec::new(),
            counters: Counters::default(),
            parked_by_expiry: Vec::new(),
        }
    }

    /// Its definition.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// How many times an operator placed it.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether it delivers.
    #[must_use]
    pub fn state(&self) -> RunState {
        self.state
    }

    /// How many events can be delivered.
    #[must_use]
    pub fn ready_events(&self) -> usize {
        self.ready.len()
    }

    /// How many keys are open.
    #[must_use]
    pub fn open_key_count(&self) -> usize {
        self.keys.len()
    }

    /// How many workers have given a sign lately.
    #[must_use]
    pub fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// Makes room for another worker: forgets the one that was silent for longest of those that
    /// hold nothing. Returns whether there was one.
    pub fn forget_idle_worker(&mut self) -> bool {
        self.workers.forget_idle()
    }

    /// Whether a worker has given a sign lately.
    #[must_use]
    pub fn knows_worker(&self, worker: &str) -> bool {
        self.workers.id(worker).is_some()
    }

    /// What happened since it was opened.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// All keys of the next event of a key.
    pub(crate) fn event_keys(&self, key: u32) -> Vec<u32> {
        self.shared.get(&self.keys[key].next).map_or_else(|| vec![key], |keys| keys.to_vec())
    }

    pub(crate) fn set_state(&mut self, keys: &[u32], state: KeyState) {
        for &key in keys {
            self.keys[key].state = state;
        }
    }

    pub(crate) fn mark_changed(&mut self, number: u32) {
        let key = &mut self.keys[number];
        if !key.is_changed {
            key.is_changed = true;
            self.unsaved.changed.push(number);
        }
    }

    pub(crate) fn set_tries(&mut self, keys: &[u32], tries: u8) {
        for &key in keys {
            self.keys[key].tries = tries;
            self.mark_changed(key);
        }
    }

    pub(crate) fn open(&mut self, name: KeyName, next: Position) -> u32 {
        let number = self.keys.insert(Key::new(name, next, next, KeyState::Waiting));
        self.mark_changed(number);
        number
    }

    /// Puts a key whose next event is known into the line, if the event is the next one of all of
    /// its keys.
    pub(crate) fn line_up(&mut self, key: u32) {
        let next = self.keys[key].next;
        self.keys[key].state = KeyState::Waiting;
        let keys = self.event_keys(key);
        let is_next = |key: &u32| {
            let key = &self.keys[*key];
            key.next == next && key.state == KeyState::Waiting
        };
        if keys.iter().all(is_next) || planted(Plant::OneKeyOnly) {
            self.set_ready(key);
        }
    }

    /// Puts the next event of a key at the end of the line.
    pub(crate) fn set_ready(&mut self, key: u32) {
        let keys = self.event_keys(key);
        self.set_state(&keys, KeyState::Ready);
        self.ready.push_back(key);
    }

    /// Goes on to a key's next event, as the current one is settled or parked alone.
    pub(crate) fn advance(&mut self, number: u32) {
        let key = &mut self.keys[number];
        key.tries = 0;
        if key.step() {
            self.mark_changed(number);
            self.line_up(number);
        } else if key.last > key.next && !planted(Plant::ForgetsMore) {
            self.look_up(number, self.keys[number].next + 1);
        } else {
            self.close(number);
        }
    }

    /// Has a key's next event looked up, from this position on.
    pub(crate) fn look_up(&mut self, number: u32, from: Position) {
        self.keys[number].look_from(from);
        self.mark_changed(number);
        self.lookups.push_back(number);
    }

    /// A key without further events.
    pub(crate) fn close(&mut self, number: u32) {
        let key = self.keys.remove(number);
        if key.is_saved {
            self.unsaved.closed.push(key.name);
        }
    }

    /// Goes on behind the next event of a key, with all of the event's keys.
    pub(crate) fn leave_event(&mut self, key: u32) {
        let keys = self.event_keys(key);
        self.shared.remove(&self.keys[key].next);
        for key in keys {
            self.advance(key);
        }
    }

    /// After a try of a key's next event that did not settle it: another one, at once or when it
    /// is due, or what follows the last one. Returns the event if it is to be parked.
    pub(crate) fn try_again(&mut self, key: u32, due_us: Option<u64>) -> Option<Position> {
        if self.keys[key].tries < self.definition.max_tries {
            match due_us {
                None => self.set_ready(key),
                Some(due_us) => {
                    let keys = self.event_keys(key);
                    self.set_state(&keys, KeyState::Retrying(due_us));
                    self.retries.insert((due_us, key));
                }
            }
        } else if self.definition.on_failure == FailureRule::Stop {
            self.state = RunState::Stopped;
            self.unsaved.is_urgent = true;
            let keys = self.event_keys(key);
            self.set_tries(&keys, 0);
            self.set_ready(key);
        } else {
            return Some(self.begin_parking(key));
        }
        None
    }

    /// Parks a key's next event, which it returns, as soon as a checkpoint that says so is durable.
    pub(crate) fn begin_parking(&mut self, key: u32) -> Position {
        // A parked event without keys is open besides the keys that go on, so the bound of open
        // keys holds for it, too: at the bound the keys wait.
        let is_alone = self.definition.on_failure == FailureRule::ParkEvent
            && matches!(self.keys[key].name, KeyName::Value(_))
            && self.open_with_parking() < self.definition.max_open_keys;
        let keys = self.event_keys(key);
        self.set_state(&keys, KeyState::Parking { is_alone });
        keys.iter().for_each(|&key| self.mark_changed(key));
        self.unsaved.pending.push(key);
        self.unsaved.is_urgent = true;
        self.keys[key].next
    }

    /// How many keys are open, together with those that parking may open.
    pub(crate) fn open_with_parking(&self) -> usize {
        let in_flight = self.unsaved.in_flight.as_ref().map_or(0, Vec::len);
        self.keys.len() + self.unsaved.pending.len() + in_flight
    }

    /// Whether the next event to be scanned has to wait for keys to be closed. One with more keys
    /// than may be open still gets its turn.
    pub(crate) fn is_full(&self) -> bool {
        let open = self.open_with_parking();
        open > 0 && open + self.next_keys > self.definition.max_open_keys
    }

    /// The earliest time at which [`expire`](Consumer::expire) has something to do.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        let silence = self.workers.first_sign_of_holder();
        let silence = silence.map(|sign| sign.saturating_add(self.definition.hold_us));
        let hold = self.deliveries.values().find(|delivery| delivery.staged == 0);
        let hold = hold.map(|held| held.since_us.saturating_add(self.definition.max_hold_us));
        let retry = self.retries.first().map(|(due_us, _)| *due_us);
        [silence, hold, retry].into_iter().flatten().min()
    }
}
