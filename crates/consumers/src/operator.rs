//! What an operator does. A call survives a crash as soon as the next checkpoint is durable.

use crate::consumer::{Consumer, RunState, Unsaved};
use crate::key::{Key, KeyName, KeyState};
use crate::table::KeyTable;
use std::collections::{BTreeMap, HashSet};
use wellspring_types::Position;

/// Which parked events an operator means.
#[derive(Debug, Clone, Copy)]
pub enum ParkedSelection<'a> {
    /// All.
    All,
    /// The next events of these keys. One of several keys is meant by any of them.
    Keys(&'a HashSet<&'a str>),
    /// The events at these positions.
    Positions(&'a HashSet<Position>),
}

impl ParkedSelection<'_> {
    fn has(&self, key: &Key) -> bool {
        match (self, &key.name) {
            (ParkedSelection::All, _) => true,
            (ParkedSelection::Keys(keys), KeyName::Value(value)) => keys.contains(&**value),
            (ParkedSelection::Keys(_), KeyName::Event(_)) => false,
            (ParkedSelection::Positions(positions), _) => positions.contains(&key.next),
        }
    }
}

impl Consumer {
    /// Delivers nothing until [`resume`](Consumer::resume). What is held can be settled.
    pub fn pause(&mut self) {
        self.state = RunState::Paused;
        self.unsaved.is_urgent = true;
    }

    /// Delivers again. An event that stopped the consumer has all of its tries again.
    pub fn resume(&mut self) {
        self.state = RunState::Running;
        self.unsaved.is_urgent = true;
    }

    /// Begins again after this position, as the next generation: nothing is held, open or parked,
    /// and whatever was delivered before is lost.
    pub fn reset(&mut self, after: Position) {
        self.generation += 1;
        self.scanned = after;
        self.next_keys = 1;
        self.keys = KeyTable::default();
        self.shared.clear();
        self.ready.clear();
        self.lookups.clear();
        self.retries.clear();
        self.deliveries.clear();
        self.workers.clear_held();
        // Settlements of the earlier generation do not concern this one.
        self.recovery = None;
        self.left_out = Vec::new();
        self.is_placed = false;
        self.unsaved = Unsaved { is_urgent: true, scanned: after, ..Unsaved::default() };
        if self.state == RunState::Stopped {
            self.state = RunState::Running;
        }
    }

    /// The chosen parked events with their keys. After a restart the events of parked keys have not
    /// been read, so keys of one event are told by their position.
    fn selected(&self, selection: ParkedSelection<'_>) -> BTreeMap<Position, Vec<u32>> {
        let parked = || self.keys.iter().filter(|(_, key)| key.state == KeyState::Parked);
        let chosen = parked().filter(|(_, key)| selection.has(key));
        let mut events: BTreeMap<Position, Vec<u32>> =
            chosen.map(|(_, key)| (key.next, Vec::new())).collect();
        for (number, key) in parked() {
            if let Some(keys) = events.get_mut(&key.next) {
                keys.push(number);
            }
        }
        events
    }

    /// Delivers parked events again, with all of their tries, as soon as a checkpoint that says so
    /// is durable. Returns how many there are.
    pub fn replay(&mut self, selection: ParkedSelection<'_>) -> usize {
        let events = self.selected(selection);
        for keys in events.values() {
            self.set_tries(keys, 0);
            self.set_state(keys, KeyState::Replaying);
            self.unsaved.pending.extend(keys);
        }
        self.unsaved.is_urgent |= !events.is_empty();
        events.len()
    }

    /// Goes on without the parked events, as if they were settled. Returns how many there are.
    pub fn skip(&mut self, selection: ParkedSelection<'_>) -> usize {
        let events = self.selected(selection);
        for (position, keys) in &events {
            self.shared.remove(position);
            keys.iter().for_each(|&key| self.advance(key));
        }
        self.unsaved.is_urgent |= !events.is_empty();
        events.len()
    }
}
