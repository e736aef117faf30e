//! A worker's turn, and the deliveries it takes.

use crate::consumer::{Consumer, RunState};
use crate::delivery::{Delivery, DeliveryId, HeldDelivery};
use crate::key::{KeyName, KeyState};
use crate::plants::{Plant, planted};
use wellspring_types::Position;

/// Whether a worker's call counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnVerdict {
    /// It is the next one.
    New,
    /// It is the last one again: what it settles, fails, parks and gives back is passed over.
    Again {
        /// What it was given, as far as the worker still holds it.
        deliveries: Vec<Delivery>,
        /// What it was refused.
        refused: Vec<DeliveryId>,
    },
    /// A later one has come.
    Passed {
        /// The latest turn.
        turn: u64,
    },
}

/// Why a worker gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeRefusal {
    /// A later call of the worker has begun a turn, or the same one again.
    Passed,
    /// The worker has begun no turn, or was silent for too long since.
    Unknown,
}

impl Consumer {
    /// The latest call of a worker: its number is for [`take`](Consumer::take).
    #[must_use]
    pub fn latest_call(&self, worker: &str) -> Option<u64> {
        Some(self.workers.get(self.workers.id(worker)?).call)
    }

    /// Begins a turn of a worker, which counts its turns up. A worker that is not known may begin
    /// at any. The name stands for the account, too: workers of two accounts have different names.
    pub fn begin_turn(&mut self, worker: &str, turn: u64, now_us: u64) -> TurnVerdict {
        self.expire(now_us);
        let Some(id) = self.workers.id(worker) else {
            self.workers.add(worker, turn, self.next_number, now_us);
            return TurnVerdict::New;
        };
        let known = self.workers.get(id);
        if turn < known.turn {
            return TurnVerdict::Passed { turn: known.turn };
        }
        self.sign(id, now_us);
        let (next_number, call) = (self.next_number, self.workers.new_call());
        let known = self.workers.get_mut(id);
        known.call = call;
        if turn == known.turn && !planted(Plant::RepeatsTurn) {
            let refused = known.refused.clone();
            let known = self.workers.get(id);
            let numbers = known.held.range(known.turn_from..);
            let deliveries = numbers.map(|number| self.delivery(*number)).collect();
            return TurnVerdict::Again { deliveries, refused };
        }
        known.turn = turn;
        known.turn_from = next_number;
        known.refused.clear();
        TurnVerdict::New
    }

    pub(crate) fn sign(&mut self, worker: u64, now_us: u64) {
        self.workers.sign(worker, now_us);
        if planted(Plant::RenewsHold) {
            for number in &self.workers.get(worker).held {
                self.deliveries.get_mut(number).expect("held").since_us = now_us;
            }
        }
    }

    /// Takes a sign of a worker, which extends all that it holds. Returns how many deliveries that
    /// is.
    pub fn extend(&mut self, worker: &str, now_us: u64) -> usize {
        self.expire(now_us);
        let Some(id) = self.workers.id(worker) else { return 0 };
        self.sign(id, now_us);
        self.workers.get(id).held.len()
    }

    /// Gives a worker at most `want` deliveries, each with a `nonce` that no other process would
    /// draw. A call that waits gets nothing once the worker has called again: the client
    /// of the earlier call may have disconnected.
    pub fn take(
        &mut self,
        worker: &str,
        call: u64,
        want: usize,
        now_us: u64,
        mut nonce: impl FnMut() -> u64,
    ) -> Result<Vec<Delivery>, TakeRefusal> {
        self.expire(now_us);
        let id = self.workers.id(worker).ok_or(TakeRefusal::Unknown)?;
        if self.workers.get(id).call != call && !planted(Plant::AnyCall) {
            return Err(TakeRefusal::Passed);
        }
        self.sign(id, now_us);
        let mut taken = Vec::new();
        while self.state == RunState::Running
            && self.is_placed
            && taken.len() < want
            && self.deliveries.len() < self.definition.max_in_flight
            && let Some(key) = self.ready.pop_front()
        {
            let number = self.hold(key, id, now_us, nonce());
            taken.push(self.delivery(number));
        }
        self.counters.delivered += taken.len() as u64;
        Ok(taken)
    }

    fn hold(&mut self, key: u32, worker: u64, now_us: u64, nonce: u64) -> u64 {
        debug_assert_eq!(self.keys[key].state, KeyState::Ready, "{:?}", self.keys[key]);
        let count = self.run_of(key).len();
        let count = u8::try_from(count).expect("bounded by MAX_RUN");
        let number = self.next_number;
        self.next_number += 1;
        let keys = self.event_keys(key);
        self.set_state(&keys, KeyState::Held(number));
        self.set_tries(&keys, self.keys[key].tries.saturating_add(1));
        let first = self.keys[key].next;
        let held = HeldDelivery { nonce, first, since_us: now_us, worker, key, count, staged: 0 };
        self.deliveries.insert(number, held);
        self.workers.get_mut(worker).held.insert(number);
        number
    }

    /// The events that a delivery of a ready key has: consecutive ones of this key alone, or one
    /// event of several keys.
    fn run_of(&self, key: u32) -> Vec<Position> {
        let most = usize::from(self.definition.run);
        let mut positions = self.keys[key].positions();
        let first: Vec<Position> = positions.by_ref().take(1).collect();
        if self.shared.contains_key(&first[0]) {
            return first;
        }
        let is_alone = |position: &Position| !self.shared.contains_key(position);
        first.into_iter().chain(positions.take(most - 1).take_while(is_alone)).collect()
    }

    pub(crate) fn delivery_id(&self, number: u64, held: &HeldDelivery) -> DeliveryId {
        let HeldDelivery { nonce, first, .. } = *held;
        DeliveryId { generation: self.generation, number, nonce, first }
    }

    /// What the worker of a held delivery gets.
    pub(crate) fn delivery(&self, number: u64) -> Delivery {
        let held = &self.deliveries[&number];
        let key = &self.keys[held.key];
        let names = self.event_keys(held.key).into_iter().map(|key| &self.keys[key].name);
        let keys = names.filter_map(|name| match name {
            KeyName::Value(value) => Some(value.clone()),
            KeyName::Event(_) => None,
        });
        Delivery {
            id: self.delivery_id(number, held),
            keys: keys.collect(),
            positions: key.positions().take(usize::from(held.count)).collect(),
            tries: key.tries,
        }
    }
}
