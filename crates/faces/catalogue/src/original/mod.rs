//! The bookstore's interface, byte for byte (WIRE §4): lookup by item, all items, search by topic,
//! order, update.

mod change;
mod look;
mod render;

pub(crate) use change::{ORDERED, add_stock, deduct_stock, order, price};
pub(crate) use look::{lookup, lookup_all, search_topics};
pub(crate) use render::{NoAnswer, Renderer, all, item, search};
