//! Calls of subqueries and procedures.

use super::pipeline::{Flow, Next, set};
use super::result::run_query;
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::ir::Slot;
use crate::plan::{ProcedureCall, QueryPlan};
use crate::value::Value;

pub(super) fn call(
    query: &QueryPlan,
    introduced: &[Slot],
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    if introduced.is_empty() {
        run_query(query, row, context, &mut |_, _, _| Ok(Flow::Continue))?;
        return next.push(row, context);
    }
    run_query(query, row, context, &mut |values, row, context| {
        for (slot, value) in introduced.iter().zip(values) {
            set(row, *slot, value.clone());
        }
        next.push(row, context)
    })
}

pub(super) fn procedure(
    call: &ProcedureCall,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        arguments.push(evaluate(argument, row, context)?);
    }
    let rows = call.procedure.call(&arguments, context)?;
    if call.procedure.yields().is_empty() {
        // A procedure without columns passes the row on.
        return next.push(row, context);
    }
    for values in rows {
        context.budget.charge_steps(1)?;
        for (at, slot) in &call.yields {
            set(row, *slot, values.get(*at).cloned().unwrap_or_default());
        }
        if next.push(row, context)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}
