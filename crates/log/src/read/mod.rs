//! Reading: snapshots, cursors, counts, terms. A reader works on its own thread with a watermark
//! and segments that do not change below it, and takes no lock that an append waits for.

mod count;
mod cursor;
mod snapshot;
mod stretch;
mod terms;

pub use count::{CountStep, EventCount, GroupCountStep, GroupedCount};
pub use snapshot::{Events, Order, ReadOptions, Snapshot};
pub(crate) use stretch::{Stretch, find_id, find_key};
pub use terms::TermCount;
