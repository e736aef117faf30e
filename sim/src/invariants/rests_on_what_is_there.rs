//! An event decided on top of a staged append exists only if that append does too, before it.

use super::{Invariant, News, World};
use crate::clients::Want;
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct RestsOnWhatIsThere {
    bases: BTreeSet<String>,
}

impl Invariant for RestsOnWhatIsThere {
    fn name(&self) -> &'static str {
        "what rests on something has it before itself"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        let News::Seen { fact, .. } = news else { return Ok(()) };
        match &world.clients.ops[fact.op as usize].want {
            Want::Base(tag) => {
                self.bases.insert(tag.clone());
                Ok(())
            }
            Want::Resting(tag) if !self.bases.contains(tag) => {
                Err(format!("what rests on {tag} is at {}, and {tag} is not there", fact.position))
            }
            _ => Ok(()),
        }
    }
}
