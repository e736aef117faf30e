//! What a node has told the engine to be durable outlives its process: the engine drops the entries
//! that it was made of.

use super::{Invariant, News, World};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct DurableStays {
    /// The last process of a node that was looked at, and whether its copy was rotten.
    looked: BTreeMap<usize, (u64, bool)>,
}

impl Invariant for DurableStays {
    fn name(&self) -> &'static str {
        "what a copy holds durably stays"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        let News::Stands { node, life, head, .. } = news else { return Ok(()) };
        let is_rotten = world.nodes[*node].rotten;
        let before = self.looked.insert(*node, (*life, is_rotten));
        if is_rotten || before.is_some_and(|(looked, was_rotten)| looked == *life || was_rotten) {
            return Ok(());
        }
        match world.engine.durable_head(*node) {
            Some(durable) if *head < durable => {
                Err(format!("n{node} opens at {head}, and {durable} was durable"))
            }
            _ => Ok(()),
        }
    }
}
