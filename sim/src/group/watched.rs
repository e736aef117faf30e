//! A log's connection to the engine, of which everything that it says is checked: one order for all
//! nodes, outcomes that are true, ends that are not stale.

use super::copies::Copies;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use wellspring_journal_raft::RaftLog;
use wellspring_log::shared::{
    Arrival, AskId, EngineLeader, Fetched, LogStart, OfferId, OfferOutcome, Place, SharedLimits,
    SharedLog, SharedLogError,
};

/// What all connections were told. Clones share it.
#[derive(Clone, Default)]
pub struct LogFacts(Arc<Mutex<LogFactsState>>);

#[derive(Default)]
struct LogFactsState {
    /// The entry at each place of a log.
    entries: BTreeMap<(String, Place), Arc<[u8]>>,
    /// The last place of a log that is committed.
    ends: BTreeMap<String, Place>,
    broken: Option<String>,
}

impl LogFacts {
    fn state(&self) -> MutexGuard<'_, LogFactsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place of a log is committed.
    pub fn committed(&self, log: &str, place: Place) {
        let mut state = self.state();
        let end = state.ends.entry(log.to_owned()).or_default();
        *end = (*end).max(place);
    }

    /// What was said and is not true.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        self.state().broken.clone()
    }
}

impl LogFactsState {
    fn holds(&mut self, log: &str, place: Place, entry: &Arc<[u8]>, how: &str) {
        let there =
            self.entries.entry((log.to_owned(), place)).or_insert_with(|| Arc::clone(entry));
        if there != entry {
            self.broken = Some(format!("{how}: place {} of {log} has two entries", place.0));
        }
        if self.ends.get(log).is_none_or(|end| *end < place) {
            self.broken = Some(format!("{how}: place {} of {log} is not committed", place.0));
        }
    }
}

/// See the module's documentation.
pub struct WatchedLog {
    log: RaftLog,
    node: usize,
    copies: Option<Copies>,
    name: String,
    told: LogFacts,
    read: Place,
    offers: BTreeMap<OfferId, Arc<[u8]>>,
    /// What was committed when each question was asked.
    asked: BTreeMap<AskId, Place>,
}

impl WatchedLog {
    /// Watches a connection of the log with this name.
    #[must_use]
    pub fn new(
        log: RaftLog,
        (node, name): (usize, &str),
        told: LogFacts,
        copies: Option<Copies>,
    ) -> WatchedLog {
        let (offers, asked) = (BTreeMap::new(), BTreeMap::new());
        let (name, read) = (name.to_owned(), Place(0));
        WatchedLog { log, node, copies, name, told, read, offers, asked }
    }

    fn check(&mut self, arrival: &Arrival) {
        let mut state = self.told.state();
        match arrival {
            Arrival::Entry { place, entry } => {
                if *place <= self.read {
                    state.broken = Some(format!("{} follows {}", place.0, self.read.0));
                }
                self.read = *place;
                state.holds(&self.name, *place, entry, "delivered");
            }
            Arrival::Offer { id, outcome } => {
                let entry = self.offers.remove(id);
                if let (OfferOutcome::Placed(place), Some(entry)) = (outcome, entry) {
                    state.holds(&self.name, *place, &entry, "placed");
                }
            }
            Arrival::End { id, end } => {
                let then = self.asked.remove(id).unwrap_or_default();
                if let Some(end) = end.filter(|end| *end < then) {
                    let (end, then) = (end.0, then.0);
                    let what = format!("the end of {} is told as {end}, it was {then}", self.name);
                    state.broken = Some(what);
                }
            }
            Arrival::Gap(start) => {
                if start.place <= self.read {
                    state.broken = Some(format!("a gap up to {}", start.place.0));
                }
                self.read = start.place;
            }
            Arrival::Nothing => {}
        }
    }
}

impl SharedLog for WatchedLog {
    fn limits(&self) -> SharedLimits {
        self.log.limits()
    }

    fn follow(&mut self, after: Place) {
        self.read = after;
        self.log.follow(after);
    }

    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>) {
        self.offers.insert(id, Arc::clone(&entry));
        self.log.offer(id, after, entry);
    }

    fn ask_end(&mut self, id: AskId) {
        let then = self.told.state().ends.get(&self.name).copied().unwrap_or_default();
        self.asked.insert(id, then);
        self.log.ask_end(id);
    }

    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        let arrival = self.log.next(waker)?;
        self.check(&arrival);
        Ok(arrival)
    }

    fn fetch(&mut self, after: Place, bytes: usize) -> Result<Fetched, SharedLogError> {
        let found = self.log.fetch(after, bytes)?;
        if let Fetched::Entries(entries) = &found {
            let mut state = self.told.state();
            for (place, entry) in entries {
                state.holds(&self.name, *place, entry, "fetched");
            }
        }
        Ok(found)
    }

    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError> {
        self.log.gap_after(after)
    }

    fn durable(&mut self, upto: Place, state: Arc<[u8]>) {
        if let Some(copies) = &self.copies {
            copies.durable(self.node, &state);
        }
        self.log.durable(upto, state);
    }

    fn engine_leader(&self) -> Option<EngineLeader> {
        self.log.engine_leader()
    }

    fn generation(&self) -> u64 {
        self.log.generation()
    }
}
