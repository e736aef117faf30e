//! As long as the shared log keeps its promise, no node ever finds a different history.

use super::{Invariant, News, World};
use wellspring_log::Role;

#[derive(Default)]
pub(super) struct SamePast;

impl Invariant for SamePast {
    fn name(&self) -> &'static str {
        "no node is detached"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        match news {
            News::Stands { node, role: Role::Detached { reason }, .. }
                if !world.engine.has_stopped(*node) =>
            {
                Err(format!("n{node}: {reason}"))
            }
            _ => Ok(()),
        }
    }
}
