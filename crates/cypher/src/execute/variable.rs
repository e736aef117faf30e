//! Chains of relationships of variable length.

use std::sync::Arc;

use super::expand::{direction, is_taken, names, node, unfit};
use super::pipeline::{Flow, Next, get, set};
use super::reach::Ends;
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::ir::{self, Expression};
use crate::plan::ExpandVariable;
use crate::value::{NodeId, RelationshipId, Value, equals, from_property};
use wellspring_graph::{Adjacent, Direction, EntityScan, Name};

/// The conditions on every relationship of a chain.
pub(super) struct Steps {
    direction: Direction,
    types: Vec<Name>,
    properties: Vec<(Name, Value)>,
}

impl Steps {
    pub(super) fn new(
        way: ir::Direction,
        types: &[Arc<str>],
        properties: &[(Arc<str>, Expression)],
        row: &mut [Value],
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let types = names(types, context);
        let mut wanted = Vec::with_capacity(properties.len());
        for (key, value) in properties {
            let value = evaluate(value, row, context)?;
            wanted.push((context.transaction.name(key), value));
        }
        Ok(Self { direction: direction(way), types, properties: wanted })
    }

    /// The steps that continue from a node.
    pub(super) fn from(&self, node: NodeId, context: &mut Context<'_>) -> Result<Vec<Adjacent>> {
        let mut scan = context.transaction.adjacent(node, self.direction, &self.types, None);
        let mut found = Vec::new();
        loop {
            let before = found.len();
            let progress = scan.fill(context.transaction, &mut found);
            context.budget.charge_steps(1 + progress.examined as u64)?;
            context.budget.charge_bytes(bytes_of(found.len() - before))?;
            if progress.is_finished {
                break;
            }
        }
        context.budget.return_bytes(bytes_of(found.len()));
        if !self.properties.is_empty() {
            let mut fitting = Vec::with_capacity(found.len());
            for adjacent in found {
                if self.has_properties(adjacent.relationship, context)? {
                    fitting.push(adjacent);
                }
            }
            found = fitting;
        }
        Ok(found)
    }

    fn has_properties(&self, id: RelationshipId, context: &mut Context<'_>) -> Result<bool> {
        for (key, wanted) in &self.properties {
            let found = context.transaction.relationship_property(id, *key)?;
            let found = found.map_or(Value::Null, from_property);
            if equals(&found, wanted) != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The size of this many steps in bytes.
fn bytes_of(steps: usize) -> u64 {
    steps as u64 * size_of::<Adjacent>() as u64
}

/// Steps still to be tried, for each relationship of a chain. A chain can be as long as the graph
/// is large, so they are charged.
#[derive(Default)]
pub(super) struct OpenLevels {
    levels: Vec<(std::vec::IntoIter<Adjacent>, u64)>,
}

impl OpenLevels {
    /// Overhead of a level, including its relationship in the chain.
    const LEVEL_BYTES: u64 = 64;

    pub(super) fn push(&mut self, steps: Vec<Adjacent>, context: &mut Context<'_>) -> Result<()> {
        let bytes = Self::LEVEL_BYTES + bytes_of(steps.capacity());
        context.budget.charge_bytes(bytes)?;
        self.levels.push((steps.into_iter(), bytes));
        Ok(())
    }

    pub(super) fn pop(&mut self, context: &mut Context<'_>) {
        if let Some((_, bytes)) = self.levels.pop() {
            context.budget.return_bytes(bytes);
        }
    }

    pub(super) fn last(&mut self) -> Option<&mut std::vec::IntoIter<Adjacent>> {
        self.levels.last_mut().map(|(steps, _)| steps)
    }

    pub(super) fn close(self, context: &mut Context<'_>) {
        context.budget.return_bytes(self.levels.iter().map(|(_, bytes)| bytes).sum());
    }
}

pub(super) fn expand(
    expand: &ExpandVariable,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let connection = &expand.connection;
    let Some(start) = node(row, connection.from)? else { return Ok(Flow::Continue) };
    let target = if connection.to_bound {
        match node(row, connection.to)? {
            Some(target) => Some(target),
            None => return Ok(Flow::Continue),
        }
    } else {
        None
    };
    let (way, types) = (connection.direction, &connection.types);
    let steps = Steps::new(way, types, &expand.properties, row, context)?;
    if expand.bound {
        return along(expand, &steps, start, target, row, context, next);
    }
    if expand.ends_only {
        let ends = Ends { expand, steps: &steps, start, target };
        return ends.reach(row, context, next);
    }
    let mut walk = Walk { expand, target, chain: Vec::new() };
    if expand.length.from == 0 && walk.give(start, row, context, next)? == Flow::Stop {
        return Ok(Flow::Stop);
    }
    let most = expand.length.to.map_or(usize::MAX, |most| most as usize);
    let mut open = OpenLevels::default();
    open.push(if most > 0 { steps.from(start, context)? } else { Vec::new() }, context)?;
    while let Some(level) = open.last() {
        let Some(adjacent) = level.next() else {
            open.pop(context);
            walk.chain.pop();
            continue;
        };
        // The check whether the chain already contains the relationship takes longer for longer
        // chains.
        context.budget.charge_steps(1 + walk.chain.len() as u64 / 16)?;
        let id = adjacent.relationship;
        if walk.chain.contains(&id) || is_taken(id, &connection.unlike, row) {
            continue;
        }
        walk.chain.push(id);
        if walk.give(adjacent.other, row, context, next)? == Flow::Stop {
            open.close(context);
            return Ok(Flow::Stop);
        }
        if walk.chain.len() < most {
            open.push(steps.from(adjacent.other, context)?, context)?;
        } else {
            walk.chain.pop();
        }
    }
    Ok(Flow::Continue)
}

/// A walk in progress.
struct Walk<'e> {
    expand: &'e ExpandVariable,
    target: Option<NodeId>,
    chain: Vec<RelationshipId>,
}

impl Walk<'_> {
    /// Passes the chain on, if it is long enough and ends at the right node.
    fn give(
        &self,
        end: NodeId,
        row: &mut [Value],
        context: &mut Context<'_>,
        next: &mut Next<'_>,
    ) -> Result<Flow> {
        let long_enough = self.chain.len() >= self.expand.length.from as usize;
        if !long_enough || self.target.is_some_and(|target| target != end) {
            return Ok(Flow::Continue);
        }
        let ids = self.chain.iter().map(|id| Value::Relationship(*id));
        let list = if self.expand.reversed { ids.rev().collect() } else { ids.collect() };
        context.budget.charge_steps(self.chain.len() as u64)?;
        set(row, self.expand.connection.relationship, Value::list(list));
        set(row, self.expand.connection.to, Value::Node(end));
        next.push(row, context)
    }
}

/// The chain is bound; checks whether it leads from one node to the other.
fn along(
    expand: &ExpandVariable,
    steps: &Steps,
    start: NodeId,
    target: Option<NodeId>,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let list = match get(row, expand.connection.relationship) {
        Value::List(list) => list.clone(),
        Value::Null => return Ok(Flow::Continue),
        other => return Err(unfit(other, "a list of relationships")),
    };
    let most = expand.length.to.map_or(usize::MAX, |most| most as usize);
    if !(expand.length.from as usize..=most).contains(&list.len()) {
        return Ok(Flow::Continue);
    }
    let mut at = start;
    let mut ids: Vec<&Value> = list.iter().collect();
    if expand.reversed {
        ids.reverse();
    }
    for item in ids {
        context.budget.charge_steps(1)?;
        let Value::Relationship(id) = item else { return Err(unfit(item, "a relationship")) };
        let found = context.transaction.relationship(*id)?;
        let leads = match expand.connection.direction {
            ir::Direction::Outgoing => found.from == at,
            ir::Direction::Incoming => found.to == at,
            ir::Direction::Either => found.from == at || found.to == at,
        };
        let of_type = steps.types.is_empty() || steps.types.contains(&found.relationship_type);
        if !leads || !of_type || !steps.has_properties(*id, context)? {
            return Ok(Flow::Continue);
        }
        at = if found.from == at { found.to } else { found.from };
    }
    if target.is_some_and(|target| target != at) {
        return Ok(Flow::Continue);
    }
    set(row, expand.connection.to, Value::Node(at));
    next.push(row, context)
}
