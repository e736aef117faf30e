//! The rows of a query, and the values of subqueries.

use super::keep::SeenRows;
use super::pipeline::{Flow, get, run};
use crate::context::Context;
use crate::error::Result;
use crate::ir::SubqueryKind;
use crate::plan::{QueryPlan, SubqueryPlan};
use crate::value::Value;

/// Takes the columns of a row and the row in which the query ran.
pub(super) type Rows<'s> = dyn FnMut(&[Value], &mut [Value], &mut Context<'_>) -> Result<Flow> + 's;

/// Runs a query for a row. A query without a result produces no rows.
pub(crate) fn run_query(
    query: &QueryPlan,
    row: &mut [Value],
    context: &mut Context<'_>,
    rows: &mut Rows<'_>,
) -> Result<Flow> {
    let mut seen = SeenRows::default();
    let mut columns = Vec::new();
    for (pipeline, result) in &query.branches {
        let flow = run(pipeline, row, context, &mut |row, context| {
            let Some(slots) = result else { return Ok(Flow::Continue) };
            columns.clear();
            columns.extend(slots.iter().map(|slot| get(row, *slot).clone()));
            if query.distinct && !seen.is_new(columns.iter(), context)? {
                return Ok(Flow::Continue);
            }
            rows(&columns, row, context)
        })?;
        if flow == Flow::Stop {
            seen.forget(context);
            return Ok(Flow::Stop);
        }
    }
    seen.forget(context);
    Ok(Flow::Continue)
}

/// The value of a subquery for a row.
pub(crate) fn subquery(
    plan: &SubqueryPlan,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let (mut count, mut values) = (0_i64, Vec::new());
    for (pipeline, result) in plan.query.branches.iter().filter(|_| !plan.query.distinct) {
        let flow = run(pipeline, row, context, &mut |row, context| {
            count += 1;
            if plan.kind == SubqueryKind::Exists {
                return Ok(Flow::Stop);
            }
            if plan.kind == SubqueryKind::Collect
                && let Some(slot) = result.as_ref().and_then(|slots| slots.first())
            {
                let value = get(row, *slot).clone();
                context.budget.charge_bytes(value.share_of_bytes())?;
                values.push(value);
            }
            Ok(Flow::Continue)
        })?;
        if flow == Flow::Stop {
            break;
        }
    }
    if plan.query.distinct {
        run_query(&plan.query, row, context, &mut |columns, _, context| {
            count += 1;
            if let (SubqueryKind::Collect, Some(value)) = (plan.kind, columns.first()) {
                context.budget.charge_bytes(value.share_of_bytes())?;
                values.push(value.clone());
            }
            Ok(Flow::Continue)
        })?;
    }
    Ok(match plan.kind {
        SubqueryKind::Exists => Value::Boolean(count > 0),
        SubqueryKind::Count => Value::Integer(count),
        SubqueryKind::Collect => Value::list(values).bounded()?,
    })
}
