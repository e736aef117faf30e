//! The two copy-on-write structures that store everything: a clone is a version.

mod paged;
mod row_page;
mod tree;

pub(crate) use paged::Paged;
pub(crate) use row_page::RowPage;
pub(crate) use tree::{Tree, TreeBuilder};

/// Overhead of the allocator and two reference counts for each page.
const SHARED_BYTES: usize = 24;

/// Number of rows or counters in a page.
pub(crate) const PAGE_ROWS: usize = 64;
