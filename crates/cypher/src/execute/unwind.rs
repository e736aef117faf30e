//! Produces rows from lists.

use super::pipeline::{Flow, Next, run, set};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::held;
use crate::ir::{Expression, Slot};
use crate::plan::Pipeline;
use crate::value::Value;

pub(super) fn unwind(
    list: &Expression,
    variable: Slot,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let (items, bytes) = held(list, row, context)?;
    let mut flow = Flow::Continue;
    for item in items {
        context.budget.charge_steps(1)?;
        set(row, variable, item);
        flow = next.push(row, context)?;
        if flow == Flow::Stop {
            break;
        }
    }
    context.budget.return_bytes(bytes);
    Ok(flow)
}

/// Runs updates for every element of a list.
pub(super) fn for_each(
    list: &Expression,
    variable: Slot,
    updates: &Pipeline,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<()> {
    let (items, bytes) = held(list, row, context)?;
    for item in items {
        context.budget.charge_steps(1)?;
        set(row, variable, item);
        run(updates, row, context, &mut |_, _| Ok(Flow::Continue))?;
    }
    context.budget.return_bytes(bytes);
    Ok(())
}
