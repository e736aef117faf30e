//! The shortest chains between two nodes that satisfy a predicate, if the overall shortest ones do
//! not: tries every chain, shorter ones first.

use super::expand::is_taken;
use super::pipeline::{Flow, Next};
use super::shortest::{fits, leads};
use super::variable::{OpenLevels, Steps};
use crate::context::Context;
use crate::error::Result;
use crate::ir::Shortest;
use crate::plan::ShortestPath;
use crate::value::{NodeId, RelationshipId};

/// A search in progress.
pub(super) struct Search<'s> {
    pub(super) shortest: &'s ShortestPath,
    pub(super) steps: &'s Steps,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
}

/// The chains found for a length.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChainsFound {
    /// None, so there is no longer one either.
    Nothing,
    /// Some, but none satisfies the predicate.
    Chains,
    /// Some that satisfy the predicate.
    Sought,
}

impl Search<'_> {
    /// Passes on the shortest chains that are longer than this many steps and satisfy the
    /// conditions. The search restarts for every length, so it needs memory for a single chain
    /// only, and steps of the budget.
    pub(super) fn beyond(
        &self,
        length: u32,
        row: &mut [crate::value::Value],
        context: &mut Context<'_>,
        next: &mut Next<'_>,
    ) -> Result<Flow> {
        let most = self.shortest.length.to.unwrap_or(u32::MAX);
        for length in length.saturating_add(1)..=most {
            let (found, flow) = self.of_length(length as usize, row, context, next)?;
            if found != ChainsFound::Chains {
                return Ok(flow);
            }
        }
        Ok(Flow::Continue)
    }

    fn of_length(
        &self,
        length: usize,
        row: &mut [crate::value::Value],
        context: &mut Context<'_>,
        next: &mut Next<'_>,
    ) -> Result<(ChainsFound, Flow)> {
        let mut found = ChainsFound::Nothing;
        let mut chain: Vec<RelationshipId> = Vec::new();
        let mut nodes = vec![self.from];
        let mut open = OpenLevels::default();
        open.push(self.steps.from(self.from, context)?, context)?;
        while let Some(level) = open.last() {
            let Some(adjacent) = level.next() else {
                open.pop(context);
                chain.pop();
                nodes.pop();
                continue;
            };
            context.budget.charge_steps(1 + chain.len() as u64 / 16)?;
            let (id, end) = (adjacent.relationship, adjacent.other);
            let at = nodes.last().copied().unwrap_or(self.from);
            let unlike = &self.shortest.connection.unlike;
            if chain.contains(&id)
                || is_taken(id, unlike, row)
                || !leads(self.shortest, at, (id, end), row, context)?
            {
                continue;
            }
            chain.push(id);
            if chain.len() < length {
                nodes.push(end);
                open.push(self.steps.from(end, context)?, context)?;
                continue;
            }
            if found == ChainsFound::Nothing {
                found = ChainsFound::Chains;
            }
            if end == self.to && fits(self.shortest, &chain, row, context)? {
                found = ChainsFound::Sought;
                let flow = next.push(row, context)?;
                if flow == Flow::Stop || self.shortest.which == Shortest::One {
                    open.close(context);
                    return Ok((found, flow));
                }
            }
            chain.pop();
        }
        Ok((found, Flow::Continue))
    }
}
