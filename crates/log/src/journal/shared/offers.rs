//! Entries that were offered to a shared log and have not arrived. An offered batch never changes:
//! until it or a newer claim arrives, the same bytes are offered again.
//!
//! Offers can be lost, repeated and reordered in transit. A batch that arrives before its
//! predecessor is void, so when the oldest batch must be offered again, all later ones are as well
//! (go-back-N).

use super::JournalBatch;
use crate::plants::{Plant, planted};
use crate::shared::entry::BatchId;
use crate::shared::{OfferId, OfferOutcome, Place, SharedLog};
use std::collections::VecDeque;
use std::sync::Arc;
use wellspring_types::Position;

/// Shortest and longest wait before a refused or doubtful entry is offered again.
const FIRST_PAUSE_US: u64 = 1_000;
const LONGEST_PAUSE_US: u64 = 250_000;

/// What an entry is offered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The batch that begins at this position.
    Batch(Position),
    Claim,
    Beat,
    Founding,
}

/// An offered batch that is not settled.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) batch: JournalBatch,
    pub(super) id: BatchId,
    entries: Vec<Arc<[u8]>>,
    /// When it was first offered.
    pub(super) since_us: u64,
    /// Whether it must be offered again.
    due: bool,
}

#[derive(Debug)]
struct InAir {
    id: OfferId,
    purpose: Purpose,
    entry: Arc<[u8]>,
    /// The place that it takes in an engine that compares, if those before it take theirs.
    expected: Place,
    /// Its place, once known.
    placed: Option<Place>,
    at_us: u64,
}

/// The offers; see the module's documentation.
#[derive(Debug)]
pub(super) struct Offers {
    window: usize,
    /// Time without news after which an offer is in doubt.
    patience_us: u64,
    next_id: u64,
    outbox: VecDeque<(Purpose, Arc<[u8]>)>,
    in_air: Vec<InAir>,
    under_way: VecDeque<UnderWay>,
    /// Nothing is offered before this time.
    hold_until_us: u64,
    pause_us: u64,
    /// Number of repeated offers.
    repeated: u64,
}

impl Offers {
    pub(super) fn new(window: usize, patience_us: u64) -> Offers {
        Offers {
            window: window.max(1),
            patience_us,
            next_id: 1,
            outbox: VecDeque::new(),
            in_air: Vec::new(),
            under_way: VecDeque::new(),
            hold_until_us: 0,
            pause_us: FIRST_PAUSE_US,
            repeated: 0,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.has_way() && self.under_way.len() < self.window
    }

    /// Whether an entry would be passed to the engine at once.
    pub(super) fn has_way(&self) -> bool {
        self.outbox.is_empty() && self.in_air.len() < self.window
    }

    /// Number of repeated offers so far.
    pub(super) fn repeated(&self) -> u64 {
        self.repeated
    }

    pub(super) fn push(&mut self, purpose: Purpose, entry: Arc<[u8]>) {
        self.outbox.push_back((purpose, entry));
    }

    pub(super) fn push_batch(
        &mut self,
        batch: JournalBatch,
        id: BatchId,
        entries: Vec<Arc<[u8]>>,
        now_us: u64,
    ) {
        let purpose = Purpose::Batch(batch.first);
        self.outbox.extend(entries.iter().map(|entry| (purpose, Arc::clone(entry))));
        self.under_way.push_back(UnderWay { batch, id, entries, since_us: now_us, due: false });
    }

    /// Whether an entry for this purpose is offered or due.
    pub(super) fn is_pending(&self, purpose: Purpose) -> bool {
        self.outbox.iter().any(|(of, _)| *of == purpose)
            || self.in_air.iter().any(|offer| offer.purpose == purpose)
    }

    /// Whether the oldest unsettled batch must be offered again.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.under_way.front().is_some_and(|oldest| oldest.due)
    }

    /// The oldest unsettled batch.
    pub(super) fn oldest(&self) -> Option<&UnderWay> {
        self.under_way.front()
    }

    /// Removes the oldest batch, which has arrived.
    pub(super) fn pop_oldest(&mut self) -> Option<UnderWay> {
        let oldest = self.under_way.pop_front()?;
        let purpose = Purpose::Batch(oldest.batch.first);
        self.in_air.retain(|offer| offer.purpose != purpose);
        Some(oldest)
    }

    /// Gives up all batches: they will never be durable.
    pub(super) fn take_batches(&mut self) -> Vec<JournalBatch> {
        self.stop();
        self.under_way.drain(..).map(|under_way| under_way.batch).collect()
    }

    /// Cancels everything not offered yet. Offered batches stay unsettled.
    pub(super) fn stop(&mut self) {
        self.outbox.clear();
        self.in_air.clear();
        self.pause_us = FIRST_PAUSE_US;
        self.hold_until_us = 0;
    }

    /// An entry arrived from this place: the engine works, and everything before it has arrived
    /// too.
    pub(super) fn arrived(&mut self, place: Place) {
        self.in_air.retain(|offer| offer.placed.is_none_or(|placed| placed > place));
        self.pause_us = FIRST_PAUSE_US;
    }

    /// An unsettled batch arrived but was void: it must be offered again once it is the oldest.
    pub(super) fn void(&mut self, first: Position) {
        if let Some(under_way) = self.under_way.iter_mut().find(|u| u.batch.first == first) {
            under_way.due = true;
        }
    }

    /// Processes the engine's report on an offer.
    pub(super) fn outcome(&mut self, id: OfferId, outcome: OfferOutcome, seen: Place, now_us: u64) {
        let Some(at) = self.in_air.iter().position(|offer| offer.id == id) else { return };
        match outcome {
            OfferOutcome::Placed(place) if place <= seen => drop(self.in_air.remove(at)),
            OfferOutcome::Placed(place) => self.in_air[at].placed = Some(place),
            OfferOutcome::Refused | OfferOutcome::Unknown => {
                let offer = self.in_air.remove(at);
                self.offer_again(offer, now_us);
            }
        }
    }

    fn offer_again(&mut self, offer: InAir, now_us: u64) {
        match offer.purpose {
            Purpose::Batch(_) if planted(Plant::ForgetsDoubt) => return,
            Purpose::Batch(first) => self.void(first),
            // A heartbeat matters only while fresh; the next one is due soon.
            Purpose::Beat => return,
            Purpose::Claim | Purpose::Founding => {
                self.repeated += 1;
                self.outbox.push_front((offer.purpose, offer.entry));
            }
        }
        self.hold_until_us = now_us + self.pause_us;
        self.pause_us = (self.pause_us * 2).min(LONGEST_PAUSE_US);
    }

    /// Passes entries to the engine as far as it accepts them. `seen` is the last place that has
    /// arrived here.
    pub(super) fn send(&mut self, engine: &mut dyn SharedLog, seen: Place, now_us: u64) {
        let silent = |offer: &InAir| {
            offer.placed.is_none() && now_us.saturating_sub(offer.at_us) >= self.patience_us
        };
        if let Some(at) = self.in_air.iter().position(silent) {
            let offer = self.in_air.remove(at);
            self.offer_again(offer, now_us);
        }
        if now_us < self.hold_until_us {
            return;
        }
        if self.is_in_doubt() {
            self.go_back();
        }
        while self.in_air.len() < self.window
            && let Some((purpose, entry)) = self.outbox.pop_front()
        {
            let id = OfferId(self.next_id);
            self.next_id += 1;
            let after = self.in_air.last().map_or(seen, |last| last.expected.max(seen));
            engine.offer(id, after, Arc::clone(&entry));
            let expected = Place(after.0 + 1);
            self.in_air.push(InAir { id, purpose, entry, expected, placed: None, at_us: now_us });
        }
    }

    /// Marks all unsettled batches to be offered again, oldest first.
    fn go_back(&mut self) {
        let is_batch = |purpose: &Purpose| matches!(purpose, Purpose::Batch(_));
        self.outbox.retain(|(purpose, _)| !is_batch(purpose));
        self.in_air.retain(|offer| !is_batch(&offer.purpose));
        for under_way in &mut self.under_way {
            under_way.due = false;
            self.repeated += under_way.entries.len() as u64;
            let purpose = Purpose::Batch(under_way.batch.first);
            let entries = under_way.entries.iter();
            self.outbox.extend(entries.map(|entry| (purpose, Arc::clone(entry))));
        }
    }

    /// Time until the next offer is due.
    pub(super) fn due_in_us(&self, now_us: u64) -> Option<u64> {
        let waits =
            !self.outbox.is_empty() || self.under_way.front().is_some_and(|oldest| oldest.due);
        let hold = (waits && self.hold_until_us > now_us).then(|| self.hold_until_us - now_us);
        let silent = self.in_air.iter().filter(|offer| offer.placed.is_none());
        let silent =
            silent.map(|offer| (offer.at_us + self.patience_us).saturating_sub(now_us)).min();
        hold.into_iter().chain(silent).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::simulated::{Settings, SimulatedLog};
    use crate::shared::{Arrival, SharedLimits};
    use std::task::Waker;
    use std::time::Duration;

    /// An engine that compares refuses what does not follow the place that an offer names.
    #[test]
    fn an_offer_names_the_place_that_the_one_before_it_would_take() {
        let limits = SharedLimits {
            window: 4,
            lead_timeout_min: Duration::ZERO,
            ..Settings::default().limits
        };
        let log =
            SimulatedLog::immediate().with(Settings { limits, compares: true, elects: false });
        let mut node = log.connect(1);
        node.follow(Place(0));
        let mut offers = Offers::new(4, 1_000_000);
        let mut outcomes = |offers: &mut Offers, seen: Place, now_us: u64| {
            (0..3).for_each(|n: u8| offers.push(Purpose::Claim, Arc::from([n])));
            offers.send(&mut node, seen, now_us);
            let mut placed = Vec::new();
            while let Ok(arrival) = node.next(Waker::noop()) {
                match arrival {
                    Arrival::Offer { id, outcome } => {
                        placed.push(matches!(outcome, OfferOutcome::Placed(_)));
                        offers.outcome(id, outcome, seen, now_us);
                    }
                    Arrival::Entry { place, .. } => offers.arrived(place),
                    _ => break,
                }
            }
            placed
        };
        assert_eq!(outcomes(&mut offers, Place(0), 0), [true, true, true]);
        for _ in 0..3 {
            log.append(b"of another node");
        }
        assert_eq!(outcomes(&mut offers, Place(3), 1), [false, false, false]);
        assert!(offers.due_in_us(1).is_some(), "they are offered again");
    }
}
