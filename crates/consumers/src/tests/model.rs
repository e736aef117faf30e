//! A consumer as plain sets: all events, those that are settled, those that are held.

use crate::{
    Consumer, Definition, Delivery, DeliveryId, FailureRule, KeyName, KeyPlace, KeyedEvent,
    RunState, SettledRun,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use wellspring_types::Position;

#[derive(Debug, Clone)]
pub(super) struct Hold {
    pub(super) worker: &'static str,
    pub(super) positions: Vec<Position>,
    pub(super) since: u64,
    /// How many events an append settles that is staged.
    pub(super) staged: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Sign {
    pub(super) last: u64,
    pub(super) turn: u64,
    pub(super) taken: Vec<DeliveryId>,
    pub(super) refused: Vec<DeliveryId>,
}

/// What a checkpoint keeps.
#[derive(Debug, Clone)]
pub(super) struct SavedState {
    pub(super) generation: u64,
    pub(super) from: Position,
    pub(super) scanned: Position,
    pub(super) state: RunState,
    pub(super) settled: BTreeSet<Position>,
    pub(super) tries: BTreeMap<Position, u8>,
    /// Parked together with their keys.
    pub(super) parked: BTreeSet<Position>,
    /// Parked alone, or replayed after that: events without order.
    pub(super) alone: BTreeSet<Position>,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) definition: Definition,
    /// The keys of each event; none: it does not match.
    pub(super) log: Vec<Option<Vec<String>>>,
    pub(super) kept: SavedState,
    pub(super) held: BTreeMap<DeliveryId, Hold>,
    pub(super) workers: BTreeMap<&'static str, Sign>,
    pub(super) retries: BTreeMap<Position, u64>,
    /// To be parked with the next checkpoint, or with the one that is being appended.
    pub(super) parking: BTreeSet<Position>,
    /// Parked, and to be replayed after the next checkpoint, or the one that is being appended.
    pub(super) replaying: BTreeSet<Position>,
    pub(super) appended: Vec<SettlingAppend>,
    /// The runs that were found since the last restart.
    pub(super) runs: RefCell<Vec<SettledRun>>,
}

/// An append that has settled events.
#[derive(Debug)]
pub(super) struct SettlingAppend {
    pub(super) generation: u64,
    pub(super) events: Vec<Position>,
    pub(super) at: Position,
}

impl Model {
    pub(super) fn new(definition: Definition) -> Model {
        Model {
            definition,
            log: Vec::new(),
            kept: SavedState {
                generation: 1,
                from: 0,
                scanned: 0,
                state: RunState::Running,
                settled: BTreeSet::new(),
                tries: BTreeMap::new(),
                parked: BTreeSet::new(),
                alone: BTreeSet::new(),
            },
            held: BTreeMap::new(),
            workers: BTreeMap::new(),
            retries: BTreeMap::new(),
            parking: BTreeSet::new(),
            replaying: BTreeSet::new(),
            appended: Vec::new(),
            runs: RefCell::default(),
        }
    }

    pub(super) fn head(&self) -> Position {
        self.log.len() as Position
    }

    /// The keys by which an event has an order.
    pub(super) fn keys(&self, position: Position) -> &[String] {
        let keys = self.log[position as usize - 1].as_deref().expect("it matches");
        if self.kept.alone.contains(&position) { &[] } else { keys }
    }

    /// Matching events after `after` up to `up_to`.
    fn matching(&self, after: Position, up_to: Position) -> impl Iterator<Item = Position> + '_ {
        (after + 1..=up_to).filter(|position| self.log[*position as usize - 1].is_some())
    }

    /// Scanned events that are not settled.
    pub(super) fn open(&self) -> impl Iterator<Item = Position> + '_ {
        let scanned = self.matching(self.kept.from, self.kept.scanned);
        scanned.filter(|position| !self.kept.settled.contains(position))
    }

    fn name(keys: &[String], position: Position) -> Vec<KeyName> {
        match keys {
            [] => vec![KeyName::Event(position)],
            keys => keys.iter().map(|key| KeyName::Value((**key).into())).collect(),
        }
    }

    /// The first open event of each open key.
    fn next(&self) -> BTreeMap<KeyName, Position> {
        let mut next = BTreeMap::new();
        for position in self.open() {
            for name in Model::name(self.keys(position), position) {
                next.entry(name).or_insert(position);
            }
        }
        next
    }

    /// What the host reads: matching events but for those whose settlement it finds, by the first
    /// event that an append has settled, and for what follows in such a run.
    pub(super) fn read(
        &self,
        consumer: &Consumer,
        after: Position,
        up_to: Position,
    ) -> Vec<KeyedEvent<'_>> {
        let is_settled = |position: Position| {
            let recovery = consumer.recovery().filter(|recovery| position <= recovery.up_to);
            let Some(recovery) = recovery else { return false };
            let keys = self.log[position as usize - 1].as_deref().expect("it matches");
            let mut runs = self.runs.borrow_mut();
            let is_in = |run: &SettledRun| {
                *run.key == *keys[0] && (run.first..=run.last).contains(&position)
            };
            if keys.len() == 1 && runs.iter().any(is_in) {
                return true;
            }
            let found = self.appended.iter().find(|append| {
                let is_read = recovery.after < append.at && append.at <= recovery.up_to;
                let is_its = append.generation == consumer.generation();
                is_read && is_its && append.events[0] == position
            });
            if let (Some(append), [key]) = (found, keys) {
                let last = *append.events.last().expect("it has settled some");
                runs.push(SettledRun { key: key.as_str().into(), first: position, last });
            }
            found.is_some()
        };
        let events = self.matching(after, up_to).filter(|position| !is_settled(*position));
        let keyed = events.map(|position| {
            let keys = self.log[position as usize - 1].as_deref().expect("it matches");
            KeyedEvent { position, keys: keys.iter().map(String::as_str).collect() }
        });
        keyed.collect()
    }

    /// W2: no key of the delivery is held, and all earlier events of its keys are settled.
    pub(super) fn given(&mut self, worker: &'static str, delivery: &Delivery, now: u64) {
        let first = delivery.positions[0];
        assert!(delivery.positions.len() <= usize::from(self.definition.run));
        for &position in &delivery.positions {
            assert!(self.open().any(|open| open == position), "{position} is not open");
            let is_put_aside = self.retries.contains_key(&position)
                || self.parking.contains(&position)
                || self.kept.parked.contains(&position);
            assert!(!is_put_aside, "{position} is put aside");
            let keys = self.keys(position);
            assert_eq!(delivery.keys.iter().map(|key| &**key).collect::<Vec<_>>(), keys);
            assert!(keys.len() == 1 || delivery.positions.len() == 1, "a run is of one key");
            for hold in self.held.values() {
                assert!(!hold.positions.contains(&position), "{position} is held");
                let has_key = |held: &Position| self.keys(*held).iter().any(|k| keys.contains(k));
                assert!(!hold.positions.iter().any(has_key), "a key of {position} is held");
            }
            for earlier in self.open().take_while(|earlier| *earlier < position) {
                let is_before = self.keys(earlier).iter().any(|key| keys.contains(key));
                let is_here = delivery.positions.contains(&earlier);
                assert!(!is_before || is_here, "{earlier} comes before {position}");
            }
        }
        let tries = self.kept.tries.entry(first).or_default();
        *tries += 1;
        assert_eq!(delivery.tries, *tries, "tries of {first}");
        let positions = delivery.positions.clone();
        self.held.insert(delivery.id, Hold { worker, positions, since: now, staged: 0 });
        self.workers.get_mut(worker).expect("known").taken.push(delivery.id);
    }

    pub(super) fn settle(&mut self, id: DeliveryId, count: usize) {
        let hold = self.held.get_mut(&id).expect("held");
        hold.staged = 0;
        for position in hold.positions.drain(..count) {
            assert!(self.kept.settled.insert(position), "{position} is settled twice");
            self.kept.tries.remove(&position);
        }
        match hold.positions.first() {
            None => _ = self.held.remove(&id),
            Some(first) => _ = self.kept.tries.insert(*first, 1),
        }
    }

    pub(super) fn try_again(&mut self, position: Position, due: Option<u64>) {
        if self.kept.tries[&position] < self.definition.max_tries {
            if let Some(due) = due {
                self.retries.insert(position, due);
            }
        } else if self.definition.on_failure == FailureRule::Stop {
            self.kept.state = RunState::Stopped;
            self.kept.tries.remove(&position);
        } else {
            self.parking.insert(position);
        }
    }

    pub(super) fn expire(&mut self, now: u64) {
        let is_silent = |sign: &Sign| sign.last + self.definition.hold_us <= now;
        let silent: BTreeSet<&str> = self
            .workers
            .iter()
            .filter(|(_, sign)| is_silent(sign))
            .map(|(name, _)| *name)
            .collect();
        let lost = self.held.iter().filter(|(_, hold)| {
            let is_long = hold.since + self.definition.max_hold_us <= now;
            hold.staged == 0 && (is_long || silent.contains(hold.worker))
        });
        let lost: Vec<DeliveryId> = lost.map(|(id, _)| *id).collect();
        for id in lost {
            let hold = self.held.remove(&id).expect("held");
            self.try_again(hold.positions[0], None);
        }
        let holders: BTreeSet<&str> = self.held.values().map(|hold| hold.worker).collect();
        self.workers.retain(|name, _| !silent.contains(name) || holders.contains(name));
        self.retries.retain(|_, due| *due > now);
    }

    /// The outcome of an append that settles is known: who was silent meanwhile loses the rest.
    pub(super) fn after_outcome(&mut self, id: DeliveryId, judged: u64) {
        let Some(hold) = self.held.get(&id).cloned() else { return };
        if self.workers[hold.worker].last + self.definition.hold_us <= judged {
            self.held.remove(&id);
            self.try_again(hold.positions[0], None);
        }
    }

    /// After an outcome: a silent worker that holds nothing more is forgotten.
    pub(super) fn forget(&mut self, judged: u64) {
        let holders: BTreeSet<&str> = self.held.values().map(|hold| hold.worker).collect();
        let hold_us = self.definition.hold_us;
        self.workers.retain(|name, sign| sign.last + hold_us > judged || holders.contains(name));
    }

    /// W1 and the rest of the state: each open event is where the sets say that it is.
    pub(super) fn check(&self, consumer: &Consumer) {
        assert_eq!(consumer.scanned_up_to(), self.kept.scanned);
        assert_eq!(consumer.generation(), self.kept.generation);
        let status = consumer.status();
        assert_eq!(status.state, self.kept.state);
        assert_eq!(status.workers, self.workers.len());
        let held = consumer.held_deliveries();
        let held = held.map(|held| (held.id, held.worker, held.since_us, held.is_staged));
        let expected = self.held.iter().map(|(id, h)| (*id, h.worker, h.since, h.staged > 0));
        assert!(held.eq(expected), "held: {:?}", self.held);
        let next = self.next();
        let open: BTreeMap<&KeyName, _> =
            consumer.open_keys().map(|key| (key.key, (key.next, key.place))).collect();
        for (name, (_, place)) in &open {
            assert!(next.contains_key(name) || *place == KeyPlace::Looking, "{name:?} is open");
        }
        let places = |name: &KeyName| open[name];
        for (name, &position) in &next {
            assert!(open.contains_key(name), "{name:?} is forgotten at {position}");
            let (found, place) = places(name);
            assert!(found <= position, "{name:?} is ahead of {position}");
            let names = Model::name(self.keys(position), position);
            let is_next = names
                .iter()
                .all(|other| next[other] == position && places(other).1 != KeyPlace::Looking);
            let holder = self.held.values().find(|hold| hold.positions.contains(&position));
            let expected = match place {
                KeyPlace::Looking => KeyPlace::Looking,
                _ if holder.is_some() => KeyPlace::Held(holder.expect("some").worker),
                _ if self.parking.contains(&position) => KeyPlace::Parked,
                _ if self.kept.parked.contains(&position) => KeyPlace::Parked,
                _ if let Some(due) = self.retries.get(&position) => KeyPlace::Retrying(*due),
                _ if is_next => KeyPlace::Ready,
                _ => KeyPlace::Waiting,
            };
            assert_eq!(place, expected, "{name:?} at {position}");
            assert!(place == KeyPlace::Looking || found == position, "{name:?} at {position}");
        }
        let floor = self.open().next().map_or(self.kept.scanned, |first| first - 1);
        assert!(status.floor <= floor, "the floor is {floor}");
        assert!(status.open_keys <= self.definition.max_open_keys.max(3), "too many keys");
        assert!(status.in_flight <= self.definition.max_in_flight, "too many deliveries");
        self.check_due(consumer);
    }

    /// The host is woken when something is due, and for nothing else.
    fn check_due(&self, consumer: &Consumer) {
        let holds = self.held.values().filter(|hold| hold.staged == 0);
        let holds = holds.map(|hold| hold.since + self.definition.max_hold_us);
        let due = holds.chain(self.retries.values().copied()).min();
        let silent = self.held.values();
        let silent = silent.map(|hold| self.workers[hold.worker].last + self.definition.hold_us);
        let earliest = silent.chain(due).min();
        let told = consumer.next_due();
        assert!(due.is_none_or(|due| told.is_some_and(|told| told <= due)), "{told:?} {due:?}");
        assert!(told.is_none() || told >= earliest, "woken for nothing: {told:?} {earliest:?}");
    }
}
