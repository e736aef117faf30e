//! A node's state of one log: what is to be sent, what is to be fetched, how far it has read.

use crate::rows::RowsState;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use wellspring_log::shared::entry::ENTRY_HEADER_BYTES;
use wellspring_log::shared::{
    Arrival, AskId, OfferId, OfferOutcome, Place, PlacedEntry, SharedLogError,
};

/// Reading a log pauses while its reader has this many bytes to fetch.
const MOST_WAITING_BYTES: usize = 32 << 20;

/// Maximum number of offers of a log on the way.
pub(crate) const MOST_ON_THE_WAY: usize = 4;

/// An entry to place.
pub(crate) struct Offer {
    pub(crate) id: OfferId,
    pub(crate) after: Place,
    pub(crate) entry: Arc<[u8]>,
}

/// An offer that was sent.
struct InFlight {
    id: OfferId,
    after: Place,
    header: Box<[u8]>,
    /// The rule's state after it, if its rows were sent with it.
    behind: Option<RowsState>,
}

/// The next thing to send for a log.
pub(crate) enum Job {
    Place(Box<NextOffer>),
    /// A question for the end, on behalf of all of these.
    AskEnd,
}

/// An offer to send.
pub(crate) struct NextOffer {
    pub(crate) offer: Offer,
    /// The header of the entry that must be at the place before it: of the offer on the way before
    /// this one. An entry of another node there would make this one's rows wrong.
    pub(crate) previous: Option<Box<[u8]>>,
    /// The rule's state up to the place that the offer names, if rows are to be written with it.
    pub(crate) rows: Option<RowsState>,
}

/// Whether rows are written.
pub(crate) enum Rows {
    /// Not by this node.
    Off,
    /// The place up to which they are complete is being determined.
    Unknown,
    /// With each offer.
    Known(Box<RowsState>),
}

/// The header of the last entry delivered, which contains checksums of all of it.
pub(crate) type Anchor = (Place, [u8; ENTRY_HEADER_BYTES]);

pub(crate) struct Inner {
    arrivals: VecDeque<Arrival>,
    waiting_bytes: usize,
    waker: Option<Waker>,
    /// The last entry among the arrivals, once the log is followed.
    queued: Option<Place>,
    anchor: Option<Anchor>,
    unavailable: Option<String>,
    unusable: Option<String>,
    /// Oldest first; each names the place that the one before it would take.
    in_flight: VecDeque<InFlight>,
    waiting: VecDeque<Offer>,
    asking: Vec<AskId>,
    /// What had been read when the pending question was sent: its answer cannot be before that.
    asked_behind: Option<Place>,
    to_ask: Vec<AskId>,
    /// Whether offers wait so that the rows can catch up.
    hold: bool,
    pub(crate) rows: Rows,
    /// The connection of the last offer.
    pub(crate) writer: usize,
    /// Whether the end row exists.
    pub(crate) begun: bool,
    pub(crate) closed: bool,
}

/// One log of one node.
pub(crate) struct LogState {
    pub(crate) name: String,
    inner: Mutex<Inner>,
}

/// Whether the separately followed rule can continue with the entries.
pub(crate) enum RowsJoin {
    Yes,
    /// There are entries to judge first.
    Behind,
    /// An offer without rows is pending.
    Busy,
}

/// What happened to entries that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Nothing,
    Delivered,
}

impl LogState {
    pub(crate) fn new(name: &str, rows: Rows, unavailable: Option<String>) -> LogState {
        let inner = Inner {
            arrivals: VecDeque::new(),
            waiting_bytes: 0,
            waker: None,
            queued: None,
            anchor: None,
            unavailable,
            unusable: None,
            in_flight: VecDeque::new(),
            waiting: VecDeque::new(),
            asking: Vec::new(),
            asked_behind: None,
            to_ask: Vec::new(),
            hold: false,
            rows,
            writer: 0,
            begun: false,
            closed: false,
        };
        LogState { name: name.to_owned(), inner: Mutex::new(inner) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the waiter for arrivals.
    fn tell<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let (told, waker) = {
            let mut inner = self.lock();
            (change(&mut inner), inner.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        told
    }

    pub(crate) fn follow(&self, after: Place) {
        let mut inner = self.lock();
        inner.queued = Some(after);
    }

    /// Takes an offer. If too many wait, the oldest of them is never sent.
    pub(crate) fn offer(&self, offer: Offer) {
        let mut inner = self.lock();
        inner.waiting.push_back(offer);
        if inner.waiting.len() > MOST_ON_THE_WAY {
            inner.refuse_waiting(1);
        }
    }

    pub(crate) fn ask(&self, id: AskId) {
        self.lock().to_ask.push(id);
    }

    pub(crate) fn next(&self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        let mut inner = self.lock();
        if let Some(arrival) = inner.arrivals.pop_front() {
            if let Arrival::Entry { entry, .. } = &arrival {
                inner.waiting_bytes -= entry.len();
            }
            return Ok(arrival);
        }
        match &mut inner.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        if let Some(reason) = inner.unusable.clone() {
            return Err(SharedLogError::Unusable { reason });
        }
        match inner.unavailable.clone() {
            Some(reason) => Err(SharedLogError::Unavailable { reason }),
            None => Ok(Arrival::Nothing),
        }
    }

    /// The next job. At most one question of a log is pending at a time.
    pub(crate) fn job(&self) -> Option<Job> {
        let mut inner = self.lock();
        if inner.asking.is_empty() && !inner.to_ask.is_empty() {
            inner.asking = std::mem::take(&mut inner.to_ask);
            inner.asked_behind = inner.queued;
            return Some(Job::AskEnd);
        }
        inner.next_offer().map(Box::new).map(Job::Place)
    }

    /// What is known of the offer that was sent last: the rule's state after it, if its rows were
    /// sent with it.
    pub(crate) fn sent_with(&self, behind: RowsState) {
        if let Some(last) = self.lock().in_flight.back_mut() {
            last.behind = Some(behind);
        }
    }

    /// The oldest offer on the way was placed; `counted`: with its rows. Returns whether this
    /// delivers its entry; otherwise it will be read.
    pub(crate) fn placed(&self, offer: &Offer, counted: bool) -> Delivery {
        let place = Place(offer.after.0 + 1);
        self.tell(|inner| {
            let behind = inner.settle(offer.id).and_then(|sent| sent.behind);
            let mut delivery = Delivery::Nothing;
            // There is nothing between the last delivered entry and this one.
            if inner.queued == Some(offer.after) {
                if let (Rows::Known(known), Some(behind), true) = (&mut inner.rows, behind, counted)
                {
                    **known = behind;
                }
                inner.deliver(place, Arc::clone(&offer.entry));
                delivery = Delivery::Delivered;
            }
            inner.outcome(offer.id, OfferOutcome::Placed(place));
            delivery
        })
    }

    pub(crate) fn not_placed(&self, id: OfferId, outcome: OfferOutcome) {
        self.tell(|inner| {
            let sent = inner.settle(id);
            inner.outcome(id, outcome);
            // It named the place that this offer has not taken.
            let next = inner.waiting.front().map(|offer| offer.after);
            if sent.is_some_and(|sent| next > Some(sent.after)) {
                inner.refuse_waiting(MOST_ON_THE_WAY);
            }
        });
    }

    /// Answers the pending question. Returns whether there is more to read.
    pub(crate) fn answered(&self, end: Option<Place>) -> Delivery {
        self.tell(|inner| {
            let asked = std::mem::take(&mut inner.asking);
            // Not what has been read since: that arrives over another connection and may overtake
            // the answer.
            if let (Some(end), Some(known)) = (end, inner.asked_behind)
                && end < known
            {
                inner.other_past(known);
                return Delivery::Nothing;
            }
            let answers = asked.into_iter().map(|id| Arrival::End { id, end });
            inner.arrivals.extend(answers);
            if end > inner.queued { Delivery::Delivered } else { Delivery::Nothing }
        })
    }

    /// Processes entries that were read, in order.
    pub(crate) fn read(&self, entries: Vec<PlacedEntry>) -> Delivery {
        self.tell(|inner| {
            let mut delivery = Delivery::Nothing;
            for (place, entry) in entries {
                match inner.queued {
                    _ if inner.closed || inner.unusable.is_some() => break,
                    Some(queued) if place.0 == queued.0 + 1 => {
                        inner.deliver(place, entry);
                        delivery = Delivery::Delivered;
                    }
                    Some(queued) if place > queued => inner.unusable = Some(gone(queued, place)),
                    _ => {}
                }
            }
            delivery
        })
    }

    /// Where to continue reading, if there is room for more.
    pub(crate) fn reads_after(&self) -> Option<Place> {
        let inner = self.lock();
        let reads =
            !inner.closed && inner.unusable.is_none() && inner.waiting_bytes < MOST_WAITING_BYTES;
        inner.queued.filter(|_| reads)
    }

    pub(crate) fn anchor(&self) -> Option<Anchor> {
        self.lock().anchor
    }

    pub(crate) fn found_other_past(&self, place: Place) {
        self.tell(|inner| inner.other_past(place));
    }

    /// There is a connection again.
    pub(crate) fn connected(&self) {
        self.tell(|inner| inner.unavailable = None);
    }

    /// The connection is lost: pending operations are in doubt, and those not sent never will be.
    pub(crate) fn disconnected(&self, reason: &str) {
        self.tell(|inner| {
            for sent in std::mem::take(&mut inner.in_flight) {
                inner.outcome(sent.id, OfferOutcome::Unknown);
            }
            inner.refuse_waiting(MOST_ON_THE_WAY);
            let asking = std::mem::take(&mut inner.asking);
            for id in asking.into_iter().chain(std::mem::take(&mut inner.to_ask)) {
                inner.arrivals.push_back(Arrival::End { id, end: None });
            }
            inner.hold = false;
            // The next server may be another one.
            inner.begun = false;
            if !matches!(inner.rows, Rows::Off) {
                inner.rows = Rows::Unknown;
            }
            inner.unavailable = Some(reason.to_owned());
        });
    }

    /// Writes rows with offers from now on, if nothing is missing.
    pub(crate) fn join(&self, state: &RowsState) -> RowsJoin {
        let mut inner = self.lock();
        if !inner.in_flight.is_empty() {
            inner.hold = true;
            return RowsJoin::Busy;
        }
        if inner.queued.is_some_and(|queued| queued > state.judged()) {
            inner.hold = true;
            return RowsJoin::Behind;
        }
        inner.rows = Rows::Known(Box::new(state.clone()));
        inner.hold = false;
        RowsJoin::Yes
    }

    /// Rows cannot be written: this program cannot read an entry.
    pub(crate) fn rows_off(&self) {
        let mut inner = self.lock();
        inner.hold = false;
        inner.rows = Rows::Off;
    }

    /// The rows are not where this node expected them. Returns whether it expected them anywhere:
    /// otherwise they are being filled in.
    pub(crate) fn rows_unknown(&self) -> bool {
        let mut inner = self.lock();
        inner.hold = false;
        let expected = matches!(inner.rows, Rows::Known(_));
        if expected {
            inner.rows = Rows::Unknown;
        }
        expected
    }
}

impl Inner {
    /// The next offer to send. One behind another that is on the way goes over the same connection,
    /// and its rows need the rule's state after that one.
    fn next_offer(&mut self) -> Option<NextOffer> {
        if self.hold || self.in_flight.len() >= MOST_ON_THE_WAY {
            return None;
        }
        let after = self.waiting.front()?.after;
        let known = match &self.rows {
            Rows::Known(state) => Some(&**state),
            Rows::Off | Rows::Unknown => None,
        };
        let last = self.in_flight.back();
        let rows = match last {
            None => known.filter(|state| state.judged() == after).cloned(),
            Some(last) if last.after.0 + 1 != after.0 => return None,
            Some(last) => known.and(last.behind.clone()),
        };
        if last.is_some() && rows.is_some() != known.is_some() {
            return None;
        }
        let previous = last.map(|last| last.header.clone());
        let offer = self.waiting.pop_front()?;
        let header = offer.entry[..offer.entry.len().min(ENTRY_HEADER_BYTES)].into();
        self.in_flight.push_back(InFlight { id: offer.id, after, header, behind: None });
        Some(NextOffer { offer, previous, rows })
    }

    /// Removes an offer from those on the way.
    fn settle(&mut self, id: OfferId) -> Option<InFlight> {
        let at = self.in_flight.iter().position(|sent| sent.id == id)?;
        self.in_flight.remove(at)
    }

    /// Refuses the oldest offers that have not been sent: they never will be.
    fn refuse_waiting(&mut self, most: usize) {
        for _ in 0..most {
            let Some(never) = self.waiting.pop_front() else { return };
            self.outcome(never.id, OfferOutcome::Refused);
        }
    }

    fn outcome(&mut self, id: OfferId, outcome: OfferOutcome) {
        self.arrivals.push_back(Arrival::Offer { id, outcome });
    }

    fn deliver(&mut self, place: Place, entry: Arc<[u8]>) {
        self.queued = Some(place);
        self.anchor = entry.first_chunk::<ENTRY_HEADER_BYTES>().map(|header| (place, *header));
        if let Rows::Known(state) = &mut self.rows
            && state.judged() < place
            && state.judge(place, Arc::clone(&entry)).is_err()
        {
            // The log's reader finds out what is wrong with it.
            self.rows = Rows::Off;
        }
        self.waiting_bytes += entry.len();
        self.arrivals.push_back(Arrival::Entry { place, entry });
    }

    fn other_past(&mut self, place: Place) {
        self.unusable = Some(format!(
            "what this node read up to place {} is not what the server holds: it was restored, or a standby \
             that lacked commits took its place; find the server that has them, or reset this node's copy",
            place.0
        ));
    }
}

/// Why entries after a place cannot be delivered.
pub(crate) fn gone(after: Place, found: Place) -> String {
    format!(
        "the entries from place {} to {} are gone from ws_entry: restore the table, or give this node a copy \
         that reaches further",
        after.0 + 1,
        found.0 - 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Arc<[u8]> {
        Arc::from(&[0u8; ENTRY_HEADER_BYTES][..])
    }

    fn ask(log: &LogState) {
        log.ask(AskId(1));
        assert!(matches!(log.job(), Some(Job::AskEnd)));
    }

    fn next(log: &LogState) -> Result<Arrival, SharedLogError> {
        log.next(Waker::noop())
    }

    /// Question and entries travel over different connections.
    #[test]
    fn entries_that_overtake_the_answer_of_an_older_end_are_no_other_past() {
        let log = LogState::new("l", Rows::Off, None);
        log.follow(Place(0));
        ask(&log);
        log.read((1..=3).map(|place| (Place(place), entry())).collect());
        assert_eq!(log.answered(Some(Place(1))), Delivery::Nothing);
        for place in 1..=3 {
            assert!(matches!(next(&log), Ok(Arrival::Entry { place: p, .. }) if p == Place(place)));
        }
        let end = next(&log);
        assert!(matches!(end, Ok(Arrival::End { end: Some(Place(1)), .. })), "{end:?}");
    }

    #[test]
    fn an_end_before_what_was_read_when_it_was_asked_for_is_another_past() {
        let log = LogState::new("l", Rows::Off, None);
        log.follow(Place(0));
        log.read(vec![(Place(1), entry()), (Place(2), entry())]);
        ask(&log);
        log.answered(Some(Place(1)));
        assert!(matches!(next(&log), Ok(Arrival::Entry { .. })));
        assert!(matches!(next(&log), Ok(Arrival::Entry { .. })));
        assert!(matches!(next(&log), Err(SharedLogError::Unusable { .. })));
    }
}
