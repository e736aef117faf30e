//! The indexes that searches name, and the entities in them.

use super::scans::each_found;
use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::value::Value;
use wellspring_graph::{Name, SchemaDefinition, SchemaSubject, Value as Property};

/// An index that a search names.
pub(super) struct SearchIndex {
    pub(super) definition: SchemaDefinition,
}

impl SearchIndex {
    /// Whether it is one of nodes.
    pub(super) fn is_of_nodes(&self) -> bool {
        matches!(self.definition.subject, SchemaSubject::Label(_))
    }

    /// The error for an index of another kind.
    pub(super) fn unfit(&self, wanted: &str) -> Error {
        let message = format!("Index '{}' is no {wanted} index.", self.definition.name);
        Error::runtime(ErrorKind::ProcedureError, Detail::Refused, message)
    }
}

/// The index with this name.
///
/// # Errors
/// There is none, or it is one of other entities.
pub(super) fn search_index(
    name: &Value,
    of_nodes: bool,
    kind: &str,
    context: &mut Context<'_>,
) -> Result<SearchIndex> {
    let Value::String(name) = name else {
        let message = format!("The name of an index is a String, not {}.", name.type_name());
        return Err(Error::type_error(Detail::InvalidArgumentType, message));
    };
    let items = context.transaction.schema().count();
    context.budget.charge_steps(items as u64)?;
    let definition = context.transaction.schema().find(|item| item.name == *name).cloned();
    let index = definition.map(|definition| SearchIndex { definition }).ok_or_else(|| {
        let message = format!("There is no such {kind} schema index: {name}");
        Error::runtime(ErrorKind::ProcedureError, Detail::Refused, message)
    })?;
    if index.is_of_nodes() != of_nodes {
        let wanted = if of_nodes { "node" } else { "relationship" };
        return Err(index.unfit(wanted));
    }
    Ok(index)
}

/// Reads a property of an entity.
pub(super) type ReadProperty<'r> = dyn Fn(Name, &mut Context<'_>) -> Result<Option<Property>> + 'r;

/// Bytes of rows, read to find properties, that are charged for as a step.
const BYTES_PER_STEP: u64 = 128;

/// Passes each entity that has one of the index's labels or types to `visit`, once.
pub(super) fn each_entity(
    index: &SearchIndex,
    context: &mut Context<'_>,
    visit: &mut dyn FnMut(Value, &ReadProperty<'_>, &mut Context<'_>) -> Result<()>,
) -> Result<()> {
    let mut walked = 0;
    let mut visit = |entity, property: &ReadProperty<'_>, context: &mut Context<'_>| {
        visit(entity, property, context)?;
        walked += context.transaction.take_walked();
        context.budget.charge_steps(walked / BYTES_PER_STEP)?;
        walked %= BYTES_PER_STEP;
        Ok(())
    };
    let subjects: Vec<Name> = index.definition.subjects().collect();
    for (at, subject) in subjects.iter().enumerate() {
        let earlier = subjects.get(..at).unwrap_or_default();
        if index.is_of_nodes() {
            each_node(*subject, earlier, context, &mut visit)?;
        } else {
            each_relationship(*subject, context, &mut visit)?;
        }
    }
    Ok(())
}

fn each_node(
    label: Name,
    earlier: &[Name],
    context: &mut Context<'_>,
    visit: &mut dyn FnMut(Value, &ReadProperty<'_>, &mut Context<'_>) -> Result<()>,
) -> Result<()> {
    each_found(context.transaction.scan_label(label), context, |id, context| {
        for other in earlier {
            if context.transaction.has_label(id, *other)? {
                return Ok(());
            }
        }
        let property =
            |key, context: &mut Context<'_>| Ok(context.transaction.node_property(id, key)?);
        visit(Value::Node(id), &property, context)
    })
}

fn each_relationship(
    kind: Name,
    context: &mut Context<'_>,
    visit: &mut dyn FnMut(Value, &ReadProperty<'_>, &mut Context<'_>) -> Result<()>,
) -> Result<()> {
    each_found(context.transaction.scan_type(kind), context, |id, context| {
        let property = |key, context: &mut Context<'_>| {
            Ok(context.transaction.relationship_property(id, key)?)
        };
        visit(Value::Relationship(id), &property, context)
    })
}
