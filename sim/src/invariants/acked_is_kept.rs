//! Everything acknowledged as durable is at its reported position in the shared log's order, and
//! stays there.

use super::{Invariant, News, World};
use crate::clients::Want;
use crate::facts::{AttemptId, OpId};
use std::collections::BTreeMap;
use wellspring_log::Appended;
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct AckedIsKept {
    /// The content of each position.
    there: Vec<(OpId, AttemptId, u64)>,
    acked: BTreeMap<Position, (AttemptId, Appended)>,
}

impl AckedIsKept {
    fn check(&self, attempt: AttemptId, done: &Appended, world: &World) -> Result<(), String> {
        let op = world.clients.attempts[attempt].op;
        // All attempts of a request with ids have the same bytes.
        let any = done.replayed || world.clients.ops[op as usize].want == Want::WithIds;
        for position in done.first..=done.last {
            let expected = position - done.first;
            match self.there.get(position as usize - 1) {
                Some((seen_op, seen, index))
                    if *seen_op == op && *index == expected && (any || *seen == attempt) => {}
                seen => {
                    let what = format!("attempt {attempt} was told {done:?}, but {position} holds");
                    return Err(format!("{what} {seen:?}"));
                }
            }
        }
        Ok(())
    }
}

impl Invariant for AckedIsKept {
    fn name(&self) -> &'static str {
        "what was acknowledged is there and stays"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        match news {
            News::Seen { fact, .. } => {
                if fact.position as usize == self.there.len() + 1 {
                    self.there.push((fact.op, fact.attempt, fact.index));
                }
                Ok(())
            }
            News::Answered { node, attempt, answer: Ok(done), head } => {
                let op = &world.clients.ops[world.clients.attempts[*attempt].op as usize];
                if op.want == Want::Accepted {
                    return Ok(());
                }
                if *head < done.last {
                    let last = done.last;
                    return Err(format!("n{node} acknowledged {last}, but shows {head} only"));
                }
                self.acked.insert(done.last, (*attempt, *done));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn at_the_end(&mut self, world: &World) -> Result<(), String> {
        for (attempt, done) in self.acked.values() {
            self.check(*attempt, done, world)?;
        }
        let shows = |node: &crate::node::Node| node.log.as_ref().map_or(0, |log| log.head());
        let last = self.acked.keys().next_back().copied().unwrap_or(0);
        match world.nodes.iter().find(|node| shows(node) < last) {
            Some(node) => {
                Err(format!("n{} shows {}, {last} was acknowledged", node.id, shows(node)))
            }
            None => Ok(()),
        }
    }
}
