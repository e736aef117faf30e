//! The indexes that searches name, and the entities in them.

use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::value::{NodeId, RelationshipId, Value};
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

/// Passes each entity that has one of the index's labels or types to `visit`, once.
pub(super) fn each_entity(
    index: &SearchIndex,
    context: &mut Context<'_>,
    visit: &mut dyn FnMut(Value, &ReadProperty<'_>, &mut Context<'_>) -> Result<()>,
) -> Result<()> {
    let subjects: Vec<Name> = index.definition.subjects().collect();
    for (at, subject) in subjects.iter().enumerate() {
        let earlier = subjects.get(..at).unwrap_or_default();
        if index.is_of_nodes() {
            each_node(*subject, earlier, context, visit)?;
        } else {
            each_relationship(*subject, context, visit)?;
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
    let mut scan = context.transaction.scan_label(label);
    let (mut met, mut is_finished): (Vec<NodeId>, _) = (Vec::new(), false);
    while !is_finished {
        met.clear();
        let progress = scan.fill(context.transaction, &mut met);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        is_finished = progress.is_finished;
        'nodes: for id in &met {
            for other in earlier {
                if context.transaction.has_label(*id, *other)? {
                    continue 'nodes;
                }
            }
            let property =
                |key, context: &mut Context<'_>| Ok(context.transaction.node_property(*id, key)?);
            visit(Value::Node(*id), &property, context)?;
        }
        charge_walked(context)?;
    }
    Ok(())
}

fn each_relationship(
    kind: Name,
    context: &mut Context<'_>,
    visit: &mut dyn FnMut(Value, &ReadProperty<'_>, &mut Context<'_>) -> Result<()>,
) -> Result<()> {
    let mut scan = context.transaction.scan_type(kind);
    let (mut met, mut is_finished): (Vec<RelationshipId>, _) = (Vec::new(), false);
    while !is_finished {
        met.clear();
        let progress = scan.fill(context.transaction, &mut met);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        is_finished = progress.is_finished;
        for id in &met {
            let property = |key, context: &mut Context<'_>| {
                Ok(context.transaction.relationship_property(*id, key)?)
            };
            visit(Value::Relationship(*id), &property, context)?;
        }
        charge_walked(context)?;
    }
    Ok(())
}

/// Charges for the bytes of rows that were read to find properties.
fn charge_walked(context: &mut Context<'_>) -> Result<()> {
    const BYTES_PER_STEP: u64 = 128;
    let walked = context.transaction.take_walked();
    context.budget.charge_steps(walked / BYTES_PER_STEP)
}
