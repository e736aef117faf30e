//! A live process answers definitely: appended, or not. "Unknown" is allowed only for dying
//! processes, and where the engine has stopped.

use super::{Invariant, News, World};
use crate::node::Running;
use wellspring_log::AppendError;

#[derive(Default)]
pub(super) struct Definite;

impl Invariant for Definite {
    fn name(&self) -> &'static str {
        "a living node answers definitely"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        match news {
            News::Unanswered { node, what } => {
                Err(format!("n{node} was shut down and left {what}"))
            }
            // A process that is ending leaves its pending operations in doubt and accepts no new
            // ones.
            News::Answered { node, .. }
                if world.nodes[*node].running == Running::Leaving
                    || world.engine.has_stopped(*node) =>
            {
                Ok(())
            }
            News::Answered {
                node,
                attempt,
                answer: Err(error @ (AppendError::Unknown { .. } | AppendError::Closed { .. })),
                ..
            } => Err(format!("n{node}: attempt {attempt}: {error}")),
            _ => Ok(()),
        }
    }
}
