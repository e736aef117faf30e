//! The connection of one process to its engine, which a test can cut, delay and falsify; it works
//! with every engine.

use crate::coins::Coins;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use wellspring_log::shared::{
    Arrival, AskId, EngineLeader, Fetched, LogStart, OfferId, OfferOutcome, Place, SharedLimits,
    SharedLog, SharedLogError,
};

/// Offers made by the link itself: those that the process has given up, and repetitions.
const OWN_OFFERS: u64 = 1 << 63;

/// What happens to offers made while the process was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTheWay {
    /// They never arrive.
    Lost,
    /// They arrive now, late.
    Delivered,
}

/// Faults of offers while the connection is open, in permille.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferTrouble {
    /// Silently lost.
    pub lost: u64,
    /// Delivered twice.
    pub doubled: u64,
    /// Delivered after later ones.
    pub late: u64,
}

/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Open,
    /// Nothing passes in either direction, silently.
    Cut,
    /// Nothing passes, and the process gets errors.
    Refused,
    /// The process's offers arrive; it hears nothing.
    Deaf,
    /// The threads that drive the journal are suspended.
    Paused,
    /// The process is told that its offers are placed, as by an engine that loses them afterwards.
    OwnPast,
    /// The process is gone.
    Gone,
}

#[derive(Debug)]
struct Offer {
    id: OfferId,
    after: Place,
    entry: Arc<[u8]>,
}

#[derive(Debug)]
struct State {
    way: LinkState,
    trouble: OfferTrouble,
    coins: Coins,
    /// Offers made while nothing passed.
    kept: Vec<Offer>,
    kept_asks: Vec<AskId>,
    /// Offers to pass to the engine, each after this many polls.
    due: Vec<(u64, Offer)>,
    /// Arrivals to deliver before those of the engine.
    told: VecDeque<Arrival>,
    /// The last place that the process has seen.
    place: Place,
    offers: u64,
    own_offers: u64,
    /// The waker to call when the connection changes.
    waker: Option<Waker>,
}

impl State {
    /// Passes an offer on under an id that the process does not know.
    fn pass_on(&mut self, offer: Offer, looks: u64) {
        self.own_offers += 1;
        let id = OfferId(OWN_OFFERS | self.own_offers);
        self.due.push((looks, Offer { id, ..offer }));
    }

    fn tell_unknown(&mut self, id: OfferId) {
        self.told.push_back(Arrival::Offer { id, outcome: OfferOutcome::Unknown });
    }

    /// Takes an offer while the connection is open; returns what must be passed on immediately.
    fn take_open(&mut self, offer: Offer) -> Option<Offer> {
        let drawn = self.coins.below(1000);
        let OfferTrouble { lost, doubled, late } = self.trouble;
        if drawn < lost {
            self.tell_unknown(offer.id);
            return None;
        }
        if drawn < lost + doubled {
            let again = Offer { entry: Arc::clone(&offer.entry), ..offer };
            let looks = self.coins.below(6);
            self.pass_on(again, looks);
        } else if drawn < lost + doubled + late {
            let looks = 1 + self.coins.below(5);
            self.due.push((looks, offer));
            return None;
        }
        Some(offer)
    }
}

#[derive(Debug)]
struct Wire {
    state: Mutex<State>,
    changed: Condvar,
}

/// The connection of one process to its engine. Clones share it.
#[derive(Debug, Clone)]
pub struct Link {
    wire: Arc<Wire>,
}

impl Link {
    /// An open connection. Random choices derive from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Link {
        let state = State {
            way: LinkState::Open,
            trouble: OfferTrouble::default(),
            coins: Coins(seed),
            kept: Vec::new(),
            kept_asks: Vec::new(),
            due: Vec::new(),
            told: VecDeque::new(),
            place: Place(0),
            offers: 0,
            own_offers: 0,
            waker: None,
        };
        Link { wire: Arc::new(Wire { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// The engine as the process sees it through this connection.
    #[must_use]
    pub fn over(&self, engine: Box<dyn SharedLog>) -> Box<dyn SharedLog> {
        Box::new(LinkedLog { wire: Arc::clone(&self.wire), engine, stash: None })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.wire.state)
    }

    fn set(&self, way: LinkState) {
        let mut state = self.state();
        if state.way != LinkState::Gone {
            state.way = way;
        }
        let waker = state.waker.take();
        drop(state);
        self.wire.changed.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Silently stops all traffic.
    pub fn cut_off(&self) {
        self.set(LinkState::Cut);
    }

    /// Stops all traffic and reports the engine as unavailable to the process.
    pub fn refuse(&self) {
        self.set(LinkState::Refused);
    }

    /// Lets the process's offers pass, but nothing in the other direction.
    pub fn deafen(&self) {
        self.set(LinkState::Deaf);
    }

    /// Suspends every thread that drives the journal at its next step, as in a stopped process: the
    /// journal's thread and each appending thread.
    pub fn pause(&self) {
        self.set(LinkState::Paused);
    }

    /// From now on only the process learns of its offers: they are placed for it and for no other
    /// node, as with an engine that acknowledges and then loses them. Lasts until the process ends.
    pub fn give_own_past(&self) {
        self.set(LinkState::OwnPast);
    }

    /// Restores traffic in both directions.
    pub fn heal(&self, on_the_way: OnTheWay) {
        let mut state = self.state();
        for offer in std::mem::take(&mut state.kept) {
            state.tell_unknown(offer.id);
            if on_the_way == OnTheWay::Delivered {
                state.pass_on(offer, 0);
            }
        }
        for id in std::mem::take(&mut state.kept_asks) {
            state.told.push_back(Arrival::End { id, end: None });
        }
        drop(state);
        self.set(LinkState::Open);
    }

    /// Sets the faults of offers from now on.
    pub fn trouble(&self, trouble: OfferTrouble) {
        self.state().trouble = trouble;
    }

    /// The process is gone. Its delayed offers arrive late, or never.
    pub fn end(&self, on_the_way: OnTheWay) {
        if on_the_way == OnTheWay::Delivered {
            let mut state = self.state();
            for offer in std::mem::take(&mut state.kept) {
                state.pass_on(offer, 0);
            }
        }
        self.set(LinkState::Gone);
    }

    /// Number of offers of the process, to see that something is in flight.
    #[must_use]
    pub fn offers(&self) -> u64 {
        self.state().offers
    }
}

/// Locks a mutex, even if a test panicked while holding it.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gone() -> SharedLogError {
    SharedLogError::Unusable { reason: "the process was killed".into() }
}

fn cut() -> SharedLogError {
    SharedLogError::Unavailable { reason: "the test has cut it off".into() }
}

/// An engine behind a [`Link`].
struct LinkedLog {
    wire: Arc<Wire>,
    engine: Box<dyn SharedLog>,
    /// The engine's arrival at the moment the process was cut off.
    stash: Option<Arrival>,
}

impl LinkedLog {
    /// The state, once the process is not suspended.
    fn going(&self) -> MutexGuard<'_, State> {
        let state = locked(&self.wire.state);
        let going = self.wire.changed.wait_while(state, |state| state.way == LinkState::Paused);
        going.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the engine may be called for an immediate answer.
    fn ask(&self) -> Result<(), SharedLogError> {
        match self.going().way {
            LinkState::Open => Ok(()),
            LinkState::Gone => Err(gone()),
            _ => Err(cut()),
        }
    }

    /// Passes due offers to the engine.
    fn pass_on_due(&mut self) {
        let mut now = Vec::new();
        let mut state = locked(&self.wire.state);
        if matches!(state.way, LinkState::Cut | LinkState::Refused | LinkState::OwnPast) {
            return;
        }
        for (looks, offer) in std::mem::take(&mut state.due) {
            match looks {
                0 => now.push(offer),
                looks => state.due.push((looks - 1, offer)),
            }
        }
        drop(state);
        for Offer { id, after, entry } in now {
            self.engine.offer(id, after, entry);
        }
    }

    /// The engine's next arrival, except those of the link's own offers.
    fn hear(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        loop {
            let arrival = match self.stash.take() {
                Some(arrival) => arrival,
                None => self.engine.next(waker)?,
            };
            match arrival {
                Arrival::Offer { id: OfferId(id), .. } if id >= OWN_OFFERS => {}
                arrival => return Ok(arrival),
            }
        }
    }
}

impl SharedLog for LinkedLog {
    fn limits(&self) -> SharedLimits {
        self.engine.limits()
    }

    fn follow(&mut self, after: Place) {
        locked(&self.wire.state).place = after;
        self.engine.follow(after);
    }

    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>) {
        let offer = Offer { id, after, entry };
        let mut state = self.going();
        state.offers += 1;
        let now = match state.way {
            LinkState::Open | LinkState::Paused => state.take_open(offer),
            LinkState::Deaf => Some(offer),
            LinkState::Cut | LinkState::Refused => {
                state.kept.push(offer);
                None
            }
            LinkState::OwnPast => {
                let place = Place(state.place.0 + 1);
                state.place = place;
                state.told.push_back(Arrival::Entry { place, entry: offer.entry });
                let outcome = OfferOutcome::Placed(place);
                state.told.push_back(Arrival::Offer { id, outcome });
                None
            }
            LinkState::Gone => None,
        };
        drop(state);
        if let Some(Offer { id, after, entry }) = now {
            self.engine.offer(id, after, entry);
        }
    }

    fn ask_end(&mut self, id: AskId) {
        let mut state = self.going();
        match state.way {
            LinkState::Open | LinkState::Paused | LinkState::Deaf => {}
            LinkState::Cut | LinkState::Refused => return state.kept_asks.push(id),
            LinkState::OwnPast => {
                let end = Some(state.place);
                return state.told.push_back(Arrival::End { id, end });
            }
            LinkState::Gone => return,
        }
        drop(state);
        self.engine.ask_end(id);
    }

    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        self.pass_on_due();
        let mut state = self.going();
        state.waker = Some(waker.clone());
        if matches!(state.way, LinkState::Open | LinkState::OwnPast)
            && let Some(told) = state.told.pop_front()
        {
            return Ok(told);
        }
        match state.way {
            LinkState::Open => {}
            LinkState::Refused => return Err(cut()),
            LinkState::Gone => return Err(gone()),
            _ => return Ok(Arrival::Nothing),
        }
        let waits_for_looks = !state.due.is_empty();
        drop(state);
        let arrival = self.hear(waker)?;
        let mut state = self.going();
        if state.way != LinkState::Open {
            drop(state);
            self.stash = Some(arrival).filter(|arrival| *arrival != Arrival::Nothing);
            waker.wake_by_ref();
            return Ok(Arrival::Nothing);
        }
        match &arrival {
            Arrival::Entry { place, .. } => state.place = *place,
            Arrival::Nothing if waits_for_looks => waker.wake_by_ref(),
            _ => {}
        }
        Ok(arrival)
    }

    fn fetch(&mut self, after: Place, max_bytes: usize) -> Result<Fetched, SharedLogError> {
        self.ask()?;
        self.engine.fetch(after, max_bytes)
    }

    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError> {
        self.ask()?;
        self.engine.gap_after(after)
    }

    fn durable(&mut self, upto: Place, state: Arc<[u8]>) {
        self.engine.durable(upto, state);
    }

    fn engine_leader(&self) -> Option<EngineLeader> {
        self.engine.engine_leader()
    }

    fn generation(&self) -> u64 {
        self.engine.generation()
    }
}
