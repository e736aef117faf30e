//! Access to parts of values: properties, elements, slices, projections, labels.

use super::nested;
use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::functions::{component, properties};
use crate::graph_values::label_texts;
use crate::ir::{DynamicLabels, Expression, MapProjectionItem};
use crate::value::{Entries, Value, from_property};
use std::sync::Arc;
use wellspring_graph::{Name, Value as Property};

/// `subject.key`, with a key from the statement's text.
pub(super) fn property(
    subject: &Value,
    key: &Arc<str>,
    context: &mut Context<'_>,
) -> Result<Value> {
    match subject {
        Value::Node(_) | Value::Relationship(_) => {
            let name = context.names.of_plan(key, context.transaction);
            entity_property(subject, name, context)
        }
        other => {
            context.budget.charge_steps(key.len() as u64 / 64)?;
            part(other, key)
        }
    }
}

/// `subject[key]`, with a computed key.
fn computed_property(subject: &Value, key: &str, context: &mut Context<'_>) -> Result<Value> {
    context.budget.charge_steps(key.len() as u64 / 64)?;
    match subject {
        Value::Node(_) | Value::Relationship(_) => {
            let name = context.transaction.known_name(key);
            entity_property(subject, name, context)
        }
        other => part(other, key),
    }
}

fn entity_property(subject: &Value, key: Name, context: &mut Context<'_>) -> Result<Value> {
    let stored = match subject {
        Value::Node(id) => context.transaction.node_property(*id, key)?,
        Value::Relationship(id) => context.transaction.relationship_property(*id, key)?,
        _ => None,
    };
    read(stored, context)
}

fn part(subject: &Value, key: &str) -> Result<Value> {
    match subject {
        Value::Null => Ok(Value::Null),
        Value::Map(entries) => Ok(entries.get(key).cloned().unwrap_or_default()),
        other => component(other, key),
    }
}

/// Number of row bytes scanned per step.
const ROW_BYTES_PER_STEP: u64 = 1024;

/// Converts a stored property, which is a copy made for this purpose.
fn read(stored: Option<Property>, context: &mut Context<'_>) -> Result<Value> {
    let value = stored.map(from_property).unwrap_or_default();
    let walked = context.transaction.take_walked() / ROW_BYTES_PER_STEP;
    context.budget.charge_steps(value.steps() + walked)?;
    context.budget.charge_bytes(value.bytes())?;
    Ok(value)
}

/// `subject[index]`
pub(super) fn index(subject: &Value, index: &Value, context: &mut Context<'_>) -> Result<Value> {
    match (subject, index) {
        (Value::Null, _) => Ok(Value::Null),
        (Value::List(_) | Value::Map(_) | Value::Node(_) | Value::Relationship(_), Value::Null) => {
            Ok(Value::Null)
        }
        (Value::List(items), Value::Integer(index)) => Ok(place(*index, items.len())
            .and_then(|place| items.get(place))
            .cloned()
            .unwrap_or_default()),
        (Value::Map(_) | Value::Node(_) | Value::Relationship(_), Value::String(key)) => {
            computed_property(subject, key, context)
        }
        (Value::List(_), other) => Err(Error::type_error(
            Detail::ListElementAccessByNonInteger,
            format!("A List is indexed by an Integer, not by {}.", other.type_name()),
        )),
        (Value::Map(_) | Value::Node(_) | Value::Relationship(_), other) => Err(Error::type_error(
            Detail::MapElementAccessByNonString,
            format!("A Map is indexed by a String, not by {}.", other.type_name()),
        )),
        (other, _) => Err(Error::type_error(
            Detail::InvalidArgumentType,
            format!("A List or Map is indexed, not {}.", other.type_name()),
        )),
    }
}

/// The place of an index, which counts from the end if negative; `None` if it is before the first
/// element.
fn place(index: i64, length: usize) -> Option<usize> {
    let from_start =
        if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(from_start).ok()
}

/// `list[from..to]`
pub(super) fn slice(
    list: &Value,
    from: Option<&Value>,
    to: Option<&Value>,
    context: &mut Context<'_>,
) -> Result<Value> {
    let items = match list {
        Value::Null => return Ok(Value::Null),
        Value::List(items) => items,
        other => {
            let message = format!("A List is sliced, not {}.", other.type_name());
            return Err(Error::type_error(Detail::InvalidArgumentType, message));
        }
    };
    let bound = |bound: Option<&Value>, otherwise: usize| match bound {
        None => Ok(Some(otherwise)),
        Some(Value::Null) => Ok(None),
        Some(Value::Integer(index)) => {
            Ok(Some(place(*index, items.len()).unwrap_or(0).min(items.len())))
        }
        Some(other) => Err(Error::type_error(
            Detail::ListElementAccessByNonInteger,
            format!("The bounds of a slice are Integers, not {}.", other.type_name()),
        )),
    };
    let (Some(from), Some(to)) = (bound(from, 0)?, bound(to, items.len())?) else {
        return Ok(Value::Null);
    };
    let part = items.get(from..to).unwrap_or_default();
    context.budget.charge_steps(part.len() as u64)?;
    context.budget.charge_bytes(size_of_val(part) as u64)?;
    Ok(Value::list(part.to_vec()))
}

/// `subject:A:B`
pub(super) fn has_labels(
    subject: &Value,
    labels: &[Arc<str>],
    context: &mut Context<'_>,
) -> Result<Value> {
    match subject {
        Value::Null => Ok(Value::Null),
        Value::Node(id) => {
            for label in labels {
                let label = context.names.of_plan(label, context.transaction);
                if !context.transaction.has_label(*id, label)? {
                    return Ok(Value::Boolean(false));
                }
            }
            Ok(Value::Boolean(true))
        }
        Value::Relationship(id) => {
            let relationship = context.transaction.relationship(*id)?;
            let name = context.transaction.text(relationship.relationship_type);
            Ok(Value::Boolean(labels.iter().all(|label| *label == name)))
        }
        other => Err(unlabelled(other)),
    }
}

/// `subject:$(labels)`, `subject:$any(labels)`; null where a label is unknown.
pub(super) fn has_dynamic_labels(
    subject: &Value,
    labels: &Value,
    how_many: DynamicLabels,
    context: &mut Context<'_>,
) -> Result<Value> {
    if subject.is_null() || labels.is_null() {
        return Ok(Value::Null);
    }
    for label in label_texts(labels, context)? {
        let has = match subject {
            Value::Node(id) => {
                // The text is no part of the plan.
                let name = context.transaction.known_name(&label);
                context.transaction.has_label(*id, name)?
            }
            Value::Relationship(id) => {
                let relationship = context.transaction.relationship(*id)?;
                context.transaction.text(relationship.relationship_type) == label
            }
            other => return Err(unlabelled(other)),
        };
        match how_many {
            DynamicLabels::All if !has => return Ok(Value::Boolean(false)),
            DynamicLabels::Any if has => return Ok(Value::Boolean(true)),
            _ => {}
        }
    }
    Ok(Value::Boolean(how_many == DynamicLabels::All))
}

fn unlabelled(value: &Value) -> Error {
    Error::runtime(
        ErrorKind::TypeError,
        Detail::InvalidArgumentType,
        format!("Only nodes have labels, not {}.", value.type_name()),
    )
}

/// `subject{.key, .*, key: value}`
pub(super) fn map_projection(
    subject: &Expression,
    items: &[MapProjectionItem],
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let subject = nested(subject, row, context)?;
    if subject.is_null() {
        return Ok(Value::Null);
    }
    let mut entries = Entries::new();
    for item in items {
        match item {
            MapProjectionItem::Property(key) => {
                entries.insert(key.clone(), property(&subject, key, context)?);
            }
            MapProjectionItem::AllProperties => entries.extend(properties(&subject, context)?),
            MapProjectionItem::Entry(key, value) => {
                let value = nested(value, row, context)?;
                entries.insert(key.clone(), value);
            }
        }
    }
    context.budget.charge_bytes(entries.len() as u64 * 64)?;
    Value::Map(Arc::new(entries.into())).bounded()
}
