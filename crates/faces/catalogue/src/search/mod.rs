//! Full-text search over names and descriptions, behind the feature `search` (decision 0031). The
//! index is in memory, fed by the view and rebuilt at each start; without the feature the route
//! explains what to do.
//!
//! ```text
//! the fold ─► ids of items ─► a thread: reads them from the view, deletes, adds, commits ─► the index
//! request ─► what it looks for ─► the view as fresh as asked, the index too ─► ids ─► items as they are now
//! ```

#[cfg(not(feature = "search"))]
mod absent;
#[cfg(feature = "search")]
mod answer;
#[cfg(feature = "search")]
mod changes;
#[cfg(feature = "search")]
mod compile;
#[cfg(feature = "search")]
mod highlight;
#[cfg(feature = "search")]
mod index;
#[cfg(feature = "search")]
mod near;
#[cfg(any(test, feature = "search", feature = "fuzzing"))]
mod query;
#[cfg(feature = "search")]
mod room;
#[cfg(all(test, feature = "search"))]
mod tests;
#[cfg(feature = "search")]
mod words;

#[cfg(not(feature = "search"))]
pub(crate) use absent::{SearchRoom, search};
#[cfg(feature = "search")]
pub(crate) use answer::search;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use query::reads;
#[cfg(feature = "search")]
pub(crate) use room::SearchRoom;

use wellspring_host::wire::param::{IntegerOr, Param, Text};

/// Most results that can be listed over all pages of a search.
const MOST_RESULTS: u64 = 1_000;
/// The search text.
pub(crate) static Q: Param<Text> = Param::text(
    "q",
    "Search text of at most 300 bytes: words, all of which must occur, the last one possibly \
     as a prefix; \"words in quotes\" must be adjacent.",
);
/// Number of results on a page.
pub(crate) static LIMIT: Param<IntegerOr> =
    Param::integer("limit", "Maximum number of items on a page.", 1..=100).or(20);
/// Start of a page.
pub(crate) static AFTER: Param<IntegerOr> = Param::integer(
    "after",
    "Start of the page: `next` of the previous page. A search returns at most 1,000 items.",
    0..=MOST_RESULTS,
)
.or(0);
