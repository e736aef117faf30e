//! All events of a request exist, next to each other, or none; and no head lies within a request.

use super::{Invariant, News, World};
use crate::facts::Fact;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct WholeRequests {
    /// The last event that each process of a node has shown.
    last: BTreeMap<usize, Fact>,
}

impl Invariant for WholeRequests {
    fn name(&self) -> &'static str {
        "whole requests only"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        match news {
            News::Seen { node, fact } => {
                let before = if fact.position == 1 { None } else { self.last.get(node) };
                let follows = match before {
                    Some(before) if before.index + 1 < before.of => {
                        fact.attempt == before.attempt && fact.index == before.index + 1
                    }
                    _ => fact.index == 0,
                };
                let what = format!("n{node}: {fact:?} follows {before:?}");
                self.last.insert(*node, fact.clone());
                if follows { Ok(()) } else { Err(what) }
            }
            News::Stands { node, head, .. } if *head > 0 => {
                // Its content was reported earlier, in the previous step if nothing is new.
                let learned = world.nodes[*node].learned;
                match self.last.get(node).filter(|last| last.position == learned) {
                    Some(last) if last.position == *head && last.index + 1 < last.of => {
                        Err(format!("n{node}: the head is {head}, within a request: {last:?}"))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
