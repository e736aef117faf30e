//! Finds chains of variable length of which only the ends are asked for, as in `MATCH
//! (a)-[:R*]->(b) RETURN DISTINCT b`: these are reached without trying every chain. Paths that
//! nothing reads are not assembled.

use std::collections::HashSet;

use super::conditions::is_repeatable;
use super::operator::{Operator, Pipeline};
use crate::functions::Aggregate;
use crate::ir::{Expression, Slot, for_each_slot};

/// What follows an operator.
struct LaterUse {
    /// Whether rows that are alike have the effect of one.
    once: bool,
    /// The slots that are read.
    reads: HashSet<Slot>,
    /// Whether there are subqueries or updates, which may read anything that has a name.
    reads_names: bool,
}

impl LaterUse {
    fn reads(&self, slot: Slot, has_name: bool) -> bool {
        self.reads.contains(&slot) || (has_name && self.reads_names)
    }

    fn read(&mut self, slots: impl IntoIterator<Item = Slot>) {
        self.reads.extend(slots);
    }

    /// Adds what an expression reads. Of two rows that are alike, it must make the same.
    fn evaluate(&mut self, expression: &Expression) {
        let (reads, reads_names) = (&mut self.reads, &mut self.reads_names);
        for_each_slot(
            expression,
            &mut |slot| {
                reads.insert(slot);
            },
            &mut |_| *reads_names = true,
        );
        self.once &= is_repeatable(expression);
    }
}

/// Marks chains whose ends suffice. `once`: whether rows that are alike have the effect of one at
/// the end of the pipeline.
pub(super) fn use_ends(pipeline: &mut Pipeline, once: bool, result: Option<&[Slot]>) {
    let reads = result.unwrap_or_default().iter().copied().collect();
    mark(pipeline, &mut LaterUse { once, reads, reads_names: false });
}

fn mark(pipeline: &mut Pipeline, after: &mut LaterUse) {
    let mut kept = Vec::with_capacity(pipeline.operators.len());
    for mut operator in std::mem::take(&mut pipeline.operators).into_iter().rev() {
        if matches!(&operator, Operator::Path(path) if !after.reads(path.slot, true)) {
            continue;
        }
        pass(&mut operator, after);
        kept.push(operator);
    }
    kept.reverse();
    pipeline.operators = kept;
}

/// Makes of what follows an operator what follows the one before it.
fn pass(operator: &mut Operator, after: &mut LaterUse) {
    match operator {
        Operator::Filter(predicate) => after.evaluate(predicate),
        Operator::Unwind { list, .. } => after.evaluate(list),
        Operator::LoadCsv(load) => after.evaluate(&load.source),
        Operator::Compute(items) => items.iter().for_each(|it| after.evaluate(&it.expression)),
        Operator::Expand(expand) => {
            let it = &expand.connection;
            after.read([it.from, it.to, it.relationship]);
            after.read(it.unlike.iter().copied());
        }
        Operator::ExpandVariable(expand) => {
            let it = &expand.connection;
            // A shortest chain repeats no relationship. One of two or more may have to.
            expand.ends_only = after.once
                && !expand.bound
                && expand.length.from <= 1
                && !after.reads(it.relationship, expand.has_name);
            after.read([it.from, it.to]);
            if expand.bound {
                after.read([it.relationship]);
            }
            after.read(it.unlike.iter().copied());
            expand.properties.iter().for_each(|(_, value)| after.evaluate(value));
        }
        Operator::Path(path) => {
            after.read([path.start]);
            after.read(path.steps.iter().flat_map(|(step, node)| [*step, *node]));
        }
        Operator::Optional { inner, .. } => mark(inner, after),
        Operator::Aggregate(aggregation) => {
            after.once = aggregation.aggregates.iter().all(|it| {
                it.distinct || matches!(it.aggregate, Aggregate::Minimum | Aggregate::Maximum)
            });
            aggregation.keys.iter().for_each(|key| after.evaluate(&key.expression));
            let read = aggregation.aggregates.iter().flat_map(|it| [&it.value, &it.fraction]);
            read.flatten().for_each(|value| after.evaluate(value));
        }
        Operator::Distinct { columns, .. } => {
            after.once = true;
            after.read(columns.iter().copied());
        }
        Operator::Sort(sort) => {
            after.once &= sort.top.is_none();
            after.read(sort.keep.iter().copied());
            sort.keys.iter().for_each(|key| after.evaluate(&key.expression));
        }
        Operator::Skip { .. } | Operator::Limit { .. } => after.once = false,
        Operator::Eager { keep, .. } => after.read(keep.iter().copied()),
        Operator::StoredCount { .. } => {}
        Operator::Scan(scan) => scan.for_each_value(&mut |value| after.evaluate(value)),
        Operator::Shortest(shortest) => {
            let it = &shortest.connection;
            after.read([it.from, it.to, it.relationship]);
            after.read(it.unlike.iter().copied());
            after.once = false;
            after.reads_names = true;
        }
        Operator::ScanRelationships(_)
        | Operator::Call { .. }
        | Operator::Procedure(_)
        | Operator::Create(_)
        | Operator::Merge(_)
        | Operator::Set(_)
        | Operator::Remove(_)
        | Operator::Delete(_)
        | Operator::Foreach { .. } => {
            // What creates paths or relationships by slots reads those of its patterns.
            after.once = false;
            after.reads_names = true;
        }
    }
}
