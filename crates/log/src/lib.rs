//! An event log with dynamic consistency boundaries, embeddable in any program: append, conditional
//! append, read, subscribe.
//!
//! Synchronous: no runtime, no HTTP, no JSON. See `ARCHITECTURE.md` for the path of a write and of
//! a read, `docs/format.md` for the bytes.
//!
//! ```
//! use wellspring_log::{Append, EncodedEvents, Log, Options, ReadOptions};
//! use wellspring_types::{AppendCondition, Event, Query};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let log = Log::open(dir.path(), Options::default())?;
//!
//! // A username can be claimed once.
//! let claim = |name: &str| {
//!     let tag = format!("username:{name}");
//!     let mut events = EncodedEvents::new();
//!     events.push(&Event::json("UsernameClaimed", &[&tag], "{}").as_ref())?;
//!     let condition = Some(AppendCondition::not_exists(Query::item(&[], &[&tag])));
//!     Ok::<_, Box<dyn std::error::Error>>(log.append(Append { events, condition, ..Append::default() })?)
//! };
//! assert_eq!(claim("ada")?.first, 1);
//! assert!(claim("ada").is_err());
//!
//! // Read it back, then wait for new events.
//! let mut events = log.snapshot().read(&Query::item(&["UsernameClaimed"], &[]), ReadOptions::default());
//! while let Some(event) = events.next()? {
//!     println!("{} {}", event.position(), event.event_type());
//! }
//! let mut subscription = log.subscribe(Query::all(), 0);
//! assert!(subscription.next(std::time::Duration::ZERO)?.is_some());
//! # Ok(())
//! # }
//! ```

mod accepted;
mod amount;
mod append;
pub mod batcher;
mod error;
mod extent;
mod feed;
mod fence;
mod floor;
mod handed_over;
mod head_gate;
mod histogram;
mod index;
pub mod inspect;
mod journal;
mod lease;
mod log;
mod open;
mod options;
#[cfg(wellspring_plants)]
pub mod plants;
#[cfg(not(wellspring_plants))]
mod plants;
mod query;
mod read;
pub mod recover;
mod role;
mod scrub;
mod segments;
mod sequencer;
pub mod shared;
pub mod storage;
mod subscription;
mod threads;
mod trim;
mod waiters;
mod work;

pub use append::{Ack, Append, Appended, Basis, Completion, Staged, StoredRequest, Unjudged};
pub use error::{AppendError, Corruption, LostEnd, NotConfirmed, OpenError, ReadError, TrimError};
pub use extent::{Extent, ExtentMark, SegmentExtent, SegmentSlice};
pub use feed::{Feed, Past};
pub use fence::{Fence, FenceRefusal};
pub use floor::{FLOOR_FILE, Floor};
pub use handed_over::{HANDED_OVER_BYTES, HANDED_OVER_EVENTS, HandedOverFault};
pub use head_gate::{HeadGate, HeldHeads};
pub use histogram::{HISTOGRAM_BOUNDS, Histogram};
pub use index::{Terms, sealed_index_memory_bytes, set_sealed_index_budget_bytes};
pub use lease::{Lease, LeaseEnd, LeaseError, LeaseHolder, LeaseLine, LeaseProof, Leases};
pub use log::{AcceptedStats, CommitOn, Log, LogStats, SharedStats};
pub use options::{Clock, Driver, Options, Sync, SystemClock};
pub use query::CompiledQuery;
pub use read::{
    CountStep, EventCount, Events, GroupCountStep, GroupedCount, Order, ReadOptions, Snapshot,
    TermCount, TimeSearch,
};
pub use role::{Leader, Role};
pub use scrub::{ScrubEnd, ScrubReport};
pub use sequencer::{Turn, TurnProgress};
pub use shared::{Claims, SharedOptions};
pub use subscription::Subscription;
pub use waiters::TooManyWaiters;
pub use wellspring_format::{EncodedEvents, RecordView, RequestKey, SERVER_KEYS, Savepoint};
pub use work::{GiveWay, Stopped, Work};
