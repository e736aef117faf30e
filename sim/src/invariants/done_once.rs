//! A request with a key or ids is in the log at most once, however often it is sent, and its retry
//! is never mistaken for another request.

use super::{Invariant, News, World};
use crate::clients::Want;
use crate::facts::OpId;
use std::collections::BTreeMap;
use wellspring_log::AppendError;
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct DoneOnce {
    /// The first position of each operation.
    done: BTreeMap<OpId, Position>,
}

impl Invariant for DoneOnce {
    fn name(&self) -> &'static str {
        "a request that is sent again is done once"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        match news {
            News::Seen { fact, .. } => {
                let at = fact.position - fact.index;
                match self.done.insert(fact.op, at) {
                    Some(other) if other != at => {
                        let want = &world.clients.ops[fact.op as usize].want;
                        Err(format!("{want:?} is there at {other} and at {at}"))
                    }
                    _ => Ok(()),
                }
            }
            News::Answered { attempt, answer: Err(error), .. } => {
                let want = &world.clients.ops[world.clients.attempts[*attempt].op as usize].want;
                match error {
                    AppendError::KeyReused { .. } | AppendError::IdReused { .. } => {
                        Err(format!("attempt {attempt} at {want:?}: {error}"))
                    }
                    AppendError::Conflict(_)
                        if matches!(want, Want::Keyed(_) | Want::WithIds | Want::Plain) =>
                    {
                        Err(format!("attempt {attempt} at {want:?} has no condition: {error}"))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
