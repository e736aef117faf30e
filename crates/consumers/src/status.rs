//! What an operator sees.

use crate::consumer::{Consumer, RunState};
use crate::delivery::DeliveryId;
use crate::key::{Key, KeyName, KeyState};
use wellspring_types::Position;

/// What becomes of the next event of an open key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace<'a> {
    /// It is looked up.
    Looking,
    /// It waits for another of its keys.
    Waiting,
    /// It can be delivered.
    Ready,
    /// This worker holds it.
    Held(&'a str),
    /// It is tried again at this time.
    Retrying(u64),
    /// It is parked, or a checkpoint that says that it is, or is no longer, is not durable.
    Parked,
}

/// An open key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyStatus<'a> {
    /// The key.
    pub key: &'a KeyName,
    /// Its next event, or where that is looked for.
    pub next: Position,
    /// Deliveries of that event so far.
    pub tries: u8,
    /// What becomes of it.
    pub place: KeyPlace<'a>,
}

/// A delivery that a worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldStatus<'a> {
    /// Its name.
    pub id: DeliveryId,
    /// Its worker.
    pub worker: &'a str,
    /// Since when.
    pub since_us: u64,
    /// Whether an append that settles it is staged.
    pub is_staged: bool,
}

/// A consumer at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status<'a> {
    /// Whether it delivers.
    pub state: RunState,
    /// How many times an operator placed it.
    pub generation: u64,
    /// The position up to which the log was scanned. Its lag is the number of matching events
    /// behind.
    pub scanned: Position,
    /// Everything up to here is settled.
    pub floor: Position,
    /// Keys that lag behind `scanned`.
    pub open_keys: usize,
    /// Events that can be delivered.
    pub ready: usize,
    /// Deliveries that workers hold.
    pub in_flight: usize,
    /// Keys that are parked.
    pub parked: usize,
    /// Workers that have given a sign lately.
    pub workers: usize,
    /// The key whose next event is the oldest of all, but for parked ones.
    pub oldest: Option<KeyStatus<'a>>,
}

impl Consumer {
    /// Everything up to here is settled. Looks at all open keys.
    #[must_use]
    pub fn floor(&self) -> Position {
        let next = self.keys.iter().map(|(_, key)| key.next).min();
        next.map_or(self.scanned, |next| self.scanned.min(next - 1))
    }

    /// The consumer at a glance. Looks at all open keys.
    #[must_use]
    pub fn status(&self) -> Status<'_> {
        let keys = || self.open_keys();
        let parked = keys().filter(|key| key.place == KeyPlace::Parked).count();
        let others = keys().filter(|key| key.place != KeyPlace::Parked);
        Status {
            state: self.state,
            generation: self.generation,
            scanned: self.scanned,
            floor: self.floor(),
            open_keys: self.keys.len(),
            ready: self.ready.len(),
            in_flight: self.deliveries.len(),
            parked,
            workers: self.workers.len(),
            oldest: others.min_by_key(|key| key.next),
        }
    }

    /// The open keys, in no order.
    pub fn open_keys(&self) -> impl Iterator<Item = KeyStatus<'_>> {
        self.keys.iter().map(|(_, key)| KeyStatus {
            key: &key.name,
            next: key.next,
            tries: key.tries,
            place: self.place(key),
        })
    }

    fn place(&self, key: &Key) -> KeyPlace<'_> {
        match key.state {
            KeyState::Looking => KeyPlace::Looking,
            KeyState::Waiting => KeyPlace::Waiting,
            KeyState::Ready => KeyPlace::Ready,
            KeyState::Held(number) => {
                KeyPlace::Held(&self.workers.get(self.deliveries[&number].worker).name)
            }
            KeyState::Retrying(due_us) => KeyPlace::Retrying(due_us),
            KeyState::Parking { .. } | KeyState::Parked | KeyState::Replaying => KeyPlace::Parked,
        }
    }

    /// The deliveries that workers hold, the longest hold first.
    pub fn held_deliveries(&self) -> impl Iterator<Item = HeldStatus<'_>> {
        self.deliveries.iter().map(|(&number, held)| HeldStatus {
            id: self.delivery_id(number, held),
            worker: &self.workers.get(held.worker).name,
            since_us: held.since_us,
            is_staged: held.staged > 0,
        })
    }
}
