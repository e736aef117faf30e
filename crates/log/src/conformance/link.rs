//! The way of one process to its engine, which a test can cut, delay and falsify: the same for
//! every engine.

use super::coins::Coins;
use crate::shared::{
    Arrival, AskId, EngineLeader, OfferId, OfferOutcome, Place, SharedLimits, SharedLog,
    SharedLogError,
};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Offers of the link's own: what the process has given up, and repetitions.
const OWN_OFFERS: u64 = 1 << 63;

/// What becomes of the offers that were made while the process was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTheWay {
    /// They never arrive.
    Lost,
    /// They arrive now, late.
    Delivered,
}

/// What goes wrong with offers while the way is open, each in so many of a thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferTrouble {
    /// Never arrive, and nobody knows.
    pub lost: u64,
    /// Arrive twice.
    pub doubled: u64,
    /// Arrive after others that were made later.
    pub late: u64,
}

/// How open the way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Open,
    /// Nothing comes through in either direction, and nothing says so.
    Cut,
    /// The same, and the process is told.
    Refused,
    /// What the process offers arrives; it hears nothing.
    Deaf,
    /// Whoever drives the journal stands still.
    Paused,
    /// The process is told that its offers stand, as by an engine that loses them afterwards.
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
    /// Made while nothing came through.
    kept: Vec<Offer>,
    kept_asks: Vec<AskId>,
    /// To be passed on to the engine, each after so many looks.
    due: Vec<(u64, Offer)>,
    /// To be told to the process before what the engine says.
    told: VecDeque<Arrival>,
    /// The last place that the process has seen.
    place: Place,
    offers: u64,
    own_offers: u64,
    /// Whom to tell when the way has changed.
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

    /// Takes an offer while the way is open; what is to be passed on at once is returned.
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

/// The way of one process to its engine. Clones are the same way.
#[derive(Debug, Clone)]
pub struct Link {
    wire: Arc<Wire>,
}

impl Link {
    /// An open way. What is drawn at random comes from the seed.
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

    /// The engine as the process sees it over this way.
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

    /// Nothing comes through any more, and the process is not told.
    pub fn cut_off(&self) {
        self.set(LinkState::Cut);
    }

    /// Nothing comes through any more, and the process is told that the engine is unavailable.
    pub fn refuse(&self) {
        self.set(LinkState::Refused);
    }

    /// What the process offers still arrives, but it hears nothing any more.
    pub fn deafen(&self) {
        self.set(LinkState::Deaf);
    }

    /// Whoever drives the journal stands still at its next step, as in a process that was stopped:
    /// the journal's thread, and each that appends.
    pub fn pause(&self) {
        self.set(LinkState::Paused);
    }

    /// From now on the process alone hears of its offers: they stand for it and for nobody else, as
    /// with an engine that acknowledges and then loses. Ends with the process.
    pub fn give_own_past(&self) {
        self.set(LinkState::OwnPast);
    }

    /// Everything comes through again, in either direction.
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

    /// What goes wrong with offers from now on.
    pub fn trouble(&self, trouble: OfferTrouble) {
        self.state().trouble = trouble;
    }

    /// The process is gone. What it has offered and was kept on the way arrives late, or never.
    pub fn end(&self, on_the_way: OnTheWay) {
        if on_the_way == OnTheWay::Delivered {
            let mut state = self.state();
            for offer in std::mem::take(&mut state.kept) {
                state.pass_on(offer, 0);
            }
        }
        self.set(LinkState::Gone);
    }

    /// How often the process has offered something: to see that something is on its way.
    #[must_use]
    pub fn offers(&self) -> u64 {
        self.state().offers
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gone() -> SharedLogError {
    SharedLogError::Unusable { reason: "the process was killed".into() }
}

fn cut() -> SharedLogError {
    SharedLogError::Unavailable { reason: "the test has cut it off".into() }
}

/// An engine at the end of a [`Link`].
struct LinkedLog {
    wire: Arc<Wire>,
    engine: Box<dyn SharedLog>,
    /// What the engine said in the moment when the process was cut off.
    stash: Option<Arrival>,
}

impl LinkedLog {
    /// The state, once the process is not paused.
    fn going(&self) -> MutexGuard<'_, State> {
        let state = locked(&self.wire.state);
        let going = self.wire.changed.wait_while(state, |state| state.way == LinkState::Paused);
        going.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the engine may be asked for something that is answered at once.
    fn ask(&self) -> Result<(), SharedLogError> {
        match self.going().way {
            LinkState::Open => Ok(()),
            LinkState::Gone => Err(gone()),
            _ => Err(cut()),
        }
    }

    /// Passes on to the engine what is due.
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

    /// What the engine says next; not what it says of the link's own offers.
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

    fn fetch(
        &mut self,
        after: Place,
        max_bytes: usize,
    ) -> Result<Vec<(Place, Arc<[u8]>)>, SharedLogError> {
        self.ask()?;
        self.engine.fetch(after, max_bytes)
    }

    fn first_kept(&mut self) -> Result<Place, SharedLogError> {
        self.ask()?;
        self.engine.first_kept()
    }

    fn engine_leader(&self) -> Option<EngineLeader> {
        self.engine.engine_leader()
    }
}
