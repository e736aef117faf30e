//! What is committed, for the logs of this process: entries in their order, outcomes of offers, and
//! answers to questions for the end.
//!
//! Recent entries of a log wait here; those before them are read from the WAL again.

use crate::checkpoint::{Checkpoint, KnownStart};
use crate::frame::{Item, MAX_ITEMS, index_of, place};
use crate::plants::{Plant, planted};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use wellspring_log::shared::{Arrival, AskId, OfferId, OfferOutcome, Place};

/// Most bytes of a log's entries that wait here.
const RECENT_BYTES: usize = 32 << 20;

/// How much more patience there is with an offer that may have been proposed: a slow disk must not
/// make logs offer everything again.
const LEFT_PATIENCE: u64 = 4;

/// See the module's documentation.
pub(crate) struct Delivery {
    /// The number of this process: its offers are told apart by it.
    start: u64,
    state: Mutex<Delivered>,
}

#[derive(Default)]
struct Delivered {
    /// The last index that was applied.
    applied: u64,
    /// The index of the last checkpoint of another node: the WAL may lack entries up to it.
    installed: u64,
    logs: BTreeMap<Arc<str>, LogTail>,
    last_connection: u64,
    last_offer: u64,
    /// Offers without an outcome, by their number in this process.
    offers: BTreeMap<u64, OpenOffer>,
    /// Questions whose answer waits until this index is applied.
    ends: Vec<(u64, Asker)>,
    /// Why nothing is committed here any more.
    ended: Option<String>,
}

/// An offer whose outcome is not known.
struct OpenOffer {
    log: Arc<str>,
    connection: u64,
    id: OfferId,
    /// When it was made, µs.
    offered_us: u64,
    /// Whether anyone may have proposed it.
    has_left: bool,
}

/// Who asked for the end of a log.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) log: Arc<str>,
    pub(crate) connection: u64,
    pub(crate) id: AskId,
}

/// The end of a log, and its connection if there is one.
#[derive(Default)]
struct LogTail {
    /// The place of its last entry, or that of the checkpoint.
    last: Place,
    /// What a copy is known to hold, here or where the checkpoint was made.
    start: Option<KnownStart>,
    /// What this node's copy is known to hold.
    copied: Place,
    /// The index of the first entry that this node's copy may lack.
    lacks_from: Option<u64>,
    /// Its entries after `before`, for the connection.
    recent: VecDeque<(Place, Bytes)>,
    recent_bytes: usize,
    before: Place,
    connection: u64,
    told: VecDeque<Arrival>,
    waker: Option<Waker>,
}

/// What a connection finds.
pub(crate) enum NextArrival {
    Arrival(Arrival),
    /// What follows is not here: the entries of the WAL up to this index have to be searched.
    InWal {
        applied: u64,
    },
}

/// Why nothing is delivered any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryEnd {
    /// Another connection reads the log.
    Replaced,
    /// Nothing is committed here any more.
    Stopped(String),
}

impl fmt::Display for DeliveryEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeliveryEnd::Replaced => {
                f.write_str("another connection of this process reads the log")
            }
            DeliveryEnd::Stopped(why) => f.write_str(why),
        }
    }
}

impl LogTail {
    fn keep(&mut self, place: Place, entry: Bytes) {
        self.last = self.last.max(place);
        if self.start.as_ref().is_none_or(|start| start.place < place) {
            self.lacks_from.get_or_insert(index_of(place));
        }
        if self.connection == 0 {
            self.before = place;
            return;
        }
        self.recent_bytes += entry.len();
        self.recent.push_back((place, entry));
        while self.recent_bytes > RECENT_BYTES
            && let Some((oldest, entry)) = self.recent.pop_front()
        {
            self.recent_bytes -= entry.len();
            self.before = oldest;
        }
    }
}

impl Delivered {
    /// Tells the connection of a log, unless it is gone. Returns who is to be woken.
    fn tell(&mut self, log: &str, connection: u64, arrival: Arrival) -> Option<Waker> {
        let tail = self.logs.get_mut(log).filter(|tail| tail.connection == connection)?;
        tail.told.push_back(arrival);
        tail.waker.take()
    }

    fn settle(&mut self, offer: u64, outcome: OfferOutcome) -> Option<Waker> {
        let OpenOffer { log, connection, id, .. } = self.offers.remove(&offer)?;
        self.tell(&log, connection, Arrival::Offer { id, outcome })
    }

    /// Answers questions that wait until this index is applied.
    fn answer_up_to(&mut self, index: u64) -> Vec<Waker> {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.ends).into_iter().partition(|(wanted, _)| *wanted <= index);
        self.ends = later;
        due.iter().filter_map(|(_, asker)| self.answer(asker, true)).collect()
    }

    fn answer(&mut self, asker: &Asker, is_known: bool) -> Option<Waker> {
        let last = self.logs.get(&asker.log).map(|tail| tail.last);
        let last = if planted(Plant::EndOfGroup) { Some(place(self.applied, 0)) } else { last };
        let end = last.filter(|_| is_known);
        let end = Arrival::End { id: asker.id, end };
        self.tell(&asker.log, asker.connection, end)
    }
}

impl Delivery {
    /// The entry at this index is committed: a frame with these items, or something else.
    pub(crate) fn applied(&self, index: u64, items: Vec<Item>) {
        let mut state = self.state();
        let mut woken: Vec<Waker> = Vec::new();
        assert!(index > state.applied, "entries are applied in order");
        state.applied = index;
        for (n, Item { start, offer, log, entry }) in items.into_iter().enumerate() {
            let place = place(index, n);
            let tail = state.logs.entry(log).or_default();
            tail.keep(place, entry);
            woken.extend(tail.waker.take());
            if start == self.start {
                woken.extend(state.settle(offer, OfferOutcome::Placed(place)));
            }
        }
        woken.extend(state.answer_up_to(index));
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Delivery {
    /// Goes on after a checkpoint, if there is one.
    pub(crate) fn new(start: u64, checkpoint: Option<&Checkpoint>) -> Delivery {
        let delivery = Delivery { start, state: Mutex::default() };
        if let Some(checkpoint) = checkpoint {
            delivery.begin_after(checkpoint);
        }
        delivery
    }

    /// Goes on after a checkpoint of another node: what is before will not be applied here.
    pub(crate) fn install(&self, checkpoint: &Checkpoint) {
        self.state().installed = checkpoint.id.index;
        self.begin_after(checkpoint);
    }

    fn begin_after(&self, checkpoint: &Checkpoint) {
        let mut state = self.state();
        let index = checkpoint.id.index;
        if index <= state.applied {
            return;
        }
        state.applied = index;
        for (log, start) in &checkpoint.logs {
            let tail = state.logs.entry(Arc::clone(log)).or_default();
            if tail.start.as_ref().is_none_or(|known| known.place < start.place) {
                tail.start = Some(start.clone());
            }
            // What a frame before it has of the log is no longer known.
            tail.recent.retain(|(place, _)| index_of(*place) > index);
            tail.recent_bytes = tail.recent.iter().map(|(_, entry)| entry.len()).sum();
            tail.before = place(index, MAX_ITEMS - 1);
            tail.last = tail.last.max(start.place);
            tail.lacks_from = None;
        }
        let woken = state.answer_up_to(index);
        let waiting = state.logs.values_mut().filter_map(|tail| tail.waker.take());
        let woken: Vec<Waker> = woken.into_iter().chain(waiting).collect();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// A log's copy holds everything up to this place.
    pub(crate) fn durable(&self, log: &Arc<str>, upto: KnownStart) {
        let mut state = self.state();
        let tail = state.logs.entry(Arc::clone(log)).or_default();
        tail.copied = tail.copied.max(upto.place);
        if tail.start.as_ref().is_none_or(|known| known.place < upto.place) {
            // The frame of that place may have more.
            tail.lacks_from = (upto.place < tail.last).then(|| index_of(upto.place));
            tail.start = Some(upto);
        }
    }

    /// Where a log goes on if entries up to this index, or up to those of the last checkpoint of
    /// another node, are gone; `None` if this place is not before that.
    pub(crate) fn gap_after(&self, log: &str, after: Place, purged: u64) -> Option<KnownStart> {
        let state = self.state();
        let gone = purged.max(state.installed);
        if gone == 0 || after >= place(gone, MAX_ITEMS - 1) {
            return None;
        }
        state.logs.get(log)?.start.clone().filter(|start| start.place > after)
    }

    /// The last index up to which the copies hold all entries, and where the logs go on then.
    pub(crate) fn copied(&self) -> (u64, BTreeMap<Arc<str>, KnownStart>) {
        let state = self.state();
        let lacks_from = state.logs.values().filter_map(|tail| tail.lacks_from);
        let upto = lacks_from.min().map_or(state.applied, |first| first - 1);
        let starts = state.logs.iter();
        let starts = starts.filter_map(|(log, tail)| Some((Arc::clone(log), tail.start.clone()?)));
        (upto.min(state.applied), starts.collect())
    }

    /// Whether a copy here may lack what was dropped.
    pub(crate) fn lacks_copies(&self) -> bool {
        let lacks = |tail: &LogTail| tail.start.as_ref().is_some_and(|s| s.place > tail.copied);
        self.state().logs.values().any(lacks)
    }

    /// No copy of this log exists here any more: its entries hold nothing back.
    pub(crate) fn forget(&self, log: &str) {
        let state = Arc::from(&b""[..]);
        self.durable(&Arc::from(log), KnownStart { place: Place(u64::MAX), state });
    }

    fn state(&self) -> MutexGuard<'_, Delivered> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last index that was applied.
    pub(crate) fn applied_index(&self) -> u64 {
        self.state().applied
    }

    /// Why nothing is committed here any more.
    pub(crate) fn ended(&self) -> Option<String> {
        self.state().ended.clone()
    }

    /// Begins to deliver a log's entries; an earlier connection of it gets nothing any more.
    pub(crate) fn connect(&self, log: &Arc<str>) -> u64 {
        let mut state = self.state();
        state.last_connection += 1;
        let connection = state.last_connection;
        let tail = state.logs.entry(Arc::clone(log)).or_default();
        (tail.connection, tail.waker) = (connection, None);
        tail.told.clear();
        connection
    }

    pub(crate) fn disconnect(&self, log: &str, connection: u64) {
        let mut state = self.state();
        if let Some(tail) = state.logs.get_mut(log).filter(|tail| tail.connection == connection) {
            let LogTail { last, start, copied, lacks_from, .. } = std::mem::take(tail);
            *tail = LogTail { last, before: last, start, copied, lacks_from, ..LogTail::default() };
        }
    }

    /// What follows a place, or what the connection is told; `None` if the waker will be woken.
    ///
    /// # Errors
    /// Why nothing will ever follow.
    pub(crate) fn next(
        &self,
        log: &str,
        connection: u64,
        read: Option<Place>,
        waker: &Waker,
    ) -> Result<Option<NextArrival>, DeliveryEnd> {
        let mut state = self.state();
        let (applied, ended) = (state.applied, state.ended.clone());
        let tail = state.logs.get_mut(log).filter(|tail| tail.connection == connection);
        let Some(tail) = tail else { return Err(DeliveryEnd::Replaced) };
        if let Some(told) = tail.told.pop_front() {
            return Ok(Some(NextArrival::Arrival(told)));
        }
        if let Some(read) = read.filter(|read| *read < tail.last) {
            if read < tail.before {
                return Ok(Some(NextArrival::InWal { applied }));
            }
            while let Some((place, entry)) = tail.recent.pop_front() {
                tail.recent_bytes -= entry.len();
                tail.before = place;
                if place > read {
                    let entry = Arc::from(&entry[..]);
                    return Ok(Some(NextArrival::Arrival(Arrival::Entry { place, entry })));
                }
            }
        }
        match ended {
            Some(why) => Err(DeliveryEnd::Stopped(why)),
            None => {
                tail.waker = Some(waker.clone());
                Ok(None)
            }
        }
    }

    /// Numbers an offer.
    pub(crate) fn offer(
        &self,
        log: &Arc<str>,
        connection: u64,
        id: OfferId,
        now_us: u64,
        entry: Bytes,
    ) -> Item {
        let mut state = self.state();
        state.last_offer += 1;
        let (offer, log) = (state.last_offer, Arc::clone(log));
        let offered_us = now_us;
        let open = OpenOffer { log: Arc::clone(&log), connection, id, offered_us, has_left: false };
        state.offers.insert(offer, open);
        Item { start: self.start, offer, log, entry }
    }

    /// These offers may be proposed from now on.
    pub(crate) fn leave(&self, offers: impl IntoIterator<Item = u64>) {
        let mut state = self.state();
        for offer in offers {
            state.offers.entry(offer).and_modify(|open| open.has_left = true);
        }
    }

    /// Settles offers that have no outcome yet: as refused if it is certain that no node has
    /// proposed them or will, else as unknown.
    pub(crate) fn settle(&self, offers: impl IntoIterator<Item = u64>, outcome: OfferOutcome) {
        let mut state = self.state();
        let settle = |offer| state.settle(offer, outcome);
        let woken: Vec<Waker> = offers.into_iter().filter_map(settle).collect();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Another node refuses these offers of a process: it has not proposed them. If it is not this
    /// process that made them, this one had only passed them on, and their maker doubts them later.
    pub(crate) fn refused(&self, start: u64, offers: Vec<u64>) {
        if start == self.start {
            self.settle(offers, OfferOutcome::Refused);
        }
    }

    /// Refuses offers that have not left for so long, and returns them; doubts those that have
    /// left [several times](LEFT_PATIENCE) as long ago.
    pub(crate) fn give_up(&self, now_us: u64, patience_us: u64) -> Vec<u64> {
        let is_overdue = |open: &OpenOffer| {
            let patience_us = patience_us * if open.has_left { LEFT_PATIENCE } else { 1 };
            open.offered_us + patience_us <= now_us
        };
        let overdue: Vec<(u64, bool)> = {
            let state = self.state();
            let overdue = state.offers.iter().filter(|(_, open)| is_overdue(open));
            overdue.map(|(offer, open)| (*offer, open.has_left)).collect()
        };
        let of = |left: bool| {
            overdue.iter().filter(move |(_, has_left)| *has_left == left).map(|(offer, _)| *offer)
        };
        self.settle(of(true), OfferOutcome::Unknown);
        let held: Vec<u64> = of(false).collect();
        self.settle(held.iter().copied(), OfferOutcome::Refused);
        held
    }

    /// Answers questions for the end once this index is applied; `None`: it could not be found out.
    pub(crate) fn end_is(&self, askers: Vec<Asker>, index: Option<u64>) {
        let mut state = self.state();
        let mut woken: Vec<Waker> = Vec::new();
        for asker in askers {
            match index {
                Some(index) if index > state.applied => state.ends.push((index, asker)),
                _ => woken.extend(state.answer(&asker, index.is_some())),
            }
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Nothing is committed here any more.
    pub(crate) fn end(&self, why: &str) {
        let woken: Vec<Waker> = {
            let mut state = self.state();
            state.ended.get_or_insert_with(|| why.to_owned());
            state.logs.values_mut().filter_map(|tail| tail.waker.take()).collect()
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_not_refused_because_one_of_another_process_is_that_has_its_number() {
        let delivery = Delivery::new(7, None);
        let log: Arc<str> = "a".into();
        let connection = delivery.connect(&log);
        let item = delivery.offer(&log, connection, OfferId(1), 0, Bytes::new());
        delivery.leave([item.offer]);
        let told = || delivery.next("a", connection, None, Waker::noop()).unwrap();
        delivery.refused(8, vec![item.offer]);
        assert!(told().is_none());
        delivery.refused(7, vec![item.offer]);
        let outcome = OfferOutcome::Refused;
        let Some(NextArrival::Arrival(arrival)) = told() else { panic!("an outcome") };
        assert_eq!(arrival, Arrival::Offer { id: OfferId(1), outcome });
    }
}
