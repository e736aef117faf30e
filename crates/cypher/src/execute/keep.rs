//! What operators keep from row to row, and those that do little else.

use std::collections::HashSet;

use super::aggregate::Groups;
use super::pipeline::{Flow, Next, get, set};
use super::sort::{Sorted, top_of};
use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::evaluate::evaluate;
use crate::ir::{Expression, Slot};
use crate::plan::{Operator, Pipeline};
use crate::value::{Distinct, Value};

/// What an operator keeps.
#[derive(Default)]
pub(super) enum State {
    /// Nothing (any more).
    #[default]
    Nothing,
    /// Rows that wait for the others.
    Rows(Vec<KeptRow>),
    /// Rows that were seen.
    Seen(HashSet<Box<[Distinct]>>),
    /// Rows still to be skipped or to come.
    Remaining(u64),
    /// Rows to be sorted.
    Sorted(Sorted),
    /// Groups.
    Groups(Groups),
}

/// Values that are kept, and the bytes that they were charged with.
pub(super) struct KeptRow {
    values: Box<[Value]>,
    bytes: u64,
}

/// The states that the operators of a pipeline begin with.
pub(super) fn states(
    pipeline: &Pipeline,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Vec<State>> {
    let mut states = Vec::with_capacity(pipeline.states);
    // The numbers were given in the order of the operators.
    for operator in &pipeline.operators {
        states.push(match operator {
            Operator::Eager { .. } => State::Rows(Vec::new()),
            Operator::Distinct { .. } => State::Seen(HashSet::new()),
            Operator::Skip { count, .. } => State::Remaining(amount("SKIP", count, row, context)?),
            Operator::Limit { count, .. } => {
                State::Remaining(amount("LIMIT", count, row, context)?)
            }
            Operator::Sort(sort) => State::Sorted(Sorted::new(top_of(sort, row, context)?)),
            Operator::Aggregate(_) => State::Groups(Groups::default()),
            _ => continue,
        });
    }
    Ok(states)
}

/// The number of rows that `SKIP` or `LIMIT` says.
pub(super) fn amount(
    clause: &str,
    count: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<u64> {
    let refused = |detail, value: &str| {
        let message = format!(
            "Invalid input. {value} is not a valid value for {clause}: it must be an integer from 0 on."
        );
        Err(Error::runtime(ErrorKind::SyntaxError, detail, message))
    };
    match evaluate(count, row, context)? {
        Value::Integer(count) => match u64::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => refused(Detail::NegativeIntegerArgument, &count.to_string()),
        },
        other => refused(Detail::InvalidArgumentType, other.type_name()),
    }
}

/// Copies the values of slots.
pub(super) fn copy(slots: &[Slot], row: &[Value], context: &mut Context<'_>) -> Result<KeptRow> {
    let values: Box<[Value]> = slots.iter().map(|slot| get(row, *slot).clone()).collect();
    let bytes = weight(&values);
    context.budget.charge_bytes(bytes)?;
    Ok(KeptRow { values, bytes })
}

/// The bytes that values are charged with when they are kept. Other ones later, if others keep them too.
pub(super) fn weight(values: &[Value]) -> u64 {
    32 + values.iter().map(Value::share_of_bytes).sum::<u64>()
}

/// Gives back what a row was charged with that is not wanted after all.
pub(super) fn forget(kept: &KeptRow, context: &mut Context<'_>) {
    context.budget.return_bytes(kept.bytes);
}

/// Puts values back where they were copied from.
pub(super) fn restore(slots: &[Slot], kept: KeptRow, row: &mut [Value], context: &mut Context<'_>) {
    forget(&kept, context);
    for (slot, value) in slots.iter().zip(kept.values) {
        set(row, *slot, value);
    }
}

pub(super) fn keep_row(
    keep: &[Slot],
    state: usize,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let kept = copy(keep, row, context)?;
    if let Some(State::Rows(rows)) = next.state(state) {
        rows.push(kept);
    }
    Ok(Flow::Continue)
}

pub(super) fn release_rows(
    keep: &[Slot],
    rows: Vec<KeptRow>,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<()> {
    for values in rows {
        context.budget.charge_steps(1)?;
        restore(keep, values, row, context);
        if next.push(row, context)? == Flow::Stop {
            break;
        }
    }
    Ok(())
}

pub(super) fn distinct(
    columns: &[Slot],
    state: usize,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let key: Box<[Distinct]> =
        columns.iter().map(|slot| Distinct(get(row, *slot).clone())).collect();
    let weight = 32 + key.iter().map(|value| value.0.share_of_bytes()).sum::<u64>();
    let new = match next.state(state) {
        Some(State::Seen(seen)) => seen.insert(key),
        _ => true,
    };
    if !new {
        context.budget.charge_steps(1)?;
        return Ok(Flow::Continue);
    }
    context.budget.charge_bytes(weight)?;
    next.push(row, context)
}

pub(super) fn skip(
    state: usize,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    if let Some(State::Remaining(remaining)) = next.state(state)
        && *remaining > 0
    {
        *remaining -= 1;
        return Ok(Flow::Continue);
    }
    next.push(row, context)
}

pub(super) fn limit(
    state: usize,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let last = match next.state(state) {
        Some(State::Remaining(0)) => return Ok(Flow::Stop),
        Some(State::Remaining(remaining)) => {
            *remaining -= 1;
            *remaining == 0
        }
        _ => false,
    };
    let flow = next.push(row, context)?;
    Ok(if last { Flow::Stop } else { flow })
}
