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
    /// Rows that wait for the others, and the slots that are the pipeline's own.
    Rows { rows: Vec<KeptRow>, own: Vec<Slot> },
    /// Rows that were seen.
    Seen(SeenRows),
    /// Rows still to be skipped or to come.
    Remaining(u64),
    /// Rows to be sorted.
    Sorted(Sorted),
    /// Groups.
    Groups(Groups),
}

/// Rows that were seen, and the bytes that they are charged with.
#[derive(Default)]
pub(super) struct SeenRows {
    rows: HashSet<Box<[Distinct]>>,
    bytes: u64,
}

impl SeenRows {
    /// Whether a row is seen for the first time.
    pub(super) fn is_new<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value> + Clone,
        context: &mut Context<'_>,
    ) -> Result<bool> {
        let sum = |of: fn(&Value) -> u64| values.clone().map(of).sum::<u64>();
        // Before it is gone through.
        let bytes = SEEN_BYTES + sum(Value::share_of_bytes);
        context.budget.charge_steps(1 + sum(Value::steps))?;
        context.budget.charge_bytes(bytes)?;
        let is_new = self.rows.insert(values.cloned().map(Distinct).collect());
        if is_new {
            self.bytes += bytes;
        } else {
            context.budget.return_bytes(bytes);
        }
        Ok(is_new)
    }

    /// Gives its bytes back.
    pub(super) fn forget(self, context: &mut Context<'_>) {
        context.budget.return_bytes(self.bytes);
    }
}

/// What a row takes in a table besides its values.
const SEEN_BYTES: u64 = 48;

/// Of these slots, those that nothing outside of a pipeline that begins now has put something into.
pub(super) fn own_slots(slots: impl Iterator<Item = Slot>, row: &[Value]) -> Vec<Slot> {
    slots.filter(|slot| get(row, *slot).is_null()).collect()
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
    let mut states = Vec::new();
    // Not every number is some operator's: one may have been replaced since by what keeps nothing.
    states.resize_with(pipeline.states, State::default);
    for operator in &pipeline.operators {
        let state = match operator {
            Operator::Eager { keep, .. } => {
                State::Rows { rows: Vec::new(), own: own_slots(keep.iter().copied(), row) }
            }
            Operator::Distinct { .. } => State::Seen(SeenRows::default()),
            Operator::Skip { count, .. } => State::Remaining(amount("SKIP", count, row, context)?),
            Operator::Limit { count, .. } => {
                State::Remaining(amount("LIMIT", count, row, context)?)
            }
            Operator::Sort(sort) => {
                let own = own_slots(sort.keep.iter().copied(), row);
                State::Sorted(Sorted::new(top_of(sort, row, context)?, own))
            }
            Operator::Aggregate(aggregation) => {
                let keys = aggregation.keys.iter().map(|key| key.slot);
                let slots = keys.chain(aggregation.aggregates.iter().map(|it| it.slot));
                State::Groups(Groups::new(own_slots(slots, row)))
            }
            _ => continue,
        };
        if let Some(place) = operator.keeps().and_then(|number| states.get_mut(number)) {
            *place = state;
        }
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
    // Before they are copied: what only this row has is to be charged as a whole.
    let bytes = weight(slots.iter().map(|slot| get(row, *slot)));
    context.budget.charge_bytes(bytes)?;
    let values: Box<[Value]> = slots.iter().map(|slot| get(row, *slot).clone()).collect();
    Ok(KeptRow { values, bytes })
}

/// The bytes that values are charged with when they are kept. Other ones later, if others keep them
/// too.
pub(super) fn weight<'v>(values: impl IntoIterator<Item = &'v Value>) -> u64 {
    32 + values.into_iter().map(Value::share_of_bytes).sum::<u64>()
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
    if let Some(State::Rows { rows, .. }) = next.state(state) {
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
    let is_new = match next.state(state) {
        Some(State::Seen(seen)) => {
            seen.is_new(columns.iter().map(|slot| get(row, *slot)), context)?
        }
        _ => true,
    };
    if is_new { next.push(row, context) } else { Ok(Flow::Continue) }
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
