//! How rows pass from operator to operator.

use super::{
    aggregate, call, change, create, expand, keep, load_csv, merge, path, scan, shortest, sort,
    unwind, variable,
};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::{evaluate, holds};
use crate::ir::{Expression, ProjectionItem, Slot};
use crate::plan::{Operator, Pipeline};
use crate::value::Value;

/// Whether more rows are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// More rows are needed.
    Continue,
    /// No more rows are needed.
    Stop,
}

/// A consumer of rows.
pub(super) type Sink<'s> = dyn FnMut(&mut [Value], &mut Context<'_>) -> Result<Flow> + 's;

/// Stack that must be left for an operator and its expressions.
const RED_ZONE: usize = 256 << 10;

/// Size of the stack segment added otherwise.
const MORE_STACK: usize = 4 << 20;

/// The value in a slot.
pub(super) fn get(row: &[Value], slot: Slot) -> &Value {
    row.get(slot.0 as usize).unwrap_or(&Value::Null)
}

/// Puts a value into a slot.
pub(super) fn set(row: &mut [Value], slot: Slot, value: Value) {
    if let Some(place) = row.get_mut(slot.0 as usize) {
        *place = value;
    }
}

/// The operators after the current one.
pub(super) struct Next<'n> {
    operators: &'n [Operator],
    states: &'n mut [keep::State],
    sink: &'n mut Sink<'n>,
}

impl Next<'_> {
    /// Passes the row on.
    pub(super) fn push(&mut self, row: &mut [Value], context: &mut Context<'_>) -> Result<Flow> {
        let Some((operator, rest)) = self.operators.split_first() else {
            return (self.sink)(row, context);
        };
        let mut next = Next { operators: rest, states: &mut *self.states, sink: &mut *self.sink };
        // Long pipelines recurse deeply; checking at every fourth operator suffices.
        if rest.len() % 4 == 3 {
            stacker::maybe_grow(RED_ZONE, MORE_STACK, || step(operator, row, context, &mut next))
        } else {
            step(operator, row, context, &mut next)
        }
    }

    /// The state of an operator.
    pub(super) fn state(&mut self, number: usize) -> Option<&mut keep::State> {
        self.states.get_mut(number)
    }
}

/// Runs a pipeline for a row. The resulting rows go to the sink; returns whether it needs more.
pub(super) fn run(
    pipeline: &Pipeline,
    row: &mut [Value],
    context: &mut Context<'_>,
    sink: &mut Sink<'_>,
) -> Result<Flow> {
    if pipeline.states == 0 {
        let mut enough = Flow::Continue;
        let mut sink = |row: &mut [Value], context: &mut Context<'_>| {
            enough = sink(row, context)?;
            Ok(enough)
        };
        let mut next = Next { operators: &pipeline.operators, states: &mut [], sink: &mut sink };
        next.push(row, context)?;
        return Ok(enough);
    }
    let mut states = keep::states(pipeline, row, context)?;
    // A LIMIT inside stops the operators before it, not the consumer of rows.
    let mut enough = Flow::Continue;
    let mut sink = |row: &mut [Value], context: &mut Context<'_>| {
        enough = sink(row, context)?;
        Ok(enough)
    };
    Next { operators: &pipeline.operators, states: &mut states, sink: &mut sink }
        .push(row, context)?;
    for (at, operator) in pipeline.operators.iter().enumerate() {
        let Some(state) = operator.keeps().and_then(|number| states.get_mut(number)) else {
            continue;
        };
        let kept = std::mem::take(state);
        let rest = pipeline.operators.get(at + 1..).unwrap_or_default();
        let mut next = Next { operators: rest, states: &mut states, sink: &mut sink };
        release(operator, kept, row, context, &mut next)?;
    }
    Ok(enough)
}

/// Releases the rows that an operator has kept.
fn release(
    operator: &Operator,
    kept: keep::State,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<()> {
    match (operator, kept) {
        (Operator::Eager { keep, .. }, keep::State::Rows { rows, own }) => {
            keep::release_rows(keep, rows, row, context, next)?;
            clear(own, row);
            Ok(())
        }
        (Operator::Distinct { .. }, keep::State::Seen(seen)) => {
            seen.forget(context);
            Ok(())
        }
        (Operator::Sort(sort), keep::State::Sorted(kept)) => {
            sort::release(sort, kept, row, context, next)
        }
        (Operator::Aggregate(aggregation), keep::State::Groups(groups)) => {
            aggregate::release(aggregation, groups, row, context, next)
        }
        _ => Ok(()),
    }
}

/// Number of values that an operator takes from each row, apart from the step of the row itself.
fn columns(operator: &Operator) -> usize {
    match operator {
        Operator::Compute(items) => items.len(),
        Operator::Aggregate(aggregation) => aggregation.keys.len() + aggregation.aggregates.len(),
        Operator::Distinct { columns, .. } => columns.len(),
        Operator::Sort(sort) => sort.keys.len() + sort.keep.len(),
        Operator::Eager { keep, .. } => keep.len(),
        _ => 0,
    }
}

fn step(
    operator: &Operator,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let columns = columns(operator);
    if columns >= 8 {
        context.budget.charge_steps(columns as u64 / 8)?;
    }
    match operator {
        Operator::Scan(scan) => scan::scan(scan, row, context, next),
        Operator::ScanRelationships(scan) => scan::scan_relationships(scan, row, context, next),
        Operator::Expand(expand) => expand::expand(expand, row, context, next),
        Operator::ExpandVariable(expand) => variable::expand(expand, row, context, next),
        Operator::Shortest(shortest) => shortest::expand(shortest, row, context, next),
        Operator::Path(assembly) => {
            let path = path::assemble(assembly, row, context)?;
            set(row, assembly.slot, path);
            next.push(row, context)
        }
        Operator::Filter(predicate) => {
            context.budget.charge_steps(1)?;
            if holds(predicate, row, context)? {
                next.push(row, context)
            } else {
                Ok(Flow::Continue)
            }
        }
        Operator::LoadCsv(load) => load_csv::load(load, row, context, next),
        Operator::Unwind { list, variable } => unwind::unwind(list, *variable, row, context, next),
        Operator::Optional { inner, introduced } => optional(inner, introduced, row, context, next),
        Operator::Compute(items) => compute(items, row, context, next),
        Operator::StoredCount { slot, counted } => {
            let count = scan::stored_count(counted, context);
            set(row, *slot, count);
            next.push(row, context)
        }
        Operator::Aggregate(aggregation) => aggregate::add(aggregation, row, context, next),
        Operator::Distinct { columns, state } => {
            keep::distinct(columns, *state, row, context, next)
        }
        Operator::Sort(sort) => sort::add(sort, row, context, next),
        Operator::Skip { state, .. } => keep::skip(*state, row, context, next),
        Operator::Limit { state, .. } => keep::limit(*state, row, context, next),
        Operator::Eager { keep, state } => keep::keep_row(keep, *state, row, context, next),
        Operator::Merge(operator) => merge::merge(operator, row, context, next),
        Operator::Call { query, introduced } => call::call(query, introduced, row, context, next),
        Operator::Procedure(call) => call::procedure(call, row, context, next),
        Operator::Create(_)
        | Operator::Set(_)
        | Operator::Remove(_)
        | Operator::Delete(_)
        | Operator::Foreach { .. } => {
            update(operator, row, context)?;
            next.push(row, context)
        }
    }
}

/// Changes the graph and passes the row on.
fn update(operator: &Operator, row: &mut [Value], context: &mut Context<'_>) -> Result<()> {
    match operator {
        Operator::Create(creation) => create::create(creation, row, context),
        Operator::Set(items) => change::set_all(items, row, context),
        Operator::Remove(items) => change::remove_all(items, row, context),
        Operator::Delete(delete) => change::delete(delete, row, context),
        Operator::Foreach { variable, list, updates } => {
            unwind::for_each(list, *variable, updates, row, context)
        }
        _ => Ok(()),
    }
}

/// Adds values to the row, charged as long as the row uses them.
fn compute(
    items: &[ProjectionItem],
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let mut held = 0;
    for item in items {
        let value = evaluate(&item.expression, row, context)?;
        let bytes = value.share_of_outer_bytes();
        context.budget.charge_bytes(bytes)?;
        held += bytes;
        set(row, item.slot, value);
    }
    let flow = next.push(row, context)?;
    if held > 0 {
        context.budget.return_bytes(held);
        // A value that a variable still holds may be read by the consumer of rows.
        let is_new = |item: &&ProjectionItem| item.expression != Expression::Variable(item.slot);
        clear(items.iter().filter(is_new).map(|item| item.slot), row);
    }
    Ok(flow)
}

/// Clears values that are no longer read.
pub(super) fn clear(slots: impl IntoIterator<Item = Slot>, row: &mut [Value]) {
    for slot in slots {
        set(row, slot, Value::Null);
    }
}

fn optional(
    inner: &Pipeline,
    introduced: &[Slot],
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let mut matched = false;
    let flow = run(inner, row, context, &mut |row, context| {
        matched = true;
        next.push(row, context)
    })?;
    if matched {
        return Ok(flow);
    }
    for slot in introduced {
        set(row, *slot, Value::Null);
    }
    next.push(row, context)
}
