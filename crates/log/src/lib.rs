//! An event log with dynamic consistency boundaries, embeddable in any program:
//! append, append on a condition, read, subscribe.
//!
//! Synchronous: no runtime, no HTTP, no JSON. See `ARCHITECTURE.md` for the path
//! of a write and of a read, `docs/format.md` for the bytes.

mod error;
mod feed;
#[allow(dead_code, unused_imports)] // until the log is wired to it
mod index;
mod lease;
mod log;
mod options;
mod read;
pub mod record;

pub use error::{AppendError, Corruption, OpenError, ReadError};
pub use feed::Feed;
pub use lease::{Fence, Lease, LeaseError, Leases};
pub use log::{Ack, Append, Appended, Completion, Log, LogStats};
pub use options::{Clock, Options, Sync, SystemClock};
pub use read::{Events, Order, ReadOptions, Snapshot, Subscription, TermCount};
pub use record::{EncodedEvents, RecordView, RequestKey};
