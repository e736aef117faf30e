//! One step along a relationship.

use super::pipeline::{Flow, Next, get, set};
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::ir::{self, Slot};
use crate::plan::{Connection, Expand};
use crate::value::{NodeId, RelationshipId, Value};
use wellspring_graph::{Direction, EntityScan, Name};

pub(super) fn expand(
    expand: &Expand,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let connection = &expand.connection;
    if expand.bound {
        return along(connection, row, context, next);
    }
    let Some(from) = node(row, connection.from)? else { return Ok(Flow::Continue) };
    let to = if connection.to_bound {
        match node(row, connection.to)? {
            Some(to) => Some(to),
            None => return Ok(Flow::Continue),
        }
    } else {
        None
    };
    let types = names(&connection.types, context);
    let mut scan = context.transaction.adjacent(from, direction(connection.direction), &types, to);
    let mut found = Vec::new();
    loop {
        let progress = scan.fill(context.transaction, &mut found);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        for adjacent in found.drain(..) {
            if is_taken(adjacent.relationship, &connection.unlike, row) {
                continue;
            }
            set(row, connection.relationship, Value::Relationship(adjacent.relationship));
            if !connection.to_bound {
                set(row, connection.to, Value::Node(adjacent.other));
            }
            if next.push(row, context)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        if progress.is_finished {
            return Ok(Flow::Continue);
        }
    }
}

/// The relationship is bound; binds or checks its end nodes.
fn along(
    connection: &Connection,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    context.budget.charge_steps(1)?;
    let id = match get(row, connection.relationship) {
        Value::Relationship(id) => *id,
        Value::Null => return Ok(Flow::Continue),
        other => return Err(unfit(other, "a relationship")),
    };
    let found = context.transaction.relationship(id)?;
    let types = names(&connection.types, context);
    let of_type = types.is_empty() || types.contains(&found.relationship_type);
    if !of_type || is_taken(id, &connection.unlike, row) {
        return Ok(Flow::Continue);
    }
    let (forth, back) = ((found.from, found.to), (found.to, found.from));
    let ways: &[_] = match connection.direction {
        ir::Direction::Outgoing => &[forth],
        ir::Direction::Incoming => &[back],
        ir::Direction::Either if found.from == found.to => &[forth],
        ir::Direction::Either => &[forth, back],
    };
    for (from, to) in ways {
        let fits = |slot, bound: bool, end: &NodeId, row: &[Value]| {
            !bound || matches!(get(row, slot), Value::Node(node) if node == end)
        };
        let from_fits = fits(connection.from, connection.from_bound, from, row);
        if !from_fits || !fits(connection.to, connection.to_bound, to, row) {
            continue;
        }
        set(row, connection.from, Value::Node(*from));
        // A loop in the pattern uses one slot for both ends.
        if connection.from == connection.to && from != to {
            continue;
        }
        set(row, connection.to, Value::Node(*to));
        if next.push(row, context)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// The node in a slot; `None` for null.
pub(super) fn node(row: &[Value], slot: Slot) -> Result<Option<NodeId>> {
    match get(row, slot) {
        Value::Node(id) => Ok(Some(*id)),
        Value::Null => Ok(None),
        other => Err(unfit(other, "a node")),
    }
}

/// The error for a value that is not the expected part of a graph.
pub(super) fn unfit(found: &Value, expected: &str) -> Error {
    let message = format!("Expected {expected}, but got {}", found.type_name());
    Error::type_error(Detail::InvalidArgumentType, message)
}

/// The graph's names of relationship types.
pub(super) fn names(types: &[std::sync::Arc<str>], context: &Context<'_>) -> Vec<Name> {
    types.iter().map(|name| context.transaction.name(name)).collect()
}

pub(super) fn direction(direction: ir::Direction) -> Direction {
    match direction {
        ir::Direction::Outgoing => Direction::Outgoing,
        ir::Direction::Incoming => Direction::Incoming,
        ir::Direction::Either => Direction::Both,
    }
}

/// Whether another part of the pattern uses the relationship.
pub(super) fn is_taken(id: RelationshipId, unlike: &[Slot], row: &[Value]) -> bool {
    let is_it = |value: &Value| matches!(value, Value::Relationship(other) if *other == id);
    unlike.iter().any(|slot| match get(row, *slot) {
        Value::List(items) => items.iter().any(is_it),
        value => is_it(value),
    })
}
