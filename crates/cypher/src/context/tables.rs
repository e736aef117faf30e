//! What a statement has found out and uses again: tables of nodes by value, sets of the items of
//! lists, and values of expressions that read no row.

use crate::context::Budget;
use crate::error::Result;
use crate::value::{Distinct, DistinctMap, DistinctSet, List, Value, equals, meets_by_hash};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use wellspring_graph::NodeId;

/// Tables of a statement. Plans and expressions are known by their addresses, which stay unique
/// while the statement runs.
#[derive(Default)]
pub struct FoundTables {
    /// Of each scan with a join, the state and the number of writes that it is of.
    joins: HashMap<usize, (u64, JoinState)>,
    /// The lists that were searched last.
    lists: Vec<KnownList>,
    /// Values of expressions that are the same for all rows, `None` for other expressions.
    constants: HashMap<usize, Option<Value>>,
    /// The bytes charged for lists and constants.
    bytes: u64,
}

/// What is known of a join.
#[derive(Clone)]
pub(crate) enum JoinState {
    /// One row has been joined, by a scan.
    Once,
    /// A table cannot be made.
    Unfit,
    /// A table of the nodes.
    Table(Arc<JoinTable>),
}

/// Nodes by the values that a join compares.
#[derive(Default)]
pub(crate) struct JoinTable {
    /// The nodes, in order of their ids.
    pub(crate) places: DistinctMap<Box<[Value]>, Vec<NodeId>>,
    /// Nodes with values that may equal others without being alike, in order of their ids.
    pub(crate) others: Vec<NodeId>,
    /// The bytes charged for it.
    pub(crate) bytes: u64,
}

/// A list that was searched, and the set of its items from the second time on.
struct KnownList {
    /// Keeps the address, not the items.
    list: Weak<List>,
    set: Option<Arc<ItemSet>>,
}

/// The items of a list.
struct ItemSet {
    alike: DistinctSet<[Value; 1]>,
    /// Items that may equal others without being alike.
    others: Vec<Value>,
    has_null: bool,
}

/// Length of a list from which a set is made of its items.
pub(crate) const LONG_LIST: usize = 16;
/// Number of lists that are remembered.
const KEPT_LISTS: usize = 8;
/// Overhead of a value in a set.
const ITEM_BYTES: u64 = 56;

impl FoundTables {
    /// The state of a join, if nothing was written since.
    pub(crate) fn join(&self, address: usize, writes: u64) -> Option<JoinState> {
        let (of, state) = self.joins.get(&address)?;
        (*of == writes).then(|| state.clone())
    }

    /// Changes the state of a join.
    pub(crate) fn set_join(
        &mut self,
        address: usize,
        writes: u64,
        state: JoinState,
        budget: &mut Budget,
    ) {
        let before = self.joins.insert(address, (writes, state));
        if let Some((_, JoinState::Table(table))) = before {
            budget.return_bytes(table.bytes);
        }
    }

    /// The value of an expression that reads no row, if it is known; `Err` if it is not known yet
    /// whether the expression does.
    pub(crate) fn constant(&self, address: usize) -> Result<Option<Value>, ()> {
        self.constants.get(&address).cloned().ok_or(())
    }

    /// Keeps the value of an expression, or that it reads the row.
    pub(crate) fn keep_constant(
        &mut self,
        address: usize,
        value: Option<Value>,
        budget: &mut Budget,
    ) -> Result<()> {
        let bytes = value.as_ref().map_or(0, Value::bytes) + ITEM_BYTES;
        budget.charge_bytes(bytes)?;
        self.bytes += bytes;
        self.constants.insert(address, value);
        Ok(())
    }

    /// Whether an item of a long list equals the value, if that is known without looking at each:
    /// from the second search of the list on.
    pub(crate) fn contains(
        &mut self,
        list: &Arc<List>,
        element: &Value,
        budget: &mut Budget,
    ) -> Result<Option<Option<bool>>> {
        let Some(set) = self.set_of(list, budget)? else { return Ok(None) };
        if element.is_null() || !meets_by_hash(element) {
            return Ok(None);
        }
        budget.charge_steps(1 + element.steps() + set.others.len() as u64)?;
        if set.alike.contains(&Distinct::of([element.clone()])) {
            return Ok(Some(Some(true)));
        }
        let mut found = if set.has_null { None } else { Some(false) };
        for item in &set.others {
            match equals(element, item) {
                Some(true) => return Ok(Some(Some(true))),
                Some(false) => {}
                None => found = None,
            }
        }
        Ok(Some(found))
    }

    fn set_of(&mut self, list: &Arc<List>, budget: &mut Budget) -> Result<Option<Arc<ItemSet>>> {
        let is_it = |known: &KnownList| std::ptr::eq(known.list.as_ptr(), Arc::as_ptr(list));
        match self.lists.iter_mut().find(|known| is_it(known)) {
            Some(KnownList { set: Some(set), .. }) => Ok(Some(Arc::clone(set))),
            Some(known) => {
                budget
                    .charge_steps(list.len() as u64 + list.iter().map(Value::steps).sum::<u64>())?;
                let bytes = list.len() as u64 * ITEM_BYTES;
                // The list itself serves where there is no room for a set.
                if bytes > budget.bytes_left() / 2 {
                    return Ok(None);
                }
                budget.charge_bytes(bytes)?;
                self.bytes += bytes;
                let set = Arc::new(ItemSet::of(list));
                known.set = Some(Arc::clone(&set));
                Ok(Some(set))
            }
            None => {
                if self.lists.len() == KEPT_LISTS {
                    let oldest = self.lists.remove(0);
                    let items = oldest.set.map_or(0, |set| set.len() as u64 * ITEM_BYTES);
                    self.bytes = self.bytes.saturating_sub(items);
                    budget.return_bytes(items);
                }
                self.lists.push(KnownList { list: Arc::downgrade(list), set: None });
                Ok(None)
            }
        }
    }

    /// Returns the bytes of everything to the budget.
    pub(crate) fn close(&mut self, budget: &mut Budget) {
        for (_, (_, state)) in self.joins.drain() {
            if let JoinState::Table(table) = state {
                budget.return_bytes(table.bytes);
            }
        }
        self.lists.clear();
        self.constants.clear();
        budget.return_bytes(std::mem::take(&mut self.bytes));
    }
}

impl ItemSet {
    fn of(list: &[Value]) -> Self {
        let mut set = Self { alike: DistinctSet::default(), others: Vec::new(), has_null: false };
        for item in list {
            if item.is_null() {
                set.has_null = true;
            } else if meets_by_hash(item) {
                set.alike.insert(Distinct::of([item.clone()]));
            } else {
                set.others.push(item.clone());
            }
        }
        set
    }

    /// Number of items, at most.
    fn len(&self) -> usize {
        self.alike.len() + self.others.len()
    }
}
