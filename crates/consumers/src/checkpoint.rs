//! Checkpoints: what is durable of a consumer, and the way back from it.
//!
//! One is built, appended by the host and then recorded or not; meanwhile no other is built. What
//! has to be durable before it counts (parking, replay) counts when its checkpoint is recorded.

use crate::consumer::{Consumer, Recovery, RunState, SettledRun};
use crate::definition::Definition;
use crate::key::{Key, KeyName, KeyRef, KeyState};
use crate::plants::{Plant, planted};
use crate::table::KeyTable;
use std::collections::{BTreeMap, HashMap};
use wellspring_types::Position;

/// Positions scanned without an event to open, after which a checkpoint says so: a start scans them
/// again.
const UNSAVED_SCAN: Position = 1 << 16;

/// An open key in a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenKey {
    /// The key.
    pub key: KeyName,
    /// Everything of the key before is settled.
    pub next: Position,
    /// Deliveries of the next event so far.
    pub tries: u8,
    /// Whether that event is parked.
    pub is_parked: bool,
}

/// A consumer at one time, or what has changed since the checkpoint before. Applying one twice
/// changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// How many times an operator placed the consumer.
    pub generation: u64,
    /// Whether it stands for itself. Others follow the last full one.
    pub is_full: bool,
    /// Settling appends up to this position are in it; after a restart those behind it are looked
    /// up.
    pub head: Position,
    /// The position up to which the log was scanned.
    pub scanned: Position,
    /// Whether the consumer delivers.
    pub state: RunState,
    /// Open keys: all, or those that have changed.
    pub open: Vec<OpenKey>,
    /// Keys that are open no more.
    pub closed: Vec<KeyName>,
}

impl Checkpoint {
    /// How large it is: entries, with one for the rest.
    fn size(&self) -> usize {
        1 + self.open.len() + self.closed.len()
    }
}

/// Why checkpoints do not lead back to a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainFault {
    /// There are none.
    Empty,
    /// The first is a delta.
    NoFull,
}

impl Consumer {
    /// Whether a checkpoint would say more than the last one.
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        let unsaved = &self.unsaved;
        let has_keys = !unsaved.changed.is_empty() || !unsaved.closed.is_empty();
        unsaved.is_urgent || has_keys || self.scanned - unsaved.scanned >= UNSAVED_SCAN
    }

    /// How many keys the next checkpoint would name, unless it is a full one.
    #[must_use]
    pub fn unsaved_keys(&self) -> usize {
        self.unsaved.changed.len() + self.unsaved.closed.len()
    }

    /// Whether something waits for the next checkpoint: events to be parked, or an operator.
    #[must_use]
    pub fn is_checkpoint_urgent(&self) -> bool {
        self.unsaved.is_urgent
    }

    /// Has the next checkpoint be a full one, and urgent: those before it are about to be removed.
    pub fn renew(&mut self) {
        self.unsaved.chain = None;
        self.unsaved.is_urgent = true;
    }

    /// Everything up to here can be removed from the log once the next full checkpoint is recorded:
    /// it is settled, and no settlement before has to be looked up after a restart.
    #[must_use]
    pub fn needed_after(&self) -> Position {
        let cut = self.cut_runs().into_values();
        let floor = cut.fold(self.floor(), |floor, first| floor.min(first - 1));
        let recovery = self.recovery.filter(|recovery| floor < recovery.up_to);
        recovery.map_or(floor, |recovery| floor.min(recovery.after))
    }

    /// Builds a checkpoint to append: a delta, until deltas are as large as the last full one. All
    /// settling appends up to `head` must have been reported by [`settled`](Consumer::settled).
    /// None while another one is being appended.
    pub fn checkpoint(&mut self, head: Position) -> Option<Checkpoint> {
        if self.unsaved.in_flight.is_some() {
            return None;
        }
        let head = self.settlements_after(head);
        let cut = self.cut_runs();
        let mut closed = std::mem::take(&mut self.unsaved.closed);
        closed.append(&mut self.unsaved.cut);
        // A key that was closed may be open again.
        let is_closed =
            |name: &KeyName| self.keys.get(name.borrowed()).is_none() && !cut.contains_key(name);
        let closed = closed.into_iter().filter(is_closed);
        let mut delta = Checkpoint {
            generation: self.generation,
            is_full: false,
            head,
            scanned: self.scanned,
            state: self.state,
            open: Vec::new(),
            closed: closed.collect(),
        };
        for number in std::mem::take(&mut self.unsaved.changed) {
            if let Some(key) = self.keys.entry(number).filter(|key| key.is_changed) {
                key.is_changed = false;
                key.is_saved = true;
                self.save(number, &mut delta.open);
            }
        }
        let size = delta.size() + cut.len();
        let chain = self.unsaved.chain.map(|(full, deltas)| (full, deltas + size));
        let chain = chain.filter(|(full, deltas)| deltas < full);
        if chain.is_none() {
            delta = self.full(delta);
        }
        if planted(Plant::ForgetsClosed) && !delta.is_full {
            delta.closed.clear();
        }
        for (key, first) in cut {
            self.unsaved.cut.push(key.clone());
            delta.open.push(OpenKey { key, next: first, tries: 0, is_parked: false });
        }
        self.unsaved.chain = chain.or(Some((delta.size(), 0)));
        self.unsaved.in_flight = Some(std::mem::take(&mut self.unsaved.pending));
        self.unsaved.is_urgent = false;
        self.unsaved.scanned = self.scanned;
        Some(delta)
    }

    /// The closed keys of runs that begin within what was scanned and end behind it, with the first
    /// event of each.
    fn cut_runs(&self) -> BTreeMap<KeyName, Position> {
        let is_recovering = self.recovery.is_some() && !planted(Plant::CutsRuns);
        let is_cut = |run: &&SettledRun| {
            let is_within = (run.first..run.last).contains(&self.scanned);
            is_recovering && is_within && self.keys.get(KeyRef::Value(&run.key)).is_none()
        };
        let cut = self.left_out.iter().filter(is_cut);
        cut.map(|run| (KeyName::Value(run.key.clone()), run.first)).collect()
    }

    fn full(&mut self, delta: Checkpoint) -> Checkpoint {
        let mut open = Vec::new();
        let numbers: Vec<u32> = self.keys.iter().map(|(number, _)| number).collect();
        for number in numbers {
            self.keys[number].is_saved = true;
            self.save(number, &mut open);
        }
        Checkpoint { is_full: true, open, closed: Vec::new(), ..delta }
    }

    fn save(&self, number: u32, open: &mut Vec<OpenKey>) {
        let key = &self.keys[number];
        if key.state == (KeyState::Parking { is_alone: true }) {
            let (event, next) = (KeyName::Event(key.next), key.next);
            open.push(OpenKey { key: event, next, tries: key.tries, is_parked: true });
            let (key, next) = (key.name.clone(), next + 1);
            open.push(OpenKey { key, next, tries: 0, is_parked: false });
            return;
        }
        open.push(OpenKey {
            key: key.name.clone(),
            next: key.next,
            tries: key.tries,
            is_parked: matches!(key.state, KeyState::Parking { .. } | KeyState::Parked),
        });
    }

    /// Up to where settling appends need no look-up after a restart. Until everything from before
    /// this start is settled, a key's prefix may hide settlements from before it.
    fn settlements_after(&mut self, head: Position) -> Position {
        if self.recovery.is_some_and(|recovery| self.floor() >= recovery.up_to) {
            self.recovery = None;
        }
        match self.recovery {
            Some(recovery) if !planted(Plant::NamesLateHead) => recovery.after,
            _ => head,
        }
    }

    /// The checkpoint of this generation is durable: what waited for it is done. Nothing, if an
    /// operator has placed the consumer elsewhere in the meantime.
    pub fn checkpoint_recorded(&mut self, generation: u64) {
        if generation != self.generation {
            return;
        }
        let Some(pending) = self.unsaved.in_flight.take() else { return };
        self.is_placed = true;
        for key in pending {
            match self.keys[key].state {
                KeyState::Replaying => self.look_up(key, self.keys[key].next),
                KeyState::Parking { is_alone } => self.end_parking(key, is_alone),
                state => unreachable!("{state:?} waits for no checkpoint"),
            }
        }
    }

    fn end_parking(&mut self, key: u32, is_alone: bool) {
        let keys = self.event_keys(key);
        self.set_state(&keys, KeyState::Parked);
        if is_alone {
            let Key { next, tries, .. } = self.keys[key];
            let mut event = Key::new(KeyName::Event(next), next, next, KeyState::Parked);
            event.tries = tries;
            event.is_saved = true;
            self.keys.insert(event);
            self.leave_event(key);
        }
    }

    /// The checkpoint was not appended, or its outcome is unknown: the next one is a full one.
    pub fn checkpoint_failed(&mut self, generation: u64) {
        if generation != self.generation {
            return;
        }
        let pending = self.unsaved.in_flight.take().unwrap_or_default();
        self.unsaved.pending.extend(pending);
        self.unsaved.chain = None;
        self.unsaved.is_urgent = true;
    }

    /// A consumer as its checkpoints say: the last full one and all after it. `head` is that of the
    /// log. Every open key is looked up again, as an append may have settled events since; see
    /// [`recovery`](Consumer::recovery).
    pub fn restore(
        definition: Definition,
        chain: &[Checkpoint],
        head: Position,
    ) -> Result<Consumer, ChainFault> {
        let last = chain.last().ok_or(ChainFault::Empty)?;
        if !chain[0].is_full {
            return Err(ChainFault::NoFull);
        }
        // With the tries of the plant.
        let mut open: HashMap<&KeyName, (&OpenKey, u8)> = HashMap::new();
        for checkpoint in chain {
            if checkpoint.is_full {
                open.clear();
            }
            checkpoint.closed.iter().for_each(|key| _ = open.remove(key));
            open.reserve(checkpoint.open.len());
            for key in &checkpoint.open {
                let before = open.insert(&key.key, (key, key.tries));
                if let Some((_, tries)) = before.filter(|_| planted(Plant::AddsTries)) {
                    open.get_mut(&key.key).expect("just inserted").1 += tries;
                }
            }
        }
        let mut consumer = Consumer::new(definition, last.generation, last.scanned);
        consumer.state = last.state;
        consumer.is_placed = true;
        consumer.unsaved.is_urgent = false;
        consumer.recovery = Some(Recovery { after: last.head, up_to: head });
        // A key whose last event was parked alone may have nothing left.
        let open = open.into_values().filter(|(open, _)| open.next <= last.scanned);
        let mut open: Vec<(&OpenKey, u8)> = open.collect();
        open.sort_unstable_by_key(|(open, _)| (open.next, &open.key));
        consumer.keys = KeyTable::with_capacity(open.len());
        open.into_iter().for_each(|(open, tries)| consumer.reopen(open, tries));
        Ok(consumer)
    }

    fn reopen(&mut self, open: &OpenKey, tries: u8) {
        let last = match open.key {
            KeyName::Value(_) => self.scanned,
            KeyName::Event(position) => position,
        };
        let mut key = Key::new(open.key.clone(), open.next, last, KeyState::Parked);
        key.tries = tries;
        key.is_saved = true;
        let number = self.keys.insert(key);
        if !open.is_parked {
            self.look_up(number, open.next);
        }
    }
}
