//! What the host reads of the log: new events, and the next ones of keys that lag behind.

use crate::consumer::{Consumer, Recovery, RunState, SettledRun};
use crate::key::{KeyName, KeyRef, KeyState};
use crate::plants::{Plant, planted};
use wellspring_types::Position;

/// An event that matches the consumer's query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedEvent<'a> {
    /// Where it is.
    pub position: Position,
    /// Its values of the order key, each once ([`OrderKey::values`](crate::OrderKey::values)).
    pub keys: Vec<&'a str>,
}

/// Where the host scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanFrom {
    /// The generation that asks.
    pub generation: u64,
    /// Events after this position are wanted.
    pub after: Position,
}

/// Whether the host should scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanNeed {
    /// Yes.
    From(ScanFrom),
    /// Enough is ready.
    Enough,
    /// `max_open_keys` are open: only settling makes room.
    Full,
    /// The consumer is paused or stopped.
    Idle,
}

/// What became of scanned events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanVerdict {
    /// The log is scanned up to the end of what was read.
    Taken,
    /// It is scanned up to this position, as `max_open_keys` are open.
    Cut(Position),
    /// Another scan was faster, or an operator has placed the consumer elsewhere.
    Stale,
}

/// A look-up that a key waits for: the host reads its next events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookUp {
    /// The generation that asks.
    pub generation: u64,
    /// A value: events of `query ∧ tag`; a position: the event there, which matches.
    pub key: KeyName,
    /// Exclusive.
    pub after: Position,
    /// Inclusive.
    pub up_to: Position,
    /// The most positions to bring.
    pub limit: usize,
}

/// What became of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookUpVerdict {
    /// The next event of the key is known.
    Located,
    /// The key has no further event.
    Closed,
    /// Later events have been scanned in the meantime: look up again.
    Again,
    /// The key does not wait for this look-up any more.
    Stale,
}

impl Consumer {
    /// The position up to which the log was scanned.
    #[must_use]
    pub fn scanned_up_to(&self) -> Position {
        self.scanned
    }

    /// Whether and where the host should scan, if it wants this many events to be ready.
    #[must_use]
    pub fn scan_need(&self, enough: usize) -> ScanNeed {
        if self.state != RunState::Running {
            ScanNeed::Idle
        } else if self.is_full() {
            ScanNeed::Full
        } else if self.ready.len() >= enough {
            ScanNeed::Enough
        } else {
            ScanNeed::From(ScanFrom { generation: self.generation, after: self.scanned })
        }
    }

    /// After a restart: while this is some, the host looks for the request key of every event up to
    /// `up_to` in what was appended in this part of the log, and leaves events out of `scanned` and
    /// `found` whose settlement it finds there.
    #[must_use]
    pub fn recovery(&self) -> Option<Recovery> {
        self.recovery
    }

    /// Takes the runs that the host leaves out for [`recovery`](Consumer::recovery), before what is
    /// read without them: all that it knows to end behind what was scanned.
    pub fn leave_out(&mut self, runs: Vec<SettledRun>) {
        self.left_out = runs;
    }

    /// Takes the matching events after `from` up to `up_to`, all of them and ascending.
    pub fn scanned(
        &mut self,
        from: ScanFrom,
        events: &[KeyedEvent<'_>],
        up_to: Position,
    ) -> ScanVerdict {
        if from != (ScanFrom { generation: self.generation, after: self.scanned }) {
            return ScanVerdict::Stale;
        }
        for event in events {
            debug_assert!(self.scanned < event.position && event.position <= up_to, "{event:?}");
            self.next_keys = event.keys.len().max(1);
            if self.is_full() {
                self.scanned = event.position - 1;
                return ScanVerdict::Cut(self.scanned);
            }
            self.scan(event);
            self.scanned = event.position;
        }
        self.scanned = up_to;
        self.next_keys = 1;
        ScanVerdict::Taken
    }

    fn scan(&mut self, event: &KeyedEvent<'_>) {
        let (keys, opened) = self.keys_of(event);
        if let ([key], None) = (&keys[..], opened) {
            // So that a run can follow an event that is ready, without a look-up.
            let most = self.definition.lookup_limit();
            self.keys[*key].follow(event.position, most);
        }
        for &key in &keys {
            self.keys[key].last = event.position;
        }
        // Without a key that it opens, the event is found when one of its keys comes to it.
        if let Some(opened) = opened {
            self.remember_shared(event.position, keys);
            self.line_up(opened);
        }
    }

    /// The keys of an event, opened where they are not open; one of the latter.
    fn keys_of(&mut self, event: &KeyedEvent<'_>) -> (Vec<u32>, Option<u32>) {
        if event.keys.is_empty() {
            let name = KeyName::Event(event.position);
            return match self.keys.get(name.borrowed()) {
                Some(key) => (vec![key], None),
                None => {
                    let key = self.open(name, event.position);
                    (vec![key], Some(key))
                }
            };
        }
        let mut opened = None;
        let keys = event.keys.iter().map(|&value| {
            self.keys.get(KeyRef::Value(value)).unwrap_or_else(|| {
                *opened.insert(self.open(KeyName::Value(value.into()), event.position))
            })
        });
        (keys.collect(), opened)
    }

    fn remember_shared(&mut self, position: Position, keys: Vec<u32>) {
        if keys.len() > 1 {
            self.shared.insert(position, keys.into());
        }
    }

    /// The next look-ups that keys wait for, at most `most`; none while `enough` events are ready.
    /// They are told again until [`found`](Consumer::found).
    #[must_use]
    pub fn wanted_look_ups(&self, enough: usize, most: usize) -> Vec<LookUp> {
        if self.state != RunState::Running || self.ready.len() >= enough {
            return Vec::new();
        }
        let limit = self.definition.lookup_limit();
        let look_up = |&number: &u32| {
            let key = &self.keys[number];
            let (up_to, limit) = match key.name {
                KeyName::Value(_) => (self.scanned, limit),
                KeyName::Event(position) => (position, 1),
            };
            let (generation, after) = (self.generation, key.next - 1);
            LookUp { generation, key: key.name.clone(), after, up_to, limit }
        };
        self.lookups.iter().take(most).map(look_up).collect()
    }

    /// Takes the events that a look-up found, ascending: the first `limit` that are not left out
    /// for [`recovery`](Consumer::recovery). `is_all`: there are no more up to its end.
    pub fn found(
        &mut self,
        look_up: &LookUp,
        events: &[KeyedEvent<'_>],
        is_all: bool,
    ) -> LookUpVerdict {
        let number = self.keys.get(look_up.key.borrowed());
        let is_awaited = |&number: &u32| {
            let key = &self.keys[number];
            let asked = look_up.generation == self.generation && key.next == look_up.after + 1;
            key.state == KeyState::Looking && (asked || planted(Plant::LateLookUp))
        };
        let Some(number) = number.filter(is_awaited) else { return LookUpVerdict::Stale };
        let place = self.lookups.iter().position(|&key| key == number).expect("it is looked up");
        self.lookups.remove(place);
        let has_later = self.keys[number].last > look_up.up_to;
        let positions: Vec<Position> = events.iter().map(|event| event.position).collect();
        // Tries from a checkpoint are those of an event that may be settled since.
        if positions.first() != Some(&self.keys[number].next) {
            self.keys[number].tries = 0;
        }
        if positions.is_empty() {
            if has_later {
                // From the same place: what was left out may be the beginning of a run.
                self.look_up(number, self.keys[number].next);
                return LookUpVerdict::Again;
            }
            self.close(number);
            return LookUpVerdict::Closed;
        }
        let key = &mut self.keys[number];
        let last = key.locate(&positions);
        if is_all && !has_later {
            key.last = positions[positions.len() - 1];
        }
        // Off the list of look-ups it counts as located, for the keys that share its events.
        key.state = KeyState::Waiting;
        self.mark_changed(number);
        // An event without order that has keys was parked alone: they have gone on without it.
        let has_order = matches!(look_up.key, KeyName::Value(_));
        for event in events.iter().take_while(|event| event.position <= last && has_order) {
            if event.keys.len() > 1 && !self.shared.contains_key(&event.position) {
                let (keys, _) = self.keys_of(event);
                self.remember_shared(event.position, keys);
            }
        }
        self.line_up(number);
        LookUpVerdict::Located
    }
}
