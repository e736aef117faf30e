//! Everything answered when staged is either stored or counted as dropped.

use super::{Invariant, News, World};

#[derive(Default)]
pub(super) struct AcceptedAddUp;

impl Invariant for AcceptedAddUp {
    fn name(&self) -> &'static str {
        "what was accepted adds up"
    }

    fn hear(&mut self, _: &News, _: &World) -> Result<(), String> {
        Ok(())
    }

    fn when_well(&mut self, world: &World) -> Result<(), String> {
        for node in &world.nodes {
            let Some(log) = &node.log else { continue };
            let stats = log.accepted_stats();
            let (accepted, stored) = (stats.accepted.events, stats.stored.events);
            if accepted != stored + stats.dropped.events {
                return Err(format!("n{}: {stats:?}", node.id));
            }
        }
        Ok(())
    }
}
