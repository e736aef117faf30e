//! The two structures everything is kept in, both copied as they are written: a clone is a version.

mod paged;
mod row_page;
mod tree;

pub(crate) use paged::Paged;
pub(crate) use row_page::RowPage;
pub(crate) use tree::{Tree, TreeBuilder};

/// What the allocator and two reference counts take of each page.
const SHARED_BYTES: usize = 24;

/// Rows or counters of a page.
pub(crate) const PAGE_ROWS: usize = 64;
