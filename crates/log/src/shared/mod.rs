//! A log beyond one machine: opaque entries in one order that several machines agree on, and what
//! makes one event log of them.
//!
//! An engine (a database, a broker, a consensus group) implements [`SharedLog`]. It needs to give
//! two things only: **one order** for all readers, and **no acknowledged entry lost**. It may
//! deliver late, drop, repeat and reorder what is offered to it. Who leads, which batches count and
//! when an append may be answered is decided above it, by one [`rule`] that every reader
//! applies alike; no engine's own fencing is trusted.
//!
//! The shape is that of the Loglet of Delos (Balakrishnan et al., OSDI 2020,
//! <https://www.usenix.org/conference/osdi20/presentation/balakrishnan>).
//!
//! - [`entry`]: the bytes of an entry: a founding, a claim, a beat, a batch or a probe.
//! - [`rule`]: which claims and batches take effect. Pure.
//! - `lead`: when a node claims the lead, shows life, and steps down. Pure; time is passed in.
//! - [`simulated`]: a shared log in memory that delays, loses, repeats and reorders on demand.
//!
//! Two nodes over an engine in memory; a real one is connected in its place:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use wellspring_log::shared::simulated::SimulatedLog;
//! use wellspring_log::storage::simulated::SimulatedStorage;
//! use wellspring_log::{Append, AppendError, EncodedEvents, Log, Options, SharedOptions};
//! use wellspring_types::Event;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = SimulatedLog::immediate();
//! let open = |number: u64| {
//!     let storage = Arc::new(SimulatedStorage::new(number)); // DiskStorage, for a folder
//!     let shared = SharedOptions {
//!         lead_timeout: Duration::from_secs(60),
//!         ..SharedOptions::new(&format!("node-{number}"), "http://127.0.0.1:1")
//!     };
//!     Log::open_shared(storage, Options::default(), shared, Box::new(engine.connect(number)))
//! };
//! let (leader, follower) = (open(1)?, open(2)?);
//!
//! // One would claim the lead after a silence of the lead timeout; or it is told to.
//! leader.claim_lead();
//! while !leader.role().leads() {
//!     leader.role_changes().wait_past(leader.role_changes().head(), Duration::from_millis(10));
//! }
//! let mut events = EncodedEvents::new();
//! events.push(&Event::json("Greeted", &["name:ada"], "{}").as_ref())?;
//! let append = Append { events, ..Append::default() };
//! let first = leader.append(append.clone())?.first;
//!
//! // The other has it by and by, and knows who leads.
//! assert_eq!(follower.feed().wait_past(first - 1, Duration::from_secs(10)), first);
//! let Err(AppendError::NotLeading { leader: Some(known) }) = follower.append(append) else {
//!     panic!("it follows")
//! };
//! assert_eq!(known.node, "node-1");
//! # Ok(())
//! # }
//! ```

pub mod entry;
pub(crate) mod lead;
mod options;
pub mod rule;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;

pub use options::{Claims, SharedOptions};

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// A place in a shared log. Places grow along its order and need not be dense; `Place(0)` lies
/// before the first entry. An engine with places from zero adds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place(pub u64);

/// An entry with its place.
pub type PlacedEntry = (Place, Arc<[u8]>);

/// Names one [offer](SharedLog::offer) of a process; not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferId(pub u64);

/// Names one [question for the end](SharedLog::ask_end) of a process; not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// What an engine takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedLimits {
    /// Largest entry in bytes, at least 4 KiB. A larger batch travels in parts.
    pub entry_bytes: usize,
    /// Offers of one node that may be under way at a time, at least 1. More than one pays where a
    /// round trip costs more than the engine's own work. An engine that compares has 1: the second
    /// of two offers names a place behind which the first stands by then.
    pub window: usize,
    /// Shortest silence after which a leader may be taken for gone: several times what a round trip
    /// can take.
    pub lead_timeout_min: Duration,
}

/// What became of an offer. Only the arrival of the entry itself settles anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferOutcome {
    /// It stands there and will arrive.
    Placed(Place),
    /// It does not stand anywhere and never will.
    Refused,
    /// It may stand somewhere, or come to: the connection was lost, or time ran out.
    Unknown,
}

/// What [`SharedLog::next`] gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// The next entry in the order.
    Entry {
        /// Where it stands: behind every entry that arrived before.
        place: Place,
        /// Its bytes, exactly as somebody offered them.
        entry: Arc<[u8]>,
    },
    /// What became of an offer of this process. At most one for each.
    Offer {
        /// The offer.
        id: OfferId,
        /// What became of it.
        outcome: OfferOutcome,
    },
    /// An answer to a question for the end. At most one for each.
    End {
        /// The question.
        id: AskId,
        /// A place not before any entry that was acknowledged to anybody when the question was
        /// asked; `None` if that could not be found out, and asking again may help.
        end: Option<Place>,
    },
    /// Nothing at the moment.
    Nothing,
}

/// Who leads, where the engine itself elects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineLeader {
    /// This node.
    ThisNode,
    /// Another node, or nobody at the moment.
    NotThisNode,
}

/// Why a shared log gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedLogError {
    /// The engine cannot be reached or is not ready. The same question may be asked again, and the
    /// engine's implementation connects anew by itself.
    Unavailable {
        /// What was said.
        reason: String,
    },
    /// What was asked for cannot come any more: entries after the place asked for are gone, the
    /// engine holds something that is not this log, or its settings forbid to go on. A person has
    /// to look; nothing is offered any more.
    Unusable {
        /// What a person should look at.
        reason: String,
    },
}

impl fmt::Display for SharedLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedLogError::Unavailable { reason } => {
                write!(f, "the shared log is unavailable: {reason}")
            }
            SharedLogError::Unusable { reason } => {
                write!(f, "the shared log cannot be used: {reason}")
            }
        }
    }
}

impl std::error::Error for SharedLogError {}

/// Opaque entries in one order that several machines agree on.
///
/// What an implementation must hold: every reader gets the same entry at the same place; an entry
/// that was [placed](OfferOutcome::Placed), or that any reader has got, is never lost, moved or
/// changed. Everything else (delay, loss, repetition and reordering of offers) is expected of it.
///
/// One value serves one log of one process. It is asked by one thread at a time, and by many in the
/// course of time: whoever appends sends a batch off without a change of thread. What the engine
/// does at other times runs on threads of the implementation.
pub trait SharedLog: Send + 'static {
    /// What the engine takes. Does not change.
    fn limits(&self) -> SharedLimits;

    /// Begins to deliver entries, from the first after this place. Called once, before any other
    /// method but [`limits`](Self::limits), [`fetch`](Self::fetch) and
    /// [`first_kept`](Self::first_kept).
    fn follow(&mut self, after: Place);

    /// Begins to append an entry of at most [`SharedLimits::entry_bytes`]. `after` is the last
    /// place this node has seen: an engine that can compare refuses if something stands behind it,
    /// one that cannot appends all the same. Never blocks. What is offered may come to stand late,
    /// several times, or never.
    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>);

    /// Begins to find the end: a place not before any entry that was acknowledged to anybody up to
    /// now. Never blocks.
    fn ask_end(&mut self, id: AskId);

    /// The next arrival. Never blocks: if there is [`Nothing`](Arrival::Nothing), or the engine is
    /// unavailable, `waker` is woken once when it is worth while to ask again; it takes the place
    /// of the one given before.
    ///
    /// # Errors
    /// [`SharedLogError`]; after `Unavailable` it may be called again.
    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError>;

    /// Entries after a place, in order, apart from those being delivered: at least one unless there
    /// is none, then as many as fit into about `max_bytes`. To compare a past, and to mend a copy.
    /// May block for a round trip.
    ///
    /// # Errors
    /// [`SharedLogError`].
    fn fetch(&mut self, after: Place, max_bytes: usize)
    -> Result<Vec<PlacedEntry>, SharedLogError>;

    /// The place before the first entry that is still kept: `Place(0)` if none was ever dropped. A
    /// copy that ends before it cannot catch up.
    ///
    /// # Errors
    /// [`SharedLogError`].
    fn first_kept(&mut self) -> Result<Place, SharedLogError>;

    /// Who leads, if the engine itself elects; `None` if claims alone decide.
    fn engine_leader(&self) -> Option<EngineLeader> {
        None
    }
}
