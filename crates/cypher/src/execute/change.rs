//! `SET`, `REMOVE` and `DELETE`.

use super::create::{entries_of, properties_of};
use super::expand::unfit;
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::evaluate::evaluate;
use crate::graph_values::{add_labels, key_name, property_of};
use crate::ir::{Delete, Expression, RemoveItem, SetItem};
use crate::value::{NodeId, RelationshipId, Value};
use std::sync::Arc;
use wellspring_graph::{Name, Value as Property};

/// The target of a change.
#[derive(Clone, Copy)]
enum Subject {
    Node(NodeId),
    Relationship(RelationshipId),
}

pub(super) fn set_all(
    items: &[SetItem],
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<()> {
    items.iter().try_for_each(|item| {
        context.budget.charge_steps(1)?;
        set_one(item, row, context)?;
        charge_walked(context)
    })
}

/// Charges for the row bytes scanned (setting one property of a node with very many rewrites all of
/// them) and for the memory that the transaction holds.
fn charge_walked(context: &mut Context<'_>) -> Result<()> {
    const BYTES_PER_STEP: u64 = 128;
    let walked = context.transaction.take_walked();
    context.budget.charge_steps(walked / BYTES_PER_STEP)?;
    context.charge_written()
}

fn set_one(item: &SetItem, row: &mut [Value], context: &mut Context<'_>) -> Result<()> {
    match item {
        SetItem::Property { subject, key, value } => {
            let Some(subject) = self_or_nothing(subject, row, context)? else { return Ok(()) };
            let key = key_of(key, row, context)?;
            let value = evaluate(value, row, context)?;
            let value = property_of(&value, context)?;
            set_property(subject, key, value, context)
        }
        SetItem::Replace { subject, value } => {
            let Some(subject) = self_or_nothing(subject, row, context)? else { return Ok(()) };
            let properties = properties_of(value, row, context)?;
            match subject {
                Subject::Node(id) => context.transaction.replace_node_properties(id, properties)?,
                Subject::Relationship(id) => {
                    context.transaction.replace_relationship_properties(id, properties)?;
                }
            }
            Ok(())
        }
        SetItem::Merge { subject, value } => {
            let Some(subject) = self_or_nothing(subject, row, context)? else { return Ok(()) };
            let changes = entries_of(value, row, context)?;
            match subject {
                Subject::Node(id) => context.transaction.change_node(id, changes)?,
                Subject::Relationship(id) => {
                    context.transaction.change_relationship(id, changes)?
                }
            }
            Ok(())
        }
        SetItem::Labels { subject, labels } => match self_or_nothing(subject, row, context)? {
            None => Ok(()),
            Some(Subject::Node(id)) => {
                let labels = names(labels, context);
                Ok(context.transaction.add_labels(id, &labels)?)
            }
            Some(Subject::Relationship(id)) => Err(unfit(&Value::Relationship(id), "a node")),
        },
        SetItem::DynamicLabels { subject, labels, is_removal } => {
            let subject = self_or_nothing(subject, row, context)?;
            let values = evaluate(labels, row, context)?;
            let mut labels = Vec::new();
            if let Value::List(values) = &values {
                for value in values.iter() {
                    add_labels(value, &mut labels, context)?;
                }
            }
            match subject {
                None => Ok(()),
                Some(Subject::Node(id)) if *is_removal => {
                    Ok(context.transaction.remove_labels(id, &labels)?)
                }
                Some(Subject::Node(id)) => Ok(context.transaction.add_labels(id, &labels)?),
                Some(Subject::Relationship(id)) => Err(unfit(&Value::Relationship(id), "a node")),
            }
        }
    }
}

pub(super) fn remove_all(
    items: &[RemoveItem],
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<()> {
    for item in items {
        context.budget.charge_steps(1)?;
        match item {
            RemoveItem::Property { subject, key } => {
                if let Some(subject) = self_or_nothing(subject, row, context)? {
                    let key = key_of(key, row, context)?;
                    set_property(subject, key, None, context)?;
                }
            }
            RemoveItem::Labels { subject, labels } => match self_or_nothing(subject, row, context)?
            {
                None => {}
                Some(Subject::Node(id)) => {
                    let labels = names(labels, context);
                    context.transaction.remove_labels(id, &labels)?;
                }
                Some(Subject::Relationship(id)) => {
                    return Err(unfit(&Value::Relationship(id), "a node"));
                }
            },
        }
        charge_walked(context)?;
    }
    Ok(())
}

pub(super) fn delete(delete: &Delete, row: &mut [Value], context: &mut Context<'_>) -> Result<()> {
    for target in &delete.targets {
        context.budget.charge_steps(1)?;
        match evaluate(target, row, context)? {
            Value::Null => {}
            Value::Node(id) => delete_node(id, delete.detach, context)?,
            Value::Relationship(id) => context.transaction.delete_relationship(id)?,
            Value::Path(path) => {
                for relationship in path.relationships() {
                    context.transaction.delete_relationship(relationship)?;
                }
                for node in path.nodes() {
                    delete_node(node, delete.detach, context)?;
                }
            }
            other => return Err(unfit(&other, "a node, a relationship or a path")),
        }
        context.charge_written()?;
    }
    Ok(())
}

fn delete_node(id: NodeId, detach: bool, context: &mut Context<'_>) -> Result<()> {
    context.budget.charge_steps(1)?;
    if detach {
        loop {
            let progress = context.transaction.detach_some(id)?;
            if progress.is_finished {
                break;
            }
            context.budget.charge_steps(progress.examined as u64)?;
            context.charge_written()?;
        }
    } else {
        context.transaction.delete_node(id)?;
    }
    Ok(())
}

/// The target of a change; `None` for null.
fn self_or_nothing(
    subject: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Option<Subject>> {
    match evaluate(subject, row, context)? {
        Value::Null => Ok(None),
        Value::Node(id) => Ok(Some(Subject::Node(id))),
        Value::Relationship(id) => Ok(Some(Subject::Relationship(id))),
        other => Err(unfit(&other, "a node or a relationship")),
    }
}

fn key_of(key: &Expression, row: &mut [Value], context: &mut Context<'_>) -> Result<Name> {
    match evaluate(key, row, context)? {
        Value::String(key) => key_name(&key, context),
        other => {
            let message = format!("A property name must be a String, not {}", other.type_name());
            Err(Error::type_error(Detail::MapElementAccessByNonString, message))
        }
    }
}

fn set_property(
    subject: Subject,
    key: Name,
    value: Option<Property>,
    context: &mut Context<'_>,
) -> Result<()> {
    match subject {
        Subject::Node(id) => context.transaction.set_node_property(id, key, value)?,
        Subject::Relationship(id) => {
            context.transaction.set_relationship_property(id, key, value)?
        }
    }
    Ok(())
}

fn names(names: &[Arc<str>], context: &Context<'_>) -> Vec<Name> {
    names.iter().map(|name| context.transaction.name(name)).collect()
}
