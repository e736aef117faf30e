//! The two structures everything is kept in, both copied as they are written: a clone is a version.

mod paged;
mod row_page;
mod tree;

pub(crate) use paged::Paged;
pub(crate) use row_page::RowPage;
pub(crate) use tree::{Tree, TreeBuilder};

/// Rows or counters of a page.
pub(crate) const PAGE_ROWS: usize = 64;
