//! The workers that have given a sign lately.

use crate::delivery::DeliveryId;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Most refusals that are kept to be told again. A call names fewer deliveries.
const MAX_REFUSED: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: Box<str>,
    pub(crate) turn: u64,
    /// The number of its latest call that began a turn, or the same one again.
    pub(crate) call: u64,
    /// Deliveries of the turn have this number or a greater one.
    pub(crate) turn_from: u64,
    /// The refusals of the turn.
    pub(crate) refused: Vec<DeliveryId>,
    /// Numbers of the deliveries it holds.
    pub(crate) held: BTreeSet<u64>,
    last_sign_us: u64,
    /// Silent for too long; it is kept as appends that settle its deliveries are staged.
    pub(crate) is_silent: bool,
}

impl Worker {
    /// Takes note of a refusal, for the same turn again.
    pub(crate) fn refuse(&mut self, delivery: DeliveryId) {
        if self.refused.len() < MAX_REFUSED {
            self.refused.push(delivery);
        }
    }
}

/// The workers, by an id that counts up, and in the order of their last signs.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    ids: HashMap<Box<str>, u64>,
    by_id: BTreeMap<u64, Worker>,
    signs: BTreeSet<(u64, u64)>,
    next_id: u64,
    /// Counts calls of all workers.
    calls: u64,
}

impl Workers {
    /// The number of a new call.
    pub(crate) fn new_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn id(&self, name: &str) -> Option<u64> {
        self.ids.get(name).copied()
    }

    pub(crate) fn get(&self, id: u64) -> &Worker {
        &self.by_id[&id]
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> &mut Worker {
        self.by_id.get_mut(&id).expect("a known worker")
    }

    pub(crate) fn add(&mut self, name: &str, turn: u64, turn_from: u64, now_us: u64) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.ids.insert(name.into(), id);
        let worker = Worker {
            name: name.into(),
            turn,
            call: self.new_call(),
            turn_from,
            refused: Vec::new(),
            held: BTreeSet::new(),
            last_sign_us: now_us,
            is_silent: false,
        };
        self.by_id.insert(id, worker);
        self.signs.insert((now_us, id));
        id
    }

    pub(crate) fn sign(&mut self, id: u64, now_us: u64) {
        let worker = self.by_id.get_mut(&id).expect("a known worker");
        self.signs.remove(&(worker.last_sign_us, id));
        worker.last_sign_us = now_us.max(worker.last_sign_us);
        worker.is_silent = false;
        self.signs.insert((worker.last_sign_us, id));
    }

    /// Takes a worker out of line whose last sign is this time or an earlier one.
    pub(crate) fn take_silent(&mut self, until_us: u64) -> Option<u64> {
        let &(sign, id) = self.signs.first().filter(|(sign, _)| *sign <= until_us)?;
        self.signs.remove(&(sign, id));
        self.get_mut(id).is_silent = true;
        Some(id)
    }

    /// Forgets a silent worker as soon as it holds nothing.
    pub(crate) fn forget_if_gone(&mut self, id: u64) {
        if self.by_id.get(&id).is_some_and(|worker| worker.is_silent && worker.held.is_empty()) {
            let worker = self.by_id.remove(&id).expect("just seen");
            self.ids.remove(&worker.name);
        }
    }

    /// Forgets the worker that was silent for longest of those that hold nothing.
    pub(crate) fn forget_idle(&mut self) -> bool {
        let holds_nothing = |(_, id): &&(u64, u64)| self.by_id[id].held.is_empty();
        let Some(&(sign, id)) = self.signs.iter().find(holds_nothing) else { return false };
        self.signs.remove(&(sign, id));
        let worker = self.by_id.remove(&id).expect("a known worker");
        self.ids.remove(&worker.name);
        true
    }

    /// The earliest last sign of a worker that holds something.
    pub(crate) fn first_sign_of_holder(&self) -> Option<u64> {
        self.signs.iter().find(|(_, id)| !self.by_id[id].held.is_empty()).map(|(sign, _)| *sign)
    }

    /// Takes everything away from all; they keep their turns.
    pub(crate) fn clear_held(&mut self) {
        let ids: Vec<u64> = self.by_id.keys().copied().collect();
        for id in ids {
            self.get_mut(id).held.clear();
            self.forget_if_gone(id);
        }
    }
}
