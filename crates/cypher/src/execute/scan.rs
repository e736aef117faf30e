//! Produces rows from nodes and relationships.

use std::collections::{BTreeSet, VecDeque};

use super::join::joined;
use super::pipeline::{Flow, Next, set};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::ir::{Expression, Slot};
use crate::plan::{
    RelationshipScan, RelationshipSource, Scan, ScanSource, Seek, SoughtValue, StoredCount,
};
use crate::value::{
    Distinct, DistinctSet, NodeId, RelationshipId, Value, from_property, meets_by_hash, to_property,
};
use wellspring_graph::{EntityScan, Name, NodeScan, Value as Property};

pub(super) fn scan(
    scan: &Scan,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let by_index = match &scan.source {
        ScanSource::Seek(seeks) => seeks.iter().any(|seek| has_index(seek, context)),
        _ => false,
    };
    if let Some(join) = scan.join.as_ref().filter(|_| !by_index)
        && let Some(flow) = joined(join, scan.slot, row, context, next)?
    {
        return Ok(flow);
    }
    match &scan.source {
        ScanSource::All => {
            let nodes = context.transaction.scan_nodes();
            run_through(nodes, scan.slot, row, context, next)
        }
        ScanSource::Label(label) => {
            let label = context.transaction.name(label);
            let nodes = context.transaction.scan_label(label);
            run_through(nodes, scan.slot, row, context, next)
        }
        ScanSource::Seek(seeks) => seek(seeks, scan.slot, row, context, next),
        ScanSource::Ids(wanted) => {
            let ids = ids(wanted, row, context)?;
            let bytes = charge_entries(ids.len(), context)?;
            let mut flow = Flow::Continue;
            for id in ids {
                context.budget.charge_steps(1)?;
                let Some(id) = NodeId::new(id).filter(|id| context.transaction.has_node(*id))
                else {
                    continue;
                };
                set(row, scan.slot, Value::Node(id));
                flow = next.push(row, context)?;
                if flow == Flow::Stop {
                    break;
                }
            }
            context.budget.return_bytes(bytes);
            Ok(flow)
        }
    }
}

fn run_through(
    mut nodes: NodeScan,
    slot: Slot,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let mut found = Vec::new();
    loop {
        let progress = nodes.fill(context.transaction, &mut found);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        for node in found.drain(..) {
            set(row, slot, Value::Node(node));
            if next.push(row, context)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        if progress.is_finished {
            return Ok(Flow::Continue);
        }
    }
}

fn has_index(seek: &Seek, context: &Context<'_>) -> bool {
    let transaction = &context.transaction;
    transaction.has_index(transaction.name(&seek.label), transaction.name(&seek.key))
}

/// Looks up values, each once.
fn seek(
    seeks: &[Seek],
    slot: Slot,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let several = seeks.len() > 1;
    if several && let Some(nodes) = seek_by_all(seeks, row, context)? {
        return run_through(nodes, slot, row, context, next);
    }
    let indexed = |seek: &&Seek| has_index(seek, context);
    let chosen = if several { seeks.iter().find(indexed) } else { None };
    let Some(seek) = chosen.or(seeks.first()) else { return Ok(Flow::Continue) };
    let (label, key) = (context.transaction.name(&seek.label), context.transaction.name(&seek.key));
    match &seek.wanted {
        SoughtValue::One(value) => {
            let value = evaluate(value, row, context)?;
            let nodes = match storable(&value, context)? {
                // Nothing equals null.
                Ok(None) => return Ok(Flow::Continue),
                Ok(Some(value)) => context.transaction.seek_nodes(label, key, &value),
                // No property equals this, but the following predicate decides.
                Err(_) => context.transaction.scan_label(label),
            };
            run_through(nodes, slot, row, context, next)
        }
        SoughtValue::AnyOf(list) => {
            let list = evaluate(list, row, context)?;
            // Two values may find the same node; it passes once.
            let nodes = any_of([label, key], &list, context)?;
            drop(list);
            let bytes = charge_entries(nodes.len(), context)?;
            let mut flow = Flow::Continue;
            for node in nodes {
                set(row, slot, Value::Node(node));
                flow = next.push(row, context)?;
                if flow == Flow::Stop {
                    break;
                }
            }
            context.budget.return_bytes(bytes);
            Ok(flow)
        }
    }
}

/// The nodes that a multi-key index lists for values of all its keys; `None` if there is no such
/// index, or a better one.
fn seek_by_all(
    seeks: &[Seek],
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Option<NodeScan>> {
    let transaction = &*context.transaction;
    let name = |text: &str| transaction.name(text);
    if seeks.iter().any(|it| transaction.has_unique_index(name(&it.label), name(&it.key))) {
        return Ok(None);
    }
    let of_label = |label: &str| {
        let of_it = seeks.iter().filter(|it| *it.label == *label);
        let equal = of_it.filter_map(|it| match &it.wanted {
            SoughtValue::One(value) => Some((name(&it.key), value)),
            SoughtValue::AnyOf(_) => None,
        });
        equal.collect::<Vec<(Name, &Expression)>>()
    };
    let found = seeks.iter().find_map(|it| {
        let (label, equal) = (name(&it.label), of_label(&it.label));
        let keys: Vec<Name> = equal.iter().map(|(key, _)| *key).collect();
        Some((label, transaction.composite_index(label, &keys)?.to_vec(), equal))
    });
    let Some((label, keys, equal)) = found else { return Ok(None) };
    let mut wanted = Vec::with_capacity(keys.len());
    for key in keys {
        let Some((_, value)) = equal.iter().find(|(it, _)| *it == key) else { return Ok(None) };
        // Nothing equals null, and no property equals a value that cannot be stored; the predicate
        // decides.
        let value = evaluate(value, row, context)?;
        let Ok(Some(value)) = storable(&value, context)? else { return Ok(None) };
        wanted.push((key, value));
    }
    Ok(context.transaction.seek_nodes_by_all(label, &wanted))
}

/// The nodes found for any element of a list.
fn any_of(
    [label, key]: [Name; 2],
    list: &Value,
    context: &mut Context<'_>,
) -> Result<BTreeSet<NodeId>> {
    let mut nodes = BTreeSet::new();
    let Value::List(items) = list else { return Ok(nodes) };
    // Without one, all nodes with the label are looked at, once for all values.
    let by_index = context.transaction.has_index(label, key);
    let before = context.budget.bytes_left();
    let mut sought = DistinctSet::default();
    let mut found = Vec::new();
    for item in items.iter() {
        context.budget.charge_steps(1)?;
        // Nothing equals null, and no property equals a value that cannot be stored.
        let Ok(Some(value)) = storable(item, context)? else { continue };
        context.budget.charge_bytes(SOUGHT_BYTES)?;
        if !sought.insert(Distinct::of([item.clone()])) {
            continue;
        }
        if !by_index {
            context.transaction.note_lookup(label, key, &value);
            continue;
        }
        let mut scan = context.transaction.seek_nodes(label, key, &value);
        loop {
            let progress = scan.fill(context.transaction, &mut found);
            context.budget.charge_steps(1 + progress.examined as u64)?;
            context.budget.charge_bytes(found.len() as u64 * 16)?;
            nodes.extend(found.drain(..));
            if progress.is_finished {
                break;
            }
        }
    }
    if !by_index && !sought.is_empty() {
        let mut scan = context.transaction.scan_label_for_lookups(label);
        loop {
            let progress = scan.fill(context.transaction, &mut found);
            context.budget.charge_steps(1 + progress.examined as u64)?;
            for node in found.drain(..) {
                let value = context.transaction.node_property_for_lookups(node, key)?;
                let Some(value) = value.map(from_property) else { continue };
                context.budget.charge_steps(value.steps())?;
                if !meets_by_hash(&value) || sought.contains(&Distinct::of([value])) {
                    context.budget.charge_bytes(16)?;
                    nodes.insert(node);
                }
            }
            if progress.is_finished {
                break;
            }
        }
    }
    // From here on the consumer pays for the nodes.
    context.budget.return_bytes(before.saturating_sub(context.budget.bytes_left()));
    Ok(nodes)
}

/// The property to look up, charged by its size; an error in it if it cannot be stored.
fn storable(value: &Value, context: &mut Context<'_>) -> Result<Result<Option<Property>>> {
    context.budget.charge_steps(value.steps())?;
    Ok(to_property(value))
}

/// Overhead of a looked-up value in its table.
const SOUGHT_BYTES: u64 = 56;

/// Charges for a set of this many ids; returns the bytes charged.
fn charge_entries(entries: usize, context: &mut Context<'_>) -> Result<u64> {
    let bytes = entries as u64 * 16;
    context.budget.charge_bytes(bytes)?;
    Ok(bytes)
}

/// The id numbers: integers for `id()`, the last part of a text for `elementId()`.
fn ids(
    wanted: &SoughtValue,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<BTreeSet<u64>> {
    let number = |value: &Value| match value {
        Value::Integer(id) => u64::try_from(*id).ok(),
        Value::Float(id) if id.fract() == 0.0 && *id >= 0.0 => Some(*id as u64),
        Value::String(text) => text.rsplit(':').next().and_then(|id| id.parse().ok()),
        _ => None,
    };
    Ok(match wanted {
        SoughtValue::One(value) => number(&evaluate(value, row, context)?).into_iter().collect(),
        SoughtValue::AnyOf(list) => match evaluate(list, row, context)? {
            Value::List(items) => {
                context.budget.charge_steps(items.len() as u64)?;
                items.iter().filter_map(number).collect()
            }
            _ => BTreeSet::new(),
        },
    })
}

pub(super) fn scan_relationships(
    scan: &RelationshipScan,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let mut scans = VecDeque::new();
    match &scan.source {
        RelationshipSource::All => scans.push_back(context.transaction.scan_relationships()),
        RelationshipSource::Types(types) => {
            let types = types.iter().map(|name| context.transaction.name(name));
            scans.extend(types.map(|name| context.transaction.scan_type(name)));
        }
        RelationshipSource::Seek { kind, key, wanted } => {
            let transaction = &*context.transaction;
            let (kind, key) = (transaction.name(kind), transaction.name(key));
            let wanted = evaluate(wanted, row, context)?;
            match storable(&wanted, context)? {
                // Nothing equals null.
                Ok(None) => return Ok(Flow::Continue),
                Ok(Some(value)) => {
                    scans.push_back(context.transaction.seek_relationships(kind, key, &value));
                }
                // No property equals this, but the following predicate decides.
                Err(_) => scans.push_back(context.transaction.scan_type(kind)),
            }
        }
        RelationshipSource::Ids(wanted) => {
            let ids = ids(wanted, row, context)?;
            let bytes = charge_entries(ids.len(), context)?;
            let mut flow = Flow::Continue;
            for id in ids {
                context.budget.charge_steps(1)?;
                let id = RelationshipId::new(id);
                let Some(id) = id.filter(|id| context.transaction.has_relationship(*id)) else {
                    continue;
                };
                set(row, scan.slot, Value::Relationship(id));
                flow = next.push(row, context)?;
                if flow == Flow::Stop {
                    break;
                }
            }
            context.budget.return_bytes(bytes);
            return Ok(flow);
        }
    }
    let mut found = Vec::new();
    while let Some(relationships) = scans.front_mut() {
        let progress = relationships.fill(context.transaction, &mut found);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        for id in found.drain(..) {
            set(row, scan.slot, Value::Relationship(id));
            if next.push(row, context)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        if progress.is_finished {
            scans.pop_front();
        }
    }
    Ok(Flow::Continue)
}

/// A count that the graph maintains.
pub(super) fn stored_count(counted: &StoredCount, context: &mut Context<'_>) -> Value {
    let transaction = &context.transaction;
    let count = match counted {
        StoredCount::Nodes(None) => transaction.node_count(),
        StoredCount::Nodes(Some(label)) => transaction.label_count(transaction.name(label)),
        StoredCount::Relationships(None) => transaction.relationship_count(),
        StoredCount::Relationships(Some(kind)) => transaction.type_count(transaction.name(kind)),
    };
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}
