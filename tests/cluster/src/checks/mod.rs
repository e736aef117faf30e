//! The checks at the end.

mod appends;
mod bulks;
mod copies;
mod ingest;
mod log;
mod orders;
mod reads;
#[cfg(test)]
mod tests;

pub(crate) use self::log::{Event, events, fetch};
pub(crate) use copies::{accounts, copies, panics, sql};

use crate::clients::Item;
use crate::history::Operation;
use crate::node::LifeEnd;

/// A violated check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The check.
    pub(crate) check: &'static str,
    pub(crate) told: String,
}

/// The findings of one check.
#[derive(Debug)]
pub(crate) struct Findings {
    check: &'static str,
    list: Vec<Finding>,
}

impl Findings {
    fn of(check: &'static str) -> Findings {
        Findings { check, list: Vec::new() }
    }

    fn add(&mut self, told: String) {
        self.list.push(Finding { check: self.check, told });
    }
}

/// Compares the answers to clients with the log. `end_of` returns how a process of a node ended.
pub(crate) fn history(
    operations: &[Operation],
    events: &[Event],
    end_of: &dyn Fn(&str, u64) -> LifeEnd,
) -> Vec<Finding> {
    let mut found = appends::check(operations, events).list;
    found.extend(bulks::check(operations, events).list);
    found.extend(ingest::check(operations, events, end_of).list);
    found.extend(reads::check(operations, events).list);
    found
}

/// Compares the sales in a node's catalogue with the answers to clients. `sold`: stock and sales of
/// an item.
pub(crate) fn stock(
    operations: &[Operation],
    items: &[Item],
    sold: &dyn Fn(u64) -> Option<(u64, u64)>,
) -> Vec<Finding> {
    orders::check(operations, items, sold).list
}
