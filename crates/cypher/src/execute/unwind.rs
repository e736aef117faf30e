//! Produces rows from lists.

use super::pipeline::{Flow, Next, run, set};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::ir::{Expression, Slot};
use crate::plan::Pipeline;
use crate::value::Value;
use std::sync::Arc;

pub(super) fn unwind(
    list: &Expression,
    variable: Slot,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let (value, bytes) = held(list, row, context)?;
    let flow = match value {
        Value::Null => Flow::Continue,
        Value::List(items) => {
            let mut flow = Flow::Continue;
            for item in items.iter() {
                context.budget.charge_steps(1)?;
                set(row, variable, item.clone());
                flow = next.push(row, context)?;
                if flow == Flow::Stop {
                    break;
                }
            }
            flow
        }
        single => {
            set(row, variable, single);
            next.push(row, context)?
        }
    };
    context.budget.return_bytes(bytes);
    Ok(flow)
}

/// A list's value, held while its items are processed, and the bytes charged for it.
fn held(list: &Expression, row: &mut [Value], context: &mut Context<'_>) -> Result<(Value, u64)> {
    let value = evaluate(list, row, context)?;
    let bytes = value.share_of_outer_bytes();
    context.budget.charge_bytes(bytes)?;
    Ok((value, bytes))
}

/// Runs updates for every element of a list.
pub(super) fn for_each(
    list: &Expression,
    variable: Slot,
    updates: &Pipeline,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<()> {
    let (value, bytes) = held(list, row, context)?;
    let items = match value {
        Value::Null => return Ok(()),
        Value::List(items) => items,
        single => Arc::new(vec![single].into()),
    };
    for item in items.iter() {
        context.budget.charge_steps(1)?;
        set(row, variable, item.clone());
        run(updates, row, context, &mut |_, _| Ok(Flow::Continue))?;
    }
    context.budget.return_bytes(bytes);
    Ok(())
}
