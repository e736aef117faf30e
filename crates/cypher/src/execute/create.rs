//! `CREATE`.

use super::expand::unfit;
use super::path;
use super::pipeline::{get, set};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::graph_values::{add_labels, key_name, one_type, property_of};
use crate::ir::{Expression, Properties, Slot};
use crate::plan::Creation;
use crate::value::{NodeId, Value};
use std::sync::Arc;
use wellspring_graph::{Name, Value as Property};

/// Creates nodes and relationships, and binds them.
pub(super) fn create(
    creation: &Creation,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<()> {
    for node in &creation.nodes {
        context.budget.charge_steps(1)?;
        let properties = properties(&node.properties, row, context)?;
        let mut labels: Vec<Name> =
            node.labels.iter().map(|it| context.transaction.name(it)).collect();
        for expression in &node.dynamic_labels {
            let value = evaluate(expression, row, context)?;
            add_labels(&value, &mut labels, context)?;
        }
        let id = context.transaction.create_node(&labels, properties)?;
        context.charge_written()?;
        set(row, node.slot, Value::Node(id));
    }
    for relationship in &creation.relationships {
        context.budget.charge_steps(1)?;
        let properties = properties(&relationship.properties, row, context)?;
        let kind = match &relationship.dynamic_kind {
            None => context.transaction.name(&relationship.kind),
            Some(expression) => {
                let value = evaluate(expression, row, context)?;
                one_type(&value, context)?
            }
        };
        let (from, to) = (end(row, relationship.from)?, end(row, relationship.to)?);
        let id = context.transaction.create_relationship(kind, from, to, properties)?;
        context.charge_written()?;
        set(row, relationship.slot, Value::Relationship(id));
    }
    for assembly in &creation.paths {
        let path = path::assemble(assembly, row, context)?;
        set(row, assembly.slot, path);
    }
    Ok(())
}

fn end(row: &[Value], slot: Slot) -> Result<NodeId> {
    match get(row, slot) {
        Value::Node(id) => Ok(*id),
        other => Err(unfit(other, "a node at the end of a relationship")),
    }
}

/// The properties of a pattern, without those that are null.
fn properties(
    properties: &Properties,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Vec<(Name, Property)>> {
    match properties {
        Properties::Entries(entries) => {
            context.budget.charge_steps(entries.len() as u64)?;
            let mut all = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                let value = evaluate(value, row, context)?;
                add(&mut all, key, &value, context)?;
            }
            Ok(all)
        }
        Properties::Map(map) => properties_of(map, row, context),
    }
}

/// The properties of a map, a node or a relationship.
pub(super) fn properties_of(
    map: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Vec<(Name, Property)>> {
    let mut all = Vec::new();
    for (name, value) in entries_of(map, row, context)? {
        all.extend(value.map(|value| (name, value)));
    }
    Ok(all)
}

/// The entries of a map, a node or a relationship; `None` stands for null.
pub(super) fn entries_of(
    map: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Vec<(Name, Option<Property>)>> {
    let found = |found: Vec<(Name, Property)>| {
        found.into_iter().map(|(key, value)| (key, Some(value))).collect()
    };
    let all: Vec<_> = match evaluate(map, row, context)? {
        Value::Map(entries) => {
            charge_entries(entries.len(), context)?;
            let mut all = Vec::with_capacity(entries.len());
            for (key, value) in entries.iter() {
                all.push((key_name(key, context)?, property_of(value, context)?));
            }
            return Ok(all);
        }
        Value::Node(id) => found(context.transaction.node_properties(id)?),
        Value::Relationship(id) => found(context.transaction.relationship_properties(id)?),
        Value::Null => Vec::new(),
        other => return Err(unfit(&other, "a map, a node or a relationship")),
    };
    charge_entries(all.len(), context)?;
    Ok(all)
}

/// Charges for properties about to be written: a step for each, and memory for their list, which is
/// returned afterwards. The transaction pays for what is stored.
fn charge_entries(count: usize, context: &mut Context<'_>) -> Result<()> {
    let bytes = (count * size_of::<(Name, Option<Property>)>()) as u64;
    context.budget.charge_steps(count as u64)?;
    context.budget.charge_bytes(bytes)?;
    context.budget.return_bytes(bytes);
    Ok(())
}

fn add(
    all: &mut Vec<(Name, Property)>,
    key: &Arc<str>,
    value: &Value,
    context: &mut Context<'_>,
) -> Result<()> {
    if let Some(value) = property_of(value, context)? {
        all.push((key_name(key, context)?, value));
    }
    Ok(())
}
