//! Rows from nodes and lists.

use super::pipeline::{Flow, Next, run, set};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::ir::{Expression, Slot};
use crate::plan::{Pipeline, Scan, ScanSource};
use crate::value::{Value, to_property};
use wellspring_graph::NodeScan;

pub(super) fn scan(
    scan: &Scan,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let Some(mut nodes) = open(&scan.source, row, context)? else { return Ok(Flow::Continue) };
    let mut found = Vec::new();
    loop {
        let progress = nodes.fill(context.transaction, &mut found);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        for node in found.drain(..) {
            set(row, scan.slot, Value::Node(node));
            if next.push(row, context)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        if progress.is_finished {
            return Ok(Flow::Continue);
        }
    }
}

/// The scan; none if nothing can be found.
fn open(
    source: &ScanSource,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Option<NodeScan>> {
    Ok(match source {
        ScanSource::All => Some(context.transaction.scan_nodes()),
        ScanSource::Label(label) => {
            let label = context.transaction.name(label);
            Some(context.transaction.scan_label(label))
        }
        ScanSource::Equal { label, key, value } => {
            let value = evaluate(value, row, context)?;
            let label = context.transaction.name(label);
            match to_property(&value) {
                // Nothing is equal to null.
                Ok(None) => None,
                Ok(Some(value)) => {
                    let key = context.transaction.name(key);
                    Some(context.transaction.seek_nodes(label, key, &value))
                }
                // No property is that, but the predicate that follows is to say so.
                Err(_) => Some(context.transaction.scan_label(label)),
            }
        }
    })
}

/// The number of nodes with a label, or of all.
pub(super) fn stored_count(label: Option<&str>, context: &mut Context<'_>) -> Value {
    let count = match label {
        Some(label) => context.transaction.label_count(context.transaction.name(label)),
        None => context.transaction.node_count(),
    };
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

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
