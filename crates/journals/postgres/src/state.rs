//! What a node knows of one log: what waits to be sent, what waits to be fetched, how far it has
//! read.

use crate::rows::RowsState;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use wellspring_log::shared::entry::ENTRY_HEADER_BYTES;
use wellspring_log::shared::{Arrival, AskId, OfferId, OfferOutcome, Place, SharedLogError};

/// Nothing more is read for a log whose reader has so many bytes to fetch.
const MOST_WAITING_BYTES: usize = 32 << 20;

/// An entry to be placed.
pub(crate) struct Offer {
    pub(crate) id: OfferId,
    pub(crate) after: Place,
    pub(crate) entry: Arc<[u8]>,
}

/// What is to be sent for a log.
pub(crate) enum Job {
    /// An offer, and the rule up to the place it names, if rows are to be written with it.
    Place(Offer, Option<Box<RowsState>>),
    /// A question for the end, asked for all these.
    AskEnd,
}

/// Whether rows are written.
pub(crate) enum Rows {
    /// Not by this node.
    Off,
    /// Up to which place they are is being found out.
    Unknown,
    /// With each offer.
    Known(Box<RowsState>),
}

/// The header of the last entry that was delivered: it has checksums of all of it.
pub(crate) type Anchor = (Place, [u8; ENTRY_HEADER_BYTES]);

pub(crate) struct Inner {
    arrivals: VecDeque<Arrival>,
    waiting_bytes: usize,
    waker: Option<Waker>,
    /// The last entry among the arrivals, once it is followed.
    queued: Option<Place>,
    anchor: Option<Anchor>,
    unavailable: Option<String>,
    unusable: Option<String>,
    in_flight: Option<OfferId>,
    waiting: Option<Offer>,
    asking: Vec<AskId>,
    /// What had been read when the question under way was sent: its answer is not before that.
    asked_behind: Option<Place>,
    to_ask: Vec<AskId>,
    /// Offers wait, so that the rows catch up.
    hold: bool,
    pub(crate) rows: Rows,
    /// The end row is there.
    pub(crate) begun: bool,
    pub(crate) closed: bool,
}

/// One log of one node.
pub(crate) struct LogState {
    pub(crate) name: String,
    inner: Mutex<Inner>,
}

/// Whether the rule that was followed aside can go on beside the entries.
pub(crate) enum Joined {
    Yes,
    /// There is more to be judged first.
    Behind,
    /// An offer without rows is under way.
    Busy,
}

/// What became of entries that were read.
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
            in_flight: None,
            waiting: None,
            asking: Vec::new(),
            asked_behind: None,
            to_ask: Vec::new(),
            hold: false,
            rows,
            begun: false,
            closed: false,
        };
        LogState { name: name.to_owned(), inner: Mutex::new(inner) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something and wakes whoever waits for arrivals.
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

    /// Takes an offer. One that waits and was not sent is given up for it: it never will be.
    pub(crate) fn offer(&self, offer: Offer) {
        let mut inner = self.lock();
        if let Some(never) = inner.waiting.replace(offer) {
            inner.outcome(never.id, OfferOutcome::Refused);
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

    /// What can be sent now. At most one offer and one question of a log are under way at a time.
    pub(crate) fn job(&self) -> Option<Job> {
        let mut inner = self.lock();
        if inner.asking.is_empty() && !inner.to_ask.is_empty() {
            inner.asking = std::mem::take(&mut inner.to_ask);
            inner.asked_behind = inner.queued;
            return Some(Job::AskEnd);
        }
        if inner.in_flight.is_some() || inner.hold {
            return None;
        }
        let offer = inner.waiting.take()?;
        inner.in_flight = Some(offer.id);
        let rows = match &inner.rows {
            Rows::Known(state) if state.judged() == offer.after => Some(state.clone()),
            _ => None,
        };
        Some(Job::Place(offer, rows))
    }

    /// The offer under way was placed; `rows` is the rule behind it, if rows were written with it.
    /// Whether its entry is delivered by that: else it will be read.
    pub(crate) fn placed(&self, offer: &Offer, rows: Option<Box<RowsState>>) -> Delivery {
        let place = Place(offer.after.0 + 1);
        self.tell(|inner| {
            inner.in_flight = None;
            let mut delivery = Delivery::Nothing;
            // Nothing stands between what was delivered and this.
            if inner.queued == Some(offer.after) {
                if let (Rows::Known(known), Some(rows)) = (&mut inner.rows, rows) {
                    *known = rows;
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
            inner.in_flight = None;
            inner.outcome(id, outcome);
        });
    }

    /// The question under way is answered. Whether there is more to read.
    pub(crate) fn answered(&self, end: Option<Place>) -> Delivery {
        self.tell(|inner| {
            let asked = std::mem::take(&mut inner.asking);
            // Not what has been read since: that comes over another connection, and may overtake
            // the answer.
            if let (Some(end), Some(known)) = (end, inner.asked_behind)
                && end < known
            {
                inner.other_past(known);
                return Delivery::Nothing;
            }
            let answers = asked.into_iter().map(|id| Arrival::End { id, end });
            inner.arrivals.extend(answers);
            match end > inner.queued {
                true => Delivery::Delivered,
                false => Delivery::Nothing,
            }
        })
    }

    /// An entry was read.
    pub(crate) fn read(&self, place: Place, entry: Arc<[u8]>) -> Delivery {
        self.tell(|inner| match inner.queued {
            _ if inner.closed || inner.unusable.is_some() => Delivery::Nothing,
            Some(queued) if place.0 == queued.0 + 1 => {
                inner.deliver(place, entry);
                Delivery::Delivered
            }
            Some(queued) if place > queued => {
                inner.unusable = Some(gone(queued, place));
                Delivery::Nothing
            }
            _ => Delivery::Nothing,
        })
    }

    /// From where to read on, if there is room for more.
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

    /// There is none: what is under way is in doubt, what was not sent never will be.
    pub(crate) fn disconnected(&self, reason: &str) {
        self.tell(|inner| {
            if let Some(id) = inner.in_flight.take() {
                inner.outcome(id, OfferOutcome::Unknown);
            }
            if let Some(never) = inner.waiting.take() {
                inner.outcome(never.id, OfferOutcome::Refused);
            }
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

    /// Has the rows written with offers from now on, if nothing has been left out.
    pub(crate) fn join(&self, state: &RowsState) -> Joined {
        let mut inner = self.lock();
        if inner.in_flight.is_some() {
            inner.hold = true;
            return Joined::Busy;
        }
        if inner.queued.is_some_and(|queued| queued > state.judged()) {
            inner.hold = true;
            return Joined::Behind;
        }
        inner.rows = Rows::Known(Box::new(state.clone()));
        inner.hold = false;
        Joined::Yes
    }

    /// The rows cannot be written: there is an entry that this program cannot read.
    pub(crate) fn rows_off(&self) {
        let mut inner = self.lock();
        inner.hold = false;
        inner.rows = Rows::Off;
    }

    /// The rows are not where this node had them.
    pub(crate) fn rows_unknown(&self) {
        let mut inner = self.lock();
        inner.hold = false;
        if !matches!(inner.rows, Rows::Off) {
            inner.rows = Rows::Unknown;
        }
    }
}

impl Inner {
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
            // Whoever reads the log finds what is wrong with it.
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

/// Why what comes after a place cannot come.
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
        for place in 1..=3 {
            log.read(Place(place), entry());
        }
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
        log.read(Place(1), entry());
        log.read(Place(2), entry());
        ask(&log);
        log.answered(Some(Place(1)));
        assert!(matches!(next(&log), Ok(Arrival::Entry { .. })));
        assert!(matches!(next(&log), Ok(Arrival::Entry { .. })));
        assert!(matches!(next(&log), Err(SharedLogError::Unusable { .. })));
    }
}
