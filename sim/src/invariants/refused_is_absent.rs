//! A refused event is not in the log and never will be.

use super::{Invariant, News, World};
use crate::clients::Want;
use crate::facts::AttemptId;
use std::collections::{BTreeMap, BTreeSet};
use wellspring_log::AppendError;
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct RefusedIsAbsent {
    refused: BTreeMap<AttemptId, String>,
    there: BTreeSet<AttemptId>,
}

impl RefusedIsAbsent {
    fn broken(attempt: AttemptId, error: &str, at: Option<Position>) -> String {
        format!("attempt {attempt} was refused ({error}) and is there, at {at:?}")
    }
}

impl Invariant for RefusedIsAbsent {
    fn name(&self) -> &'static str {
        "what was refused is never there"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        // All attempts of a request with ids have the same bytes: a refused one may be present
        // through another.
        let with_ids = |attempt: &AttemptId| {
            world.clients.ops[world.clients.attempts[*attempt].op as usize].want == Want::WithIds
        };
        match news {
            News::Seen { fact, .. } => {
                self.there.insert(fact.attempt);
                match self.refused.get(&fact.attempt) {
                    Some(error) => {
                        Err(RefusedIsAbsent::broken(fact.attempt, error, Some(fact.position)))
                    }
                    None => Ok(()),
                }
            }
            News::Answered { answer: Err(AppendError::Unknown { .. }), .. } => Ok(()),
            News::Answered { attempt, .. } if with_ids(attempt) => Ok(()),
            News::Answered { attempt, answer: Err(error), .. } => {
                let error = error.to_string();
                if self.there.contains(attempt) {
                    return Err(RefusedIsAbsent::broken(*attempt, &error, None));
                }
                self.refused.insert(*attempt, error);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
