//! Grouping and aggregation.

use super::keep::State;
use super::pipeline::{Flow, Next, clear, set};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::functions::Accumulator;
use crate::ir::Slot;
use crate::plan::Aggregation;
use crate::value::{Distinct, DistinctMap, Value, steps_of};

/// Groups, in order of first appearance.
#[derive(Default)]
pub(super) struct Groups {
    places: DistinctMap<Box<[Value]>, usize>,
    groups: Vec<Group>,
    /// The bytes charged for them.
    bytes: u64,
    /// The pipeline's own slots.
    own: Vec<Slot>,
}

struct Group {
    keys: Box<[Value]>,
    accumulators: Box<[Accumulator]>,
}

impl Group {
    fn new(aggregation: &Aggregation, keys: Box<[Value]>) -> Self {
        let accumulators = aggregation.aggregates.iter();
        let accumulators = accumulators.map(|it| Accumulator::new(it.aggregate, it.distinct));
        Self { keys, accumulators: accumulators.collect() }
    }
}

pub(super) fn add(
    aggregation: &Aggregation,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    context.budget.charge_steps(1)?;
    let mut keys = Vec::with_capacity(aggregation.keys.len());
    for key in &aggregation.keys {
        keys.push(evaluate(&key.expression, row, context)?);
    }
    let mut values = Vec::with_capacity(aggregation.aggregates.len());
    for it in &aggregation.aggregates {
        let mut argument = |expression: &Option<_>| match expression {
            Some(expression) => evaluate(expression, row, context),
            None => Ok(Value::Null),
        };
        values.push((it.value.is_some(), argument(&it.value)?, argument(&it.fraction)?));
    }
    let Some(State::Groups(groups)) = next.state(aggregation.state) else {
        return Ok(Flow::Continue);
    };
    let before = context.budget.bytes_left();
    let group = groups.of(aggregation, keys, context)?;
    for (accumulator, (has_value, value, fraction)) in group.accumulators.iter_mut().zip(values) {
        if has_value {
            accumulator.add(value, &fraction, context.budget)?;
        } else {
            accumulator.add_row();
        }
    }
    // The budget grows if a new extreme is smaller than the previous one.
    let after = context.budget.bytes_left();
    groups.bytes = (groups.bytes + before).saturating_sub(after);
    Ok(Flow::Continue)
}

impl Groups {
    pub(super) fn new(own: Vec<Slot>) -> Self {
        Self { own, ..Self::default() }
    }

    /// The group with these keys.
    fn of(
        &mut self,
        aggregation: &Aggregation,
        keys: Vec<Value>,
        context: &mut Context<'_>,
    ) -> Result<&mut Group> {
        context.budget.charge_steps(steps_of(&keys))?;
        // Without keys all rows are one group, which needs no hash.
        let is_only = keys.is_empty() && !self.groups.is_empty();
        let keys = (!is_only).then(|| Distinct::of(keys.into_boxed_slice()));
        let at = match keys.map(|keys| self.places.get(&keys).copied().ok_or(keys)) {
            None => 0,
            Some(Ok(at)) => at,
            Some(Err(keys)) => {
                let weight = keys.values().iter().map(Value::share_of_bytes).sum::<u64>();
                let accumulators = aggregation.aggregates.len() as u64 * 96;
                context.budget.charge_bytes(136 + weight + accumulators)?;
                self.groups.push(Group::new(aggregation, keys.values().clone()));
                self.places.insert(keys, self.groups.len() - 1);
                self.groups.len() - 1
            }
        };
        self.groups
            .get_mut(at)
            .ok_or_else(|| crate::error::Error::defect("a group without a place"))
    }
}

pub(super) fn release(
    aggregation: &Aggregation,
    groups: Groups,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<()> {
    let Groups { groups: mut all, bytes, own, .. } = groups;
    if all.is_empty() && aggregation.keys.is_empty() {
        // Aggregations without rows have a value: a count is 0.
        all.push(Group::new(aggregation, Box::default()));
    }
    for group in all {
        context.budget.charge_steps(1)?;
        for (key, value) in aggregation.keys.iter().zip(group.keys) {
            set(row, key.slot, value);
        }
        for (it, accumulator) in aggregation.aggregates.iter().zip(group.accumulators) {
            set(row, it.slot, accumulator.finish(context.budget)?);
        }
        if next.push(row, context)? == Flow::Stop {
            break;
        }
    }
    context.budget.return_bytes(bytes);
    clear(own, row);
    Ok(())
}
