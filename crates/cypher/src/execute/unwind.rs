//! Rows from lists.

use super::pipeline::{Flow, Next, run, set};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
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
    match evaluate(list, row, context)? {
        Value::Null => Ok(Flow::Continue),
        Value::List(items) => {
            for item in items.iter() {
                context.budget.charge_steps(1)?;
                set(row, variable, item.clone());
                if next.push(row, context)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        }
        single => {
            set(row, variable, single);
            next.push(row, context)
        }
    }
}

/// Runs updates for every element of a list.
pub(super) fn for_each(
    list: &Expression,
    variable: Slot,
    updates: &Pipeline,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<()> {
    let items = match evaluate(list, row, context)? {
        Value::Null => return Ok(()),
        Value::List(items) => items,
        single => std::sync::Arc::new(vec![single].into()),
    };
    for item in items.iter() {
        context.budget.charge_steps(1)?;
        set(row, variable, item.clone());
        run(updates, row, context, &mut |_, _| Ok(Flow::Continue))?;
    }
    Ok(())
}
