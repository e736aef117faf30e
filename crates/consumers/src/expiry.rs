//! What time takes away and brings back.

use crate::consumer::Consumer;
use crate::plants::{Plant, planted};
use wellspring_types::Position;

impl Consumer {
    /// Takes deliveries from workers that were silent or held them for too long, and lines up the
    /// events whose retry is due. Returns how many deliveries were lost. Calls that have a time do
    /// this first.
    pub fn expire(&mut self, now_us: u64) -> usize {
        let before = self.counters.expired;
        if let Some(until_us) = now_us.checked_sub(self.definition.hold_us) {
            while let Some(worker) = self.workers.take_silent(until_us) {
                let held: Vec<u64> = self.workers.get(worker).held.iter().copied().collect();
                held.into_iter().for_each(|number| self.lose(number));
                self.workers.forget_if_gone(worker);
            }
        }
        if let Some(until_us) = now_us.checked_sub(self.definition.max_hold_us) {
            let since = self.deliveries.iter();
            let overdue = since.take_while(|(_, held)| held.since_us <= until_us);
            let overdue: Vec<u64> = overdue.map(|(number, _)| *number).collect();
            overdue.into_iter().for_each(|number| self.lose(number));
        }
        while let Some(&(due_us, key)) = self.retries.first()
            && due_us <= now_us
        {
            self.retries.pop_first();
            self.set_ready(key);
        }
        usize::try_from(self.counters.expired - before).expect("deliveries are in memory")
    }

    /// The events that are to be parked since this was last asked, as their deliveries expired: no
    /// worker has told a reason. Each with the worker that had it.
    pub fn take_parked_by_expiry(&mut self) -> Vec<(Position, Box<str>)> {
        std::mem::take(&mut self.parked_by_expiry)
    }

    /// Takes a delivery from its worker, unless an append that settles it is staged.
    fn lose(&mut self, number: u64) {
        if self.deliveries[&number].staged > 0 && !planted(Plant::ExpiresStaged) {
            return;
        }
        let worker = self.workers.get(self.deliveries[&number].worker).name.clone();
        let key = self.end_delivery(number);
        self.counters.expired += 1;
        if let Some(position) = self.try_again(key, None) {
            self.parked_by_expiry.push((position, worker));
        }
    }

    /// After an append whose outcome is known: a worker that was silent meanwhile loses what is
    /// left of the delivery.
    pub(crate) fn lose_if_silent(&mut self, number: u64, worker: u64) {
        if self.deliveries.contains_key(&number) && self.workers.get(worker).is_silent {
            self.lose(number);
        }
    }
}
