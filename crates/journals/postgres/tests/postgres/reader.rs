//! A log that is polled manually.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Instant;
use wellspring_journal_postgres::{PostgresLog, PostgresNode};
use wellspring_log::shared::{
    Arrival, AskId, OfferId, OfferOutcome, Place, SharedLog as _, SharedLogError,
};
use wellspring_patience::PATIENCE;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A log, its outcomes, and unused ids.
pub(crate) struct Reader {
    pub(crate) log: PostgresLog,
    pub(crate) entries: Vec<(Place, Vec<u8>)>,
    pub(crate) outcomes: Vec<(OfferId, OfferOutcome)>,
    pub(crate) ends: Vec<(AskId, Option<Place>)>,
    next_id: u64,
}

impl Reader {
    /// Follows a log from its beginning.
    pub(crate) fn of(node: &PostgresNode, log: &str) -> Reader {
        Reader::after(node, log, Place(0))
    }

    pub(crate) fn after(node: &PostgresNode, log: &str, after: Place) -> Reader {
        let mut log = node.shared_log(log);
        log.follow(after);
        Reader { log, entries: Vec::new(), outcomes: Vec::new(), ends: Vec::new(), next_id: 0 }
    }

    fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Entry { place, entry } => {
                let last = self.entries.last().map_or(Place(0), |(place, _)| *place);
                assert!(place > last, "{place:?} after {last:?}");
                self.entries.push((place, entry.to_vec()));
            }
            Arrival::Offer { id, outcome } => self.outcomes.push((id, outcome)),
            Arrival::End { id, end } => self.ends.push((id, end)),
            Arrival::Gap(_) | Arrival::Nothing => {}
        }
    }

    /// Processes arrivals until a condition holds; passes errors to it.
    pub(crate) fn until<T>(
        &mut self,
        mut is: impl FnMut(&Reader, Option<&SharedLogError>) -> Option<T>,
    ) -> T {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut heard = Instant::now();
        loop {
            if let Some(found) = is(self, None) {
                return found;
            }
            assert!(heard.elapsed() < PATIENCE, "in vain, with {:?}", self.outcomes);
            match self.log.next(&waker) {
                // Waits to be woken; a missing wake-up makes the test slow and is found that way.
                Ok(Arrival::Nothing) => std::thread::park_timeout(PATIENCE),
                Ok(arrival) => {
                    heard = Instant::now();
                    self.take(arrival);
                }
                Err(error) => {
                    if let Some(found) = is(self, Some(&error)) {
                        return found;
                    }
                    std::thread::park_timeout(PATIENCE);
                }
            }
        }
    }

    pub(crate) fn offer(&mut self, after: u64, entry: &[u8]) -> OfferId {
        self.next_id += 1;
        let id = OfferId(self.next_id);
        self.log.offer(id, Place(after), entry.into());
        id
    }

    pub(crate) fn outcome(&mut self, id: OfferId) -> OfferOutcome {
        self.until(|reader, _| {
            reader.outcomes.iter().find(|(of, _)| *of == id).map(|(_, outcome)| *outcome)
        })
    }

    /// Offers an entry and waits for the outcome.
    pub(crate) fn place(&mut self, after: u64, entry: &[u8]) -> OfferOutcome {
        let id = self.offer(after, entry);
        self.outcome(id)
    }

    /// Appends after the current end.
    pub(crate) fn append(&mut self, entry: &[u8]) -> Place {
        loop {
            let after = self.end();
            self.read_to(after);
            if let OfferOutcome::Placed(place) = self.place(after.0, entry) {
                return place;
            }
        }
    }

    /// Asks without waiting for the answer.
    pub(crate) fn log_asks(&mut self) {
        self.next_id += 1;
        self.log.ask_end(AskId(self.next_id));
    }

    pub(crate) fn ask(&mut self) -> Option<Place> {
        self.next_id += 1;
        let id = AskId(self.next_id);
        self.log.ask_end(id);
        self.until(|reader, _| reader.ends.iter().find(|(of, _)| *of == id).map(|(_, end)| *end))
    }

    pub(crate) fn end(&mut self) -> Place {
        loop {
            if let Some(end) = self.ask() {
                return end;
            }
        }
    }

    /// Reads up to a place.
    pub(crate) fn read_to(&mut self, place: Place) {
        self.until(|reader, _| {
            let last = reader.entries.last().map_or(Place(0), |(place, _)| *place);
            (last >= place).then_some(())
        });
    }

    /// Waits until the log is unusable; returns the reason.
    pub(crate) fn unusable(&mut self) -> String {
        self.until(|_, error| match error {
            Some(SharedLogError::Unusable { reason }) => Some(reason.clone()),
            _ => None,
        })
    }

    /// Waits until the log is unavailable; returns the reason.
    pub(crate) fn unavailable(&mut self) -> String {
        self.until(|_, error| match error {
            Some(SharedLogError::Unavailable { reason }) => Some(reason.clone()),
            _ => None,
        })
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.entries.iter().map(|(_, entry)| String::from_utf8_lossy(entry).into_owned()).collect()
    }
}
