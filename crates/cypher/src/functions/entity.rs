//! Functions on nodes, relationships, paths and maps.

use super::arguments::{at, unfit};
use super::catalogue::Function;
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::value::{NodeId, Value, from_property};
use std::sync::Arc;

pub(super) static TABLE: &[Function] = &[
    Function::new("id", 1, 1, |arguments, _| match at(arguments, 0) {
        Value::Node(id) => Ok(Value::Integer(id.number() as i64)),
        Value::Relationship(id) => Ok(Value::Integer(id.number() as i64)),
        other => Err(unfit("id", other, "a Node or a Relationship")),
    }),
    Function::new("elementId", 1, 1, |arguments, context| match at(arguments, 0) {
        Value::Node(id) => Ok(Value::string(format!("4:{}:{}", context.database, id.number()))),
        Value::Relationship(id) => {
            Ok(Value::string(format!("5:{}:{}", context.database, id.number())))
        }
        other => Err(unfit("elementId", other, "a Node or a Relationship")),
    }),
    Function::new("labels", 1, 1, |arguments, context| match at(arguments, 0) {
        Value::Node(id) => {
            let labels = context.transaction.labels(*id)?;
            let texts =
                labels.into_iter().map(|label| Value::String(context.transaction.text(label)));
            Ok(Value::list(texts.collect()))
        }
        other => Err(unfit("labels", other, "a Node")),
    }),
    Function::new("type", 1, 1, |arguments, context| match at(arguments, 0) {
        Value::Relationship(id) => {
            let relationship = context.transaction.relationship(*id)?;
            Ok(Value::String(context.transaction.text(relationship.relationship_type)))
        }
        other => Err(unfit("type", other, "a Relationship")),
    }),
    Function::new("startNode", 1, 1, |arguments, context| {
        ends("startNode", at(arguments, 0), context).map(|ends| Value::Node(ends.0))
    }),
    Function::new("endNode", 1, 1, |arguments, context| {
        ends("endNode", at(arguments, 0), context).map(|ends| Value::Node(ends.1))
    }),
    Function::new("keys", 1, 1, |arguments, context| {
        let entries = properties(at(arguments, 0), context)?;
        Ok(Value::list(entries.into_iter().map(|(key, _)| Value::String(key)).collect()))
    }),
    Function::new("properties", 1, 1, |arguments, context| match at(arguments, 0) {
        map @ Value::Map(_) => Ok(map.clone()),
        subject => properties(subject, context).map(Value::map),
    }),
    Function::new("nodes", 1, 1, |arguments, context| match at(arguments, 0) {
        Value::Path(path) => {
            super::lists::charge(context, path.length())?;
            Ok(Value::list(path.nodes().map(Value::Node).collect()))
        }
        other => Err(unfit("nodes", other, "a Path")),
    }),
    Function::new("relationships", 1, 1, relationships),
    Function::new("rels", 1, 1, relationships),
    Function::new("length", 1, 1, |arguments, _| match at(arguments, 0) {
        Value::Path(path) => Ok(Value::Integer(path.length() as i64)),
        other => Err(unfit("length", other, "a Path")),
    }),
    Function::outlined("exists", 1, 1, |outlines, _| Ok(Value::Boolean(!outlines.is_null())))
        .regarding_nulls(),
];

fn relationships(arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    match at(arguments, 0) {
        Value::Path(path) => {
            super::lists::charge(context, path.length())?;
            Ok(Value::list(path.relationships().map(Value::Relationship).collect()))
        }
        other => Err(unfit("relationships", other, "a Path")),
    }
}

fn ends(function: &str, value: &Value, context: &mut Context<'_>) -> Result<(NodeId, NodeId)> {
    match value {
        Value::Relationship(id) => {
            let relationship = context.transaction.relationship(*id)?;
            Ok((relationship.from, relationship.to))
        }
        other => Err(unfit(function, other, "a Relationship")),
    }
}

/// The properties of a node or relationship, or the entries of a map.
///
/// # Errors
/// Another value, or a deleted entity.
pub fn properties(subject: &Value, context: &mut Context<'_>) -> Result<Vec<(Arc<str>, Value)>> {
    let stored = match subject {
        Value::Node(id) => context.transaction.node_properties(*id)?,
        Value::Relationship(id) => context.transaction.relationship_properties(*id)?,
        Value::Map(entries) => {
            context.budget.charge_steps(subject.steps())?;
            let copied = entries.iter().map(|(key, value)| (key.clone(), value.clone()));
            return Ok(copied.collect());
        }
        other => {
            let message =
                format!("Expected a Node, a Relationship or a Map, not {}.", other.type_name());
            return Err(Error::type_error(Detail::InvalidArgumentType, message));
        }
    };
    let mut properties = Vec::with_capacity(stored.len());
    for (key, value) in stored {
        let value = from_property(value);
        context.budget.charge_steps(1 + value.steps())?;
        context.budget.charge_bytes(value.bytes())?;
        properties.push((context.transaction.text(key), value));
    }
    Ok(properties)
}
