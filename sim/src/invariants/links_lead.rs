//! A link that was reported as created leads somewhere on every node that has its event, and at the
//! same position the views of all nodes are equal.

use super::{Invariant, News, World};
use crate::clients::Want;
use std::collections::BTreeMap;
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct LinksLead {
    told: BTreeMap<String, Position>,
    folded: BTreeMap<Position, (usize, u64)>,
}

impl Invariant for LinksLead {
    fn name(&self) -> &'static str {
        "links lead where they should, on every node alike"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        match news {
            News::Answered { attempt, answer: Ok(done), .. } => {
                let op = world.clients.attempts[*attempt].op as usize;
                let Want::Link(alias) = &world.clients.ops[op].want else { return Ok(()) };
                match self.told.insert(alias.clone(), done.last) {
                    Some(other) => Err(format!("{alias} was made at {other} and at {}", done.last)),
                    None => Ok(()),
                }
            }
            News::Followed { node, alias, led: false, folded } => match self.told.get(alias) {
                Some(made) if made <= folded => Err(format!(
                    "n{node}: {alias} was made at {made} and leads nowhere at {folded}"
                )),
                _ => Ok(()),
            },
            News::Folded { node, position, hash } => {
                let (first, of) = *self.folded.entry(*position).or_insert((*node, *hash));
                if of == *hash {
                    return Ok(());
                }
                Err(format!("at {position} the views of n{first} and n{node} differ"))
            }
            _ => Ok(()),
        }
    }
}
