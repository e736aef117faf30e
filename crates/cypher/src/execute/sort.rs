//! `ORDER BY`.

use std::cmp::Ordering;

use super::keep::{KeptRow, State, amount, copy, forget, restore, weight};
use super::pipeline::{Flow, Next, clear};
use crate::context::{Context, sorted};
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::ir::Slot;
use crate::plan::SortOperator;
use crate::value::{Value, order, steps_of};

/// Rows to sort.
pub(super) struct Sorted {
    rows: Vec<SortedRow>,
    /// Only this many of the first rows are needed.
    top: Option<usize>,
    /// The pipeline's own slots.
    own: Vec<Slot>,
}

struct SortedRow {
    keys: Box<[Value]>,
    /// The bytes charged for the keys.
    key_bytes: u64,
    kept: KeptRow,
}

impl Sorted {
    pub(super) fn new(top: Option<usize>, own: Vec<Slot>) -> Self {
        Self { rows: Vec::new(), top, own }
    }
}

/// Number of the first rows that are needed, if known.
pub(super) fn top_of(
    sort: &SortOperator,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Option<usize>> {
    let Some((skip, limit)) = &sort.top else { return Ok(None) };
    let limit = amount("LIMIT", limit, row, context)?;
    let skip = skip.as_ref().map(|skip| amount("SKIP", skip, row, context)).transpose()?;
    Ok(usize::try_from(limit.saturating_add(skip.unwrap_or(0))).ok())
}

pub(super) fn add(
    sort: &SortOperator,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let mut keys = Vec::with_capacity(sort.keys.len());
    for key in &sort.keys {
        keys.push(evaluate(&key.expression, row, context)?);
    }
    let (keys, kept) = (keys.into_boxed_slice(), copy(&sort.keep, row, context)?);
    let key_bytes = weight(&keys);
    context.budget.charge_bytes(key_bytes)?;
    let Some(State::Sorted(sorted)) = next.state(sort.state) else { return Ok(Flow::Continue) };
    sorted.rows.push(SortedRow { keys, key_bytes, kept });
    // Rows that cannot be among the first are dropped periodically.
    if let Some(top) = sorted.top
        && sorted.rows.len() >= top.saturating_mul(2).saturating_add(1_000)
    {
        sorted.rows = arrange(sort, std::mem::take(&mut sorted.rows), context)?;
        for dropped in sorted.rows.drain(top..) {
            context.budget.return_bytes(dropped.key_bytes);
            forget(&dropped.kept, context);
        }
    }
    Ok(Flow::Continue)
}

pub(super) fn release(
    sort: &SortOperator,
    sorted: Sorted,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<()> {
    for values in arrange(sort, sorted.rows, context)? {
        context.budget.charge_steps(1)?;
        context.budget.return_bytes(values.key_bytes);
        restore(&sort.keep, values.kept, row, context);
        if next.push(row, context)? == Flow::Stop {
            break;
        }
    }
    clear(sorted.own, row);
    Ok(())
}

fn arrange(
    sort: &SortOperator,
    rows: Vec<SortedRow>,
    context: &mut Context<'_>,
) -> Result<Vec<SortedRow>> {
    let steps = |row: &SortedRow| row.keys.len() as u64 / 8 + steps_of(&row.keys);
    sorted(rows, context.budget, steps, |a, b| {
        let pairs = a.keys.iter().zip(&b.keys).zip(&sort.keys);
        let mut orders = pairs.map(|((a, b), key)| {
            let ascending = order(a, b);
            if key.descending { ascending.reverse() } else { ascending }
        });
        orders.find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
    })
}
