//! What must hold at the end, each check by itself.

mod appends;
mod copies;
mod ingest;
mod log;
mod orders;
mod reads;
#[cfg(test)]
mod tests;

pub(crate) use self::log::{Event, fetch};
pub(crate) use copies::{accounts, copies, panics, sql};

use crate::clients::Item;
use crate::history::Operation;
use crate::node::LifeEnd;

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The check that objects.
    pub(crate) check: &'static str,
    pub(crate) told: String,
}

/// What is found, with a word for the check.
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

/// What clients were told, held against the log. `end_of` says what became of a life of a node.
pub(crate) fn history(
    operations: &[Operation],
    events: &[Event],
    end_of: &dyn Fn(&str, u64) -> LifeEnd,
) -> Vec<Finding> {
    let mut found = appends::check(operations, events).list;
    found.extend(ingest::check(operations, events, end_of).list);
    found.extend(reads::check(operations, events).list);
    found
}

/// What was sold, as a node's catalogue says, held against what clients were told. `sold`: of an
/// item, what is in stock and what was sold.
pub(crate) fn stock(
    operations: &[Operation],
    items: &[Item],
    sold: &dyn Fn(u64) -> Option<(u64, u64)>,
) -> Vec<Finding> {
    orders::check(operations, items, sold).list
}
