//! The state that operators keep between rows, and operators that do little else.

use super::aggregate::Groups;
use super::pipeline::{Flow, Next, get, set};
use super::sort::{Sorted, top_of};
use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::evaluate::evaluate;
use crate::ir::{Expression, Slot};
use crate::plan::{Operator, Pipeline};
use crate::value::{Distinct, DistinctSet, Value};

/// The state of an operator.
#[derive(Default)]
pub(super) enum State {
    /// No state, or none any more.
    #[default]
    Nothing,
    /// Rows waiting for the others, and the pipeline's own slots.
    Rows {
        rows: Vec<KeptRow>,
        own: Vec<Slot>,
    },
    /// Rows seen so far.
    Seen(SeenRows),
    /// Number of rows still to skip or to pass.
    Remaining(u64),
    /// Rows to sort.
    Sorted(Sorted),
    Groups(Groups),
}

/// Rows seen so far, and the bytes charged for them.
#[derive(Default)]
pub(super) struct SeenRows {
    rows: DistinctSet<Box<[Value]>>,
    bytes: u64,
}

impl SeenRows {
    /// Whether a row is new.
    pub(super) fn is_new<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value> + Clone,
        context: &mut Context<'_>,
    ) -> Result<bool> {
        let sum = |of: fn(&Value) -> u64| values.clone().map(of).sum::<u64>();
        // Charged before hashing.
        let bytes = SEEN_BYTES + sum(Value::share_of_bytes);
        context.budget.charge_steps(1 + sum(Value::steps))?;
        context.budget.charge_bytes(bytes)?;
        let is_new = self.rows.insert(Distinct::of(values.cloned().collect()));
        if is_new {
            self.bytes += bytes;
        } else {
            context.budget.return_bytes(bytes);
        }
        Ok(is_new)
    }

    /// Returns its bytes.
    pub(super) fn forget(self, context: &mut Context<'_>) {
        context.budget.return_bytes(self.bytes);
    }
}

/// Overhead of a row in the table.
const SEEN_BYTES: u64 = 56;

/// The slots among these that nothing outside of the starting pipeline has set.
pub(super) fn own_slots(slots: impl Iterator<Item = Slot>, row: &[Value]) -> Vec<Slot> {
    slots.filter(|slot| get(row, *slot).is_null()).collect()
}

/// Kept values and the bytes charged for them.
pub(super) struct KeptRow {
    values: Box<[Value]>,
    bytes: u64,
}

/// The initial states of a pipeline's operators.
pub(super) fn states(
    pipeline: &Pipeline,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Vec<State>> {
    let mut states = Vec::new();
    // Some numbers are unused, because a stateless operator has replaced another.
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

/// The row count of `SKIP` or `LIMIT`.
pub(super) fn amount(
    clause: &str,
    count: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<u64> {
    let refused = |detail, value: &str| {
        let message = format!(
            "Invalid input. {value} is not a valid value for {clause}: it must be a non-negative integer."
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
    // Charged before copying, while values owned only by this row count in full.
    let bytes = weight(slots.iter().map(|slot| get(row, *slot)));
    context.budget.charge_bytes(bytes)?;
    let values: Box<[Value]> = slots.iter().map(|slot| get(row, *slot).clone()).collect();
    Ok(KeptRow { values, bytes })
}

/// The bytes to charge for keeping values. The share changes when others keep them too.
pub(super) fn weight<'v>(values: impl IntoIterator<Item = &'v Value>) -> u64 {
    32 + values.into_iter().map(Value::share_of_bytes).sum::<u64>()
}

/// Returns the bytes charged for a row that is not needed after all.
pub(super) fn forget(kept: &KeptRow, context: &mut Context<'_>) {
    context.budget.return_bytes(kept.bytes);
}

/// Restores the values to their slots.
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
