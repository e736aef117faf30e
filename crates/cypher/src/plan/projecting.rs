//! Compiles `WITH` and `RETURN` to operators.

use super::compile::Compiler;
use super::operator::{Accumulation, Aggregation, Operator, SortOperator};
use crate::functions::{self, Aggregate};
use crate::ir::{self, Expression, Projection, ProjectionItem};

/// The operators of a projection.
pub(super) fn plan(compiler: &mut Compiler, projection: &Projection) {
    if projection.aggregates.is_empty() {
        compute(compiler, &projection.items);
    } else {
        let aggregates = projection.aggregates.iter().map(accumulation).collect();
        let (keys, state) = (projection.items.clone(), compiler.state());
        compiler.single = keys.is_empty();
        compiler.push(Operator::Aggregate(Aggregation { keys, aggregates, state }));
        compute(compiler, &projection.after);
    }
    if projection.distinct {
        let (columns, state) = (projection.columns.clone(), compiler.state());
        compiler.push(Operator::Distinct { columns, state });
    }
    if !projection.order.is_empty() {
        let mut keep = projection.columns.clone();
        keep.extend(&projection.also_read);
        let top = projection.limit.clone().map(|limit| (projection.skip.clone(), limit));
        let (keys, state) = (projection.order.clone(), compiler.state());
        compiler.push(Operator::Sort(SortOperator { keys, keep, top, state }));
    }
    if let Some(count) = projection.skip.clone() {
        let state = compiler.state();
        compiler.push(Operator::Skip { count, state });
    }
    if let Some(count) = projection.limit.clone() {
        let state = compiler.state();
        compiler.push(Operator::Limit { count, state });
    }
    compiler.filter(projection.predicate.clone());
}

/// Computes the items that are not in their slots already.
fn compute(compiler: &mut Compiler, items: &[ProjectionItem]) {
    let stands = |item: &&ProjectionItem| item.expression != Expression::Variable(item.slot);
    let items: Vec<ProjectionItem> = items.iter().filter(stands).cloned().collect();
    if !items.is_empty() {
        compiler.push(Operator::Compute(items));
    }
}

fn accumulation(aggregate: &ir::Aggregate) -> Accumulation {
    let mut arguments = aggregate.arguments.iter().cloned();
    let value = arguments.next();
    let which = match &value {
        Some(_) => functions::aggregate(&aggregate.function).unwrap_or(Aggregate::Count),
        None => Aggregate::CountRows,
    };
    Accumulation {
        slot: aggregate.slot,
        aggregate: which,
        distinct: aggregate.distinct,
        value,
        fraction: arguments.next(),
    }
}
