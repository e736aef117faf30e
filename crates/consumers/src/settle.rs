//! What a worker does with a delivery that it holds.

use crate::consumer::Consumer;
use crate::delivery::{DeliveryId, DeliveryRefusal};
use crate::plants::{Plant, planted};
use wellspring_types::Position;

impl Consumer {
    /// The number of a delivery that this worker holds.
    fn held(&mut self, worker: &str, id: DeliveryId) -> Result<u64, DeliveryRefusal> {
        let asking = self.workers.id(worker);
        let held = self.named(id).filter(|&number| {
            let owner = self.deliveries[&number].worker;
            Some(owner) == asking || planted(Plant::AnyWorker)
        });
        let Some(number) = held else {
            self.counters.late += 1;
            if let Some(asking) = asking {
                self.workers.get_mut(asking).refuse(id);
            }
            return Err(DeliveryRefusal::Lost);
        };
        if self.deliveries[&number].staged > 0 {
            return Err(DeliveryRefusal::Staged);
        }
        Ok(number)
    }

    /// The number of a delivery that is held.
    fn named(&self, id: DeliveryId) -> Option<u64> {
        let held = self.deliveries.get(&id.number)?;
        let is_same = id == self.delivery_id(id.number, held);
        (is_same || planted(Plant::OldDeliveries)).then_some(id.number)
    }

    /// The events of a delivery that a worker holds.
    pub fn held_by(
        &mut self,
        worker: &str,
        id: DeliveryId,
    ) -> Result<Vec<Position>, DeliveryRefusal> {
        let number = self.held(worker, id)?;
        Ok(self.events_of(number, self.deliveries[&number].count))
    }

    /// The events of a delivery that a worker holds, also while an append that settles it is
    /// staged. Asking changes nothing.
    #[must_use]
    pub fn peek_held(&self, worker: &str, id: DeliveryId) -> Option<Vec<Position>> {
        let number = self.named(id)?;
        let held = &self.deliveries[&number];
        let is_its = self.workers.id(worker) == Some(held.worker);
        is_its.then(|| self.events_of(number, held.count))
    }

    /// The first events of a delivery that is held.
    fn events_of(&self, number: u64, count: u8) -> Vec<Position> {
        let held = &self.deliveries[&number];
        self.keys[held.key].positions().take(usize::from(count)).collect()
    }

    /// How many events of a delivery `up_to` includes: all without it.
    fn count_up_to(&self, number: u64, up_to: Option<Position>) -> Result<u8, DeliveryRefusal> {
        let held = &self.deliveries[&number];
        let Some(up_to) = up_to else { return Ok(held.count) };
        let place = self.keys[held.key].positions().take(usize::from(held.count));
        let place = place.zip(1..).find(|(position, _)| *position == up_to);
        place.map(|(_, count)| count).ok_or(DeliveryRefusal::NotInDelivery)
    }

    /// Takes a delivery from its worker. Returns its key.
    pub(crate) fn end_delivery(&mut self, number: u64) -> u32 {
        let held = self.deliveries.remove(&number).expect("a held delivery");
        self.workers.get_mut(held.worker).held.remove(&number);
        self.workers.forget_if_gone(held.worker);
        held.key
    }

    /// Settles a delivery, or its events up to a position; the worker goes on to hold the rest.
    pub fn settle(
        &mut self,
        worker: &str,
        id: DeliveryId,
        up_to: Option<Position>,
    ) -> Result<(), DeliveryRefusal> {
        let number = self.held(worker, id)?;
        let count = self.count_up_to(number, up_to)?;
        self.settle_events(number, count);
        Ok(())
    }

    /// Settles the events of a delivery up to a position, as an earlier append is found to have
    /// done that. What the delivery has beyond is given back.
    pub fn settle_found(
        &mut self,
        worker: &str,
        id: DeliveryId,
        up_to: Position,
    ) -> Result<(), DeliveryRefusal> {
        let number = self.held(worker, id)?;
        let held = self.deliveries[&number].count;
        let events = self.events_of(number, held).into_iter().zip(1..);
        let settled = events.take_while(|(position, _)| *position <= up_to).last();
        let settled = settled.map_or(0, |(_, count)| count);
        if settled > 0 {
            self.settle_events(number, settled);
        }
        if settled < held { self.give_back(worker, id) } else { Ok(()) }
    }

    fn settle_events(&mut self, number: u64, count: u8) {
        let held = self.deliveries.get_mut(&number).expect("a held delivery");
        let (key, rest) = (held.key, held.count - count);
        let rest = if planted(Plant::SettlesWholeRun) { 0 } else { rest };
        let steps = held.count - rest - u8::from(rest == 0);
        held.count = rest;
        held.staged = 0;
        self.counters.settled += u64::from(count);
        for _ in 0..steps {
            let has_next = self.keys[key].step();
            debug_assert!(has_next, "a run consists of known events");
        }
        if rest == 0 {
            self.end_delivery(number);
            self.leave_event(key);
        } else {
            self.set_tries(&[key], 1);
        }
    }

    /// Ends a try that failed. The next one is due after `retry_after_us`, or by default after the
    /// pause of the definition. Returns the event if it is to be parked.
    pub fn fail(
        &mut self,
        worker: &str,
        id: DeliveryId,
        retry_after_us: Option<u64>,
        now_us: u64,
    ) -> Result<Option<Position>, DeliveryRefusal> {
        let number = self.held(worker, id)?;
        let key = self.end_delivery(number);
        let pause_us = self.definition.backoff.after(self.keys[key].tries);
        let due_us = now_us.saturating_add(retry_after_us.unwrap_or(pause_us));
        self.counters.failed += 1;
        Ok(self.try_again(key, Some(due_us)))
    }

    /// Parks the first event of a delivery, whatever its tries, with its keys or alone as the
    /// definition says; where that is to stop, with its keys. The rest of a run follows its key.
    /// Returns the event.
    pub fn park(&mut self, worker: &str, id: DeliveryId) -> Result<Position, DeliveryRefusal> {
        let number = self.held(worker, id)?;
        let key = self.end_delivery(number);
        Ok(self.begin_parking(key))
    }

    /// Gives a delivery back, as if it had not been taken.
    pub fn give_back(&mut self, worker: &str, id: DeliveryId) -> Result<(), DeliveryRefusal> {
        let number = self.held(worker, id)?;
        let key = self.end_delivery(number);
        let keys = self.event_keys(key);
        self.set_tries(&keys, self.keys[key].tries.saturating_sub(1));
        self.set_ready(key);
        Ok(())
    }

    /// Asks for a delivery under the lock that stages an append which settles it. From now on the
    /// delivery does not expire. Returns the events that the append settles. The caller tells the
    /// outcome by [`settled`](Consumer::settled) or [`set_back`](Consumer::set_back).
    pub fn begin_settling(
        &mut self,
        worker: &str,
        id: DeliveryId,
        up_to: Option<Position>,
        now_us: u64,
    ) -> Result<Vec<Position>, DeliveryRefusal> {
        self.extend(worker, now_us);
        let number = self.held(worker, id)?;
        let count = self.count_up_to(number, up_to)?;
        let held = self.deliveries.get_mut(&number).expect("just found");
        held.staged = count;
        Ok(self.events_of(number, count))
    }

    /// The append that settles a delivery is durable. Nothing, if an operator has placed the
    /// consumer elsewhere in the meantime.
    pub fn settled(&mut self, id: DeliveryId) {
        let Some(number) = self.named(id) else { return };
        let held = &self.deliveries[&number];
        let (count, worker) = (held.staged, held.worker);
        if count > 0 {
            self.settle_events(number, count);
            self.lose_if_silent(number, worker);
        }
    }

    /// The append that would have settled a delivery was taken back: its worker holds it again.
    pub fn set_back(&mut self, id: DeliveryId) {
        let Some(number) = self.named(id) else { return };
        let held = self.deliveries.get_mut(&number).expect("just found");
        held.staged = 0;
        let worker = held.worker;
        self.lose_if_silent(number, worker);
    }
}
