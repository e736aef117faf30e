//! A confirmed read shows everything that was reported durable to any client before the read
//! started.

use super::{Invariant, News, World};

#[derive(Default)]
pub(super) struct FreshEnd;

impl Invariant for FreshEnd {
    fn name(&self) -> &'static str {
        "a confirmed read is fresh"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        let News::Confirmed { node, floor, answer: Ok(head) } = news else { return Ok(()) };
        if head < floor {
            return Err(format!("n{node} confirmed {head}; {floor} was durable when it was asked"));
        }
        let shown = world.nodes[*node].log.as_ref().map_or(0, |log| log.head());
        if shown < *head {
            return Err(format!("n{node} confirmed {head} and shows {shown}"));
        }
        Ok(())
    }
}
