//! Joins by value: nodes that equal what the row holds are found in a table of all nodes with the
//! label, made when a scan is asked for a second row. The predicates that follow decide; a table
//! only leaves out nodes for which they cannot hold.

use super::pipeline::{Flow, Next, set};
use crate::context::{Context, JoinState, JoinTable};
use crate::error::{ErrorKind, Result};
use crate::evaluate::evaluate;
use crate::ir::Slot;
use crate::plan::Join;
use crate::value::{Distinct, Value, from_property, meets_by_hash, to_property};
use std::sync::Arc;
use wellspring_graph::{EntityScan, Name, NodeId};

/// Overhead of a value in the table, and bytes of a node.
const ENTRY_BYTES: u64 = 96;
const NODE_BYTES: u64 = 16;
/// Number of row bytes scanned per step.
const ROW_BYTES_PER_STEP: u64 = 1024;

/// Passes on the nodes that may equal what the row holds; `None` if only a scan can tell.
pub(super) fn joined(
    join: &Join,
    slot: Slot,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Option<Flow>> {
    let Some(table) = table(join, slot, row, context)? else { return Ok(None) };
    let mut sought = Vec::with_capacity(join.equal.len());
    for it in &join.equal {
        // The predicate tells what is wrong, if it is evaluated at all.
        let Ok(value) = evaluate(&it.wanted, row, context) else { return Ok(None) };
        context.budget.charge_steps(1 + value.steps())?;
        if value.is_null() {
            return Ok(Some(Flow::Continue));
        }
        if !meets_by_hash(&value) || !note(join, it.property.as_deref(), &value, context) {
            return Ok(None);
        }
        sought.push(value);
    }
    let found = table.places.get(&Distinct::of(sought.into_boxed_slice()));
    let found = found.map_or(&[][..], Vec::as_slice);
    let (mut alike, mut others) = (found.iter().peekable(), table.others.iter().peekable());
    loop {
        let node = match (alike.peek(), others.peek()) {
            (Some(one), Some(other)) if other < one => others.next(),
            (Some(_), _) => alike.next(),
            (None, _) => others.next(),
        };
        let Some(node) = node else { return Ok(Some(Flow::Continue)) };
        context.budget.charge_steps(1)?;
        set(row, slot, Value::Node(*node));
        if next.push(row, context)? == Flow::Stop {
            return Ok(Some(Flow::Stop));
        }
    }
}

/// Records a lookup in the footprint; whether it can be recorded.
fn note(join: &Join, property: Option<&str>, value: &Value, context: &Context<'_>) -> bool {
    let (Some(label), Some(key)) = (&join.label, property) else { return true };
    let Ok(Some(value)) = to_property(value) else { return false };
    let transaction = &context.transaction;
    transaction.note_lookup(transaction.name(label), transaction.name(key), &value);
    true
}

/// The table of a join, from the second row on.
fn table(
    join: &Join,
    slot: Slot,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Option<Arc<JoinTable>>> {
    let address = std::ptr::from_ref(join).addr();
    let writes = context.transaction.writes();
    let state = match context.known.join(address, writes) {
        Some(JoinState::Table(table)) => return Ok(Some(table)),
        Some(JoinState::Unfit) => return Ok(None),
        None => JoinState::Once,
        Some(JoinState::Once) => {
            let mut table = JoinTable::default();
            match fill(&mut table, join, slot, row, context) {
                Ok(()) => JoinState::Table(Arc::new(table)),
                Err(error) if error.kind == ErrorKind::Terminated => return Err(error),
                // An expression fails for a node that no row may need, or memory is scarce.
                Err(_) => {
                    context.budget.return_bytes(table.bytes);
                    JoinState::Unfit
                }
            }
        }
    };
    context.known.set_join(address, writes, state.clone(), context.budget);
    Ok(match state {
        JoinState::Table(table) => Some(table),
        _ => None,
    })
}

fn fill(
    table: &mut JoinTable,
    join: &Join,
    slot: Slot,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<()> {
    let label = join.label.as_ref().map(|label| context.transaction.name(label));
    let properties: Option<Vec<Name>> = (join.equal.iter())
        .map(|it| Some(context.transaction.name(it.property.as_ref()?)))
        .collect();
    let by_lookups = label.and(properties);
    let mut nodes = match (label, &by_lookups) {
        (Some(label), Some(_)) => context.transaction.scan_label_for_lookups(label),
        (Some(label), None) => context.transaction.scan_label(label),
        (None, _) => context.transaction.scan_nodes(),
    };
    let mut found = Vec::new();
    loop {
        let progress = nodes.fill(context.transaction, &mut found);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        for node in found.drain(..) {
            let values = match &by_lookups {
                Some(keys) => stored(node, keys, context)?,
                None => {
                    set(row, slot, Value::Node(node));
                    let values = join.equal.iter().map(|it| evaluate(&it.key, row, context));
                    values.collect::<Result<Vec<Value>>>()?
                }
            };
            add(table, node, values, context)?;
        }
        if progress.is_finished {
            return Ok(());
        }
    }
}

/// Properties of a node, which the lookups record.
fn stored(node: NodeId, keys: &[Name], context: &mut Context<'_>) -> Result<Vec<Value>> {
    let mut values = Vec::with_capacity(keys.len());
    for key in keys {
        let value = context.transaction.node_property_for_lookups(node, *key)?;
        let value = value.map(from_property).unwrap_or_default();
        let walked = context.transaction.take_walked() / ROW_BYTES_PER_STEP;
        context.budget.charge_steps(value.steps() + walked)?;
        values.push(value);
    }
    Ok(values)
}

/// Adds a node, unless nothing can equal its values.
fn add(
    table: &mut JoinTable,
    node: NodeId,
    values: Vec<Value>,
    context: &mut Context<'_>,
) -> Result<()> {
    if values.iter().any(Value::is_null) {
        return Ok(());
    }
    let mut bytes = NODE_BYTES;
    if values.iter().all(meets_by_hash) {
        let values = Distinct::of(values.into_boxed_slice());
        if let Some(nodes) = table.places.get_mut(&values) {
            nodes.push(node);
        } else {
            bytes += ENTRY_BYTES + values.values().iter().map(Value::bytes).sum::<u64>();
            table.places.insert(values, vec![node]);
        }
    } else {
        table.others.push(node);
    }
    context.budget.charge_bytes(bytes)?;
    table.bytes += bytes;
    Ok(())
}
