//! The ends of chains of variable length, each once, by breadth-first search: a shortest chain to
//! a node repeats no relationship, so every node that is reached is the end of a valid one.

use std::collections::HashMap;

use super::expand::is_taken;
use super::pipeline::{Flow, Next, set};
use super::variable::Steps;
use crate::context::Context;
use crate::error::Result;
use crate::ir::Direction;
use crate::plan::ExpandVariable;
use crate::value::{NodeId, RelationshipId, Value};

/// Bytes charged for a node that was reached.
const REACHED_BYTES: u64 = 64;

/// A search for the ends of chains.
pub(super) struct Ends<'e> {
    pub(super) expand: &'e ExpandVariable,
    pub(super) steps: &'e Steps,
    pub(super) start: NodeId,
    /// The only end of interest, if it is bound.
    pub(super) target: Option<NodeId>,
}

/// How a node was reached: in so many steps, of which the first was this relationship.
#[derive(Clone, Copy)]
struct ReachedNode {
    level: u32,
    first: RelationshipId,
}

impl Ends<'_> {
    pub(super) fn reach(
        &self,
        row: &mut [Value],
        context: &mut Context<'_>,
        next: &mut Next<'_>,
    ) -> Result<Flow> {
        let mut reached = HashMap::new();
        let flow = self.search(&mut reached, row, context, next);
        context.budget.return_bytes(reached.len() as u64 * REACHED_BYTES);
        flow
    }

    fn search(
        &self,
        reached: &mut HashMap<NodeId, ReachedNode>,
        row: &mut [Value],
        context: &mut Context<'_>,
        next: &mut Next<'_>,
    ) -> Result<Flow> {
        let connection = &self.expand.connection;
        let most = self.expand.length.to.unwrap_or(u32::MAX);
        let mut start_given = self.expand.length.from == 0;
        if start_given && self.give(self.start, row, context, next)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        let (mut level, mut frontier) = (0, vec![self.start]);
        while !frontier.is_empty() && level < most {
            let mut further = Vec::new();
            for at in frontier {
                for adjacent in self.steps.from(at, context)? {
                    context.budget.charge_steps(1)?;
                    let (id, other) = (adjacent.relationship, adjacent.other);
                    if is_taken(id, &connection.unlike, row) {
                        continue;
                    }
                    if !start_given
                        && self.cycle(reached, at, id, other, level).is_some_and(|it| it <= most)
                    {
                        start_given = true;
                        if self.give(self.start, row, context, next)? == Flow::Stop {
                            return Ok(Flow::Stop);
                        }
                    }
                    if other == self.start || reached.contains_key(&other) {
                        continue;
                    }
                    context.budget.charge_bytes(REACHED_BYTES)?;
                    let first = reached.get(&at).map_or(id, |it| it.first);
                    reached.insert(other, ReachedNode { level: level + 1, first });
                    if self.give(other, row, context, next)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                    further.push(other);
                }
            }
            if self.target.is_some_and(|it| it != self.start && reached.contains_key(&it)) {
                break;
            }
            (frontier, level) = (further, level + 1);
        }
        Ok(Flow::Continue)
    }

    /// The length of a chain from the start back to it that a step closes. Without a direction,
    /// two ways that begin with different relationships must meet.
    fn cycle(
        &self,
        reached: &HashMap<NodeId, ReachedNode>,
        at: NodeId,
        id: RelationshipId,
        other: NodeId,
        level: u32,
    ) -> Option<u32> {
        if self.expand.connection.direction != Direction::Either {
            return (other == self.start).then_some(level + 1);
        }
        let first = reached.get(&at).map(|it| it.first);
        if other == self.start {
            // A loop, or a second relationship to a neighbour.
            return (at == self.start || first != Some(id)).then_some(level + 1);
        }
        let behind = reached.get(&other)?;
        // From the start itself: a second relationship to a neighbour.
        let first = first.unwrap_or(id);
        (behind.first != first).then(|| level + 1 + behind.level)
    }

    fn give(
        &self,
        end: NodeId,
        row: &mut [Value],
        context: &mut Context<'_>,
        next: &mut Next<'_>,
    ) -> Result<Flow> {
        if self.target.is_some_and(|target| target != end) {
            return Ok(Flow::Continue);
        }
        set(row, self.expand.connection.to, Value::Node(end));
        next.push(row, context)
    }
}
