//! Assembles paths from their parts.

use std::sync::Arc;

use super::pipeline::get;
use crate::context::Context;
use crate::error::Result;
use crate::plan::PathAssembly;
use crate::value::{NodeId, Path, RelationshipId, Value};

/// The path whose parts are in the row; null if one of them is.
pub(super) fn assemble(
    assembly: &PathAssembly,
    row: &[Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let Value::Node(start) = get(row, assembly.start) else { return Ok(Value::Null) };
    let mut path = Path { start: *start, steps: Vec::with_capacity(assembly.steps.len()) };
    let mut at = *start;
    for (relationship, node) in &assembly.steps {
        match get(row, *relationship) {
            Value::Relationship(id) => {
                let Value::Node(node) = get(row, *node) else { return Ok(Value::Null) };
                path.steps.push((*id, *node));
                at = *node;
            }
            Value::List(items) => {
                for item in items.iter() {
                    let Value::Relationship(id) = item else { return Ok(Value::Null) };
                    context.budget.charge_steps(1)?;
                    at = other_end(*id, at, context)?;
                    path.steps.push((*id, at));
                }
            }
            _ => return Ok(Value::Null),
        }
    }
    Ok(Value::Path(Arc::new(path)))
}

/// The other end of a relationship; the same node for a loop.
pub(super) fn other_end(id: RelationshipId, node: NodeId, context: &Context<'_>) -> Result<NodeId> {
    let found = context.transaction.relationship(id)?;
    Ok(if found.from == node { found.to } else { found.from })
}
