//! The shortest chains between two nodes, by breadth-first search.

use std::collections::HashMap;
use std::sync::Arc;

use super::expand::{is_taken, node};
use super::path::assemble;
use super::pipeline::{Flow, Next, set};
use super::trails::Search;
use super::variable::Steps;
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::holds;
use crate::ir::{Expression, Shortest};
use crate::plan::ShortestPath;
use crate::value::{NodeId, Path, RelationshipId, Value};

/// Bytes charged for a visited node.
const REACHED_BYTES: u64 = 96;

/// How nodes were reached: the level and the last steps to them.
type ReachedNodes = HashMap<NodeId, (u32, Vec<(RelationshipId, NodeId)>)>;

pub(super) fn expand(
    shortest: &ShortestPath,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let connection = &shortest.connection;
    let (Some(from), Some(to)) = (node(row, connection.from)?, node(row, connection.to)?) else {
        return Ok(Flow::Continue);
    };
    if from == to {
        // A node reaches itself only by an empty chain.
        if shortest.length.from > 0 {
            return Ok(Flow::Continue);
        }
        return if fits(shortest, &[], row, context)? {
            next.push(row, context)
        } else {
            Ok(Flow::Continue)
        };
    }
    let (way, types) = (connection.direction, &connection.types);
    let steps = Steps::new(way, types, &shortest.properties, row, context)?;
    let reached = search(shortest, &steps, [from, to], row, context)?;
    let mut chains = Chains { reached: &reached, from, open: vec![(to, 0)], chain: Vec::new() };
    let (mut flow, mut found) = (Flow::Continue, false);
    while let Some(mut chain) = chains.next(context)? {
        chain.reverse();
        if !fits(shortest, &chain, row, context)? {
            continue;
        }
        found = true;
        flow = next.push(row, context)?;
        if flow == Flow::Stop || shortest.which == Shortest::One {
            break;
        }
    }
    context.budget.return_bytes(reached.values().map(|(_, steps)| bytes_of(steps.len())).sum());
    match reached.get(&to) {
        Some((level, _)) if !found => {
            Search { shortest, steps: &steps, from, to }.beyond(*level, row, context, next)
        }
        _ => Ok(flow),
    }
}

/// Puts a chain into the row, and checks the conditions on the whole chain.
pub(super) fn fits(
    shortest: &ShortestPath,
    chain: &[RelationshipId],
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<bool> {
    let ids: Vec<Value> = chain.iter().map(|id| Value::Relationship(*id)).collect();
    let value = match (shortest.single, ids.first()) {
        (true, Some(only)) => only.clone(),
        _ => Value::list(ids),
    };
    set(row, shortest.connection.relationship, value);
    if shortest.asked.is_empty() {
        return Ok(true);
    }
    if let Some(path) = &shortest.path {
        let value = assemble(path, row, context)?;
        set(row, path.slot, value);
    }
    all_hold(&shortest.asked, row, context)
}

/// Whether a step satisfies the conditions on every node and relationship, checked as a path of its
/// own.
pub(super) fn leads(
    shortest: &ShortestPath,
    at: NodeId,
    step: (RelationshipId, NodeId),
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<bool> {
    if shortest.asked_of_each.is_empty() {
        return Ok(true);
    }
    let only = Value::list(vec![Value::Relationship(step.0)]);
    set(row, shortest.connection.relationship, only);
    if let Some(path) = &shortest.path {
        let value = Path { start: at, steps: vec![step] };
        set(row, path.slot, Value::Path(Arc::new(value)));
    }
    all_hold(&shortest.asked_of_each, row, context)
}

fn all_hold(asked: &[Expression], row: &mut [Value], context: &mut Context<'_>) -> Result<bool> {
    for condition in asked {
        context.budget.charge_steps(1)?;
        if !holds(condition, row, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes charged for this many last steps to a node.
fn bytes_of(steps: usize) -> u64 {
    steps as u64 * REACHED_BYTES
}

/// Searches level by level until the target is reached.
fn search(
    shortest: &ShortestPath,
    steps: &Steps,
    [from, to]: [NodeId; 2],
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<ReachedNodes> {
    let mut reached: ReachedNodes = HashMap::from([(from, (0, Vec::new()))]);
    let (mut level, mut frontier) = (0_u32, vec![from]);
    let most = shortest.length.to.unwrap_or(u32::MAX);
    while !frontier.is_empty() && level < most && !reached.contains_key(&to) {
        level += 1;
        let mut further = Vec::new();
        for at in frontier {
            for adjacent in steps.from(at, context)? {
                if is_taken(adjacent.relationship, &shortest.connection.unlike, row) {
                    continue;
                }
                let is_behind =
                    reached.get(&adjacent.other).is_some_and(|(found, _)| *found < level);
                let step = (adjacent.relationship, adjacent.other);
                if is_behind || !leads(shortest, at, step, row, context)? {
                    continue;
                }
                let (found, last) = reached.entry(adjacent.other).or_insert_with(|| {
                    further.push(adjacent.other);
                    (level, Vec::new())
                });
                if *found == level {
                    context.budget.charge_bytes(REACHED_BYTES)?;
                    last.push((adjacent.relationship, at));
                }
            }
        }
        frontier = further;
    }
    Ok(reached)
}

/// Walks back from the target along all shortest chains.
struct Chains<'r> {
    reached: &'r ReachedNodes,
    from: NodeId,
    /// Nodes on the way back, each with the index of the next step to try.
    open: Vec<(NodeId, usize)>,
    chain: Vec<RelationshipId>,
}

impl Chains<'_> {
    /// The next chain, from its end to its start.
    fn next(&mut self, context: &mut Context<'_>) -> Result<Option<Vec<RelationshipId>>> {
        while let Some((at, tried)) = self.open.last_mut() {
            context.budget.charge_steps(1)?;
            let step = self.reached.get(at).and_then(|(_, steps)| steps.get(*tried));
            *tried += 1;
            match step {
                Some((relationship, before)) => {
                    self.chain.push(*relationship);
                    if *before == self.from {
                        let whole = self.chain.clone();
                        self.chain.pop();
                        return Ok(Some(whole));
                    }
                    self.open.push((*before, 0));
                }
                None => {
                    self.open.pop();
                    self.chain.pop();
                }
            }
        }
        Ok(None)
    }
}
