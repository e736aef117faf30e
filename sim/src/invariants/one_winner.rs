//! Of events that must be unique, one exists; and every reported conflict was preceded by a winner.

use super::{Invariant, News, World};
use crate::clients::Want;
use std::collections::BTreeMap;
use wellspring_log::AppendError;
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct OneWinner {
    winners: BTreeMap<String, Position>,
    /// The reported winners, and the nodes that reported them.
    told: Vec<(String, Position, usize)>,
}

impl Invariant for OneWinner {
    fn name(&self) -> &'static str {
        "one winner a key"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        match news {
            News::Seen { fact, .. } => {
                let Some(key) = &fact.unique else { return Ok(()) };
                match self.winners.insert(key.clone(), fact.position) {
                    Some(other) if other != fact.position => {
                        Err(format!("{key} is at {other} and at {}", fact.position))
                    }
                    _ => Ok(()),
                }
            }
            News::Answered {
                attempt, answer: Err(AppendError::Conflict(conflict)), head, ..
            } => {
                if conflict.position > *head {
                    let at = conflict.position;
                    return Err(format!("attempt {attempt} lost to {at}, beyond the head {head}"));
                }
                let op = world.clients.attempts[*attempt].op as usize;
                if let Want::Unique(key) = &world.clients.ops[op].want {
                    self.told.push((key.clone(), conflict.position, *attempt));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn at_the_end(&mut self, _: &World) -> Result<(), String> {
        let wrong = |(key, position, _): &&(String, Position, usize)| {
            self.winners.get(key) != Some(position)
        };
        match self.told.iter().find(wrong) {
            Some((key, position, attempt)) => {
                let won = self.winners.get(key);
                Err(format!("attempt {attempt} lost {key} to {position}; it is at {won:?}"))
            }
            None => Ok(()),
        }
    }
}
