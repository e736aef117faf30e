//! Logs shared by several machines: opaque entries in one agreed order, and the rule that makes an
//! event log of them.
//!
//! An engine (a database, a broker, a consensus group) implements [`SharedLog`]. It must provide
//! only two guarantees: **one order** for all readers, and **no loss of acknowledged entries**. It
//! may delay, drop, repeat and reorder offers. The layer above decides who leads, which batches
//! count and when an append may be answered, by one [`rule`] that every reader applies; the
//! engine's own fencing is not trusted.
//!
//! ```text
//! leader:    staged ─► entry, offered ────────┐                   ┌─► rule: it counts ─► segment ─► head ─► answer
//!                                             ▼                   │
//!                        shared log: one order of opaque entries ─┤
//!                                                                 │
//! follower:                                                       └─► rule: it counts ─► index ─► segment ─► head
//! ```
//!
//! A claim counts if its epoch is greater than the one in force. A batch counts if its epoch is in
//! force, it begins at the next position, and it names the batch before it by its chain. Everything
//! else is void, for every node. So a replaced leader can do no harm: its offers that have not
//! arrived when a newer claim does never will, and their clients get a definite answer.
//!
//! The design follows the Loglet of Delos (Balakrishnan et al., OSDI 2020,
//! <https://www.usenix.org/conference/osdi20/presentation/balakrishnan>).
//!
//! - [`entry`]: the encoding of an entry: a founding, a claim, a beat (heartbeat), a batch or a
//!   probe.
//! - [`rule`]: which claims and batches take effect. Pure.
//! - `lead`: when a node claims the lead, sends heartbeats, and steps down. Pure; time is passed
//!   in.
//! - `simulated`: a shared log in memory that delays, loses, repeats and reorders offers on
//!   demand.
//!
//! Two nodes over an engine in memory, in place of a real one:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use wellspring_log::shared::simulated::SimulatedLog;
//! use wellspring_log::storage::simulated::SimulatedStorage;
//! use wellspring_log::{Append, AppendError, EncodedEvents, Log, Options, Role, SharedOptions};
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
//! let wait_for_change = |log: &Log| {
//!     log.role_changes().wait_past(log.role_changes().head(), Duration::from_millis(10));
//! };
//!
//! // A node claims the lead after silence for the lead timeout, or on request.
//! leader.claim_lead();
//! while !leader.role().leads() {
//!     wait_for_change(&leader);
//! }
//! let mut events = EncodedEvents::new();
//! events.push(&Event::json("Greeted", &["name:ada"], "{}").as_ref())?;
//! let append = Append { events, ..Append::default() };
//! let first = leader.append(append.clone())?.first;
//!
//! // The other node receives the event, and then knows the leader.
//! assert_eq!(follower.feed().wait_past(first - 1, Duration::from_secs(10)), first);
//! while !matches!(follower.role(), Role::Following { leader: Some(_) }) {
//!     wait_for_change(&follower);
//! }
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
pub use wellspring_format::Place;

/// An entry with its place.
pub type PlacedEntry = (Place, Arc<[u8]>);

/// Where the entries begin that an engine still has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStart {
    /// Those after this place are there.
    pub place: Place,
    /// What a reader has to know of those before, to begin here: what some node's log has told the
    /// engine with [`durable`](SharedLog::durable). `None`: they are lost, and a copy that ends
    /// before this place cannot catch up.
    pub state: Option<Arc<[u8]>>,
}

/// What an engine has of the entries after a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The entries, in their order and without gaps.
    Entries(Vec<PlacedEntry>),
    /// The entries were dropped. These are the batches among them and behind them that took effect,
    /// each as one entry, whatever its size, made from another node's copy. Claims, void entries
    /// and everything else are left out.
    Accepted(Vec<PlacedEntry>),
}

/// Identifies an [offer](SharedLog::offer) of a process; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferId(pub u64);

/// Identifies a [question for the end](SharedLog::ask_end) of a process; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// The limits of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedLimits {
    /// Maximum size of an entry in bytes, at least 4 KiB. A larger batch is sent in parts.
    pub entry_bytes: usize,
    /// Maximum number of unsettled offers of a node, at least 1. More than one pays off if a round
    /// trip costs more than the engine's own work.
    pub window: usize,
    /// Minimum silence after which a leader may be considered gone: several times the longest round
    /// trip.
    pub lead_timeout_min: Duration,
    /// Whether the engine drops entries that copies hold.
    pub retention: Retention,
}

/// Which entries an engine keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// All of them.
    Everything,
    /// Those that copies may lack: the log makes its copy durable whenever it has written so many
    /// bytes, and from time to time, and [says so](SharedLog::durable).
    UntilCopied {
        /// Most bytes of a copy without a barrier.
        unsynced_bytes: u64,
        /// Time after which the log says what it has written, however little.
        within: Duration,
    },
}

/// The outcome of an offer. Only the arrival of the entry itself settles anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferOutcome {
    /// It is at this place and will arrive.
    Placed(Place),
    /// It is not in the log and never will be.
    Refused,
    /// It may be or become part of the log: the connection was lost, or time ran out.
    Unknown,
}

/// The result of [`SharedLog::next`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// The next entry in the order.
    Entry {
        /// Its place, after every entry that arrived before.
        place: Place,
        /// Its bytes, exactly as offered.
        entry: Arc<[u8]>,
    },
    /// The outcome of an offer of this process. At most one for each.
    Offer {
        /// The offer.
        id: OfferId,
        /// The outcome.
        outcome: OfferOutcome,
    },
    /// The answer to a question for the end. At most one for each.
    End {
        /// The question.
        id: AskId,
        /// A place at or after every entry acknowledged to any client when the question was asked;
        /// `None` if it could not be determined, and asking again may help.
        end: Option<Place>,
    },
    /// The entries up to this start were dropped before they arrived here: the next entry that
    /// arrives is the first after it, and what took effect before has to be
    /// [fetched](SharedLog::fetch).
    Gap(LogStart),
    /// Nothing at present.
    Nothing,
}

/// The leader, if the engine elects one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineLeader {
    /// This node.
    ThisNode,
    /// Another node, or none at present.
    NotThisNode,
}

/// Why a shared log returned nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedLogError {
    /// The engine is unreachable or not ready. The call can be repeated; the implementation
    /// reconnects on its own.
    Unavailable {
        /// The engine's error.
        reason: String,
    },
    /// The requested data can no longer be provided: entries after the requested place are gone,
    /// the engine holds something other than this log, or its settings make continuing unsafe. An
    /// operator must act; nothing is offered any more.
    Unusable {
        /// The problem for the operator.
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

/// Opaque entries in one order agreed by several machines.
///
/// An implementation must guarantee that every reader gets the same entry at the same place, and
/// that an entry that was [placed](OfferOutcome::Placed) or delivered to any reader is never lost,
/// moved or changed. Offers may be delayed, lost, repeated and reordered.
///
/// One value serves one log of one process. It is used by one thread at a time, but by different
/// threads over time, because an appending thread sends its batch itself. Background work runs on
/// threads of the implementation.
pub trait SharedLog: Send + 'static {
    /// The engine's limits, which do not change.
    fn limits(&self) -> SharedLimits;

    /// Starts delivering entries, from the first after this place. Called once, before any other
    /// method except [`limits`](Self::limits), [`fetch`](Self::fetch) and
    /// [`gap_after`](Self::gap_after).
    fn follow(&mut self, after: Place);

    /// Starts appending an entry of at most [`SharedLimits::entry_bytes`]. `after` is the last
    /// place that this node has seen, or that its unsettled offers before this one would take: an
    /// engine that can compare refuses the offer if another entry follows that place; others append
    /// anyway. Never blocks. An offer may land late, repeatedly, or never.
    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>);

    /// Starts determining the end: a place at or after every entry acknowledged to any client so
    /// far. Never blocks.
    fn ask_end(&mut self, id: AskId);

    /// The next arrival. Never blocks: if there is [`Nothing`](Arrival::Nothing), or the engine is
    /// unavailable, `waker` is woken once when calling again is worthwhile; it replaces the
    /// previous waker.
    ///
    /// # Errors
    /// [`SharedLogError`]; after `Unavailable` it may be called again.
    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError>;

    /// Entries after a place, in order, independent of those being delivered: at least one unless
    /// there is none, then as many as fit into about `max_bytes`. Used to compare histories and to
    /// repair or complete a copy. May block for a round trip.
    ///
    /// # Errors
    /// [`SharedLogError`].
    fn fetch(&mut self, after: Place, max_bytes: usize) -> Result<Fetched, SharedLogError>;

    /// Where the entries that are still there begin, if not all of those after this place are.
    ///
    /// # Errors
    /// [`SharedLogError`].
    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError>;

    /// This node's copy holds everything up to this place behind a barrier, and a reader that knows
    /// this state can begin after it. For engines that do not [keep
    /// everything](Retention::Everything).
    fn durable(&mut self, _upto: Place, _state: Arc<[u8]>) {}

    /// How many times the engine went on although it may have lost entries that were acknowledged,
    /// from 1; a number that grows. Each generation of a log has a history of its own.
    fn generation(&self) -> u64 {
        1
    }

    /// Whether wakers of [`next`](Self::next) may work for the log on the waking thread: take what
    /// has arrived, write it and answer requests. That thread must hold no lock of the engine then.
    fn lends_threads(&self) -> bool {
        false
    }

    /// The leader, if the engine elects; `None` if claims alone decide.
    fn engine_leader(&self) -> Option<EngineLeader> {
        None
    }
}
