//! Reading: snapshots, cursors, counts, terms, times. A reader works on its own thread with a
//! watermark and segments that do not change below it, and takes no lock that an append waits for.
//!
//! The segments lie in runs, each under one index. A cursor walks the files of a run, for a read of
//! everything, or picks the records whose offsets the index names, and fetches neighbours with one
//! system call. Every record's checksum, position and match are checked before it is returned; a
//! record that fails is remembered with its segment, whichever read met it.

mod count;
mod cursor;
mod position_range;
mod snapshot;
mod terms;
mod time_search;

pub use count::{CountStep, EventCount, GroupCountStep, GroupedCount};
pub(crate) use position_range::{PositionRange, find_id, find_key};
pub use snapshot::{Events, Order, ReadOptions, Snapshot};
pub use terms::TermCount;
pub use time_search::TimeSearch;
