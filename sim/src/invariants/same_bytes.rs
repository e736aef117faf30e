//! At the same position, every node always shows the same bytes.

use super::{Invariant, News, World};
use crate::facts::Fact;

#[derive(Default)]
pub(super) struct SameBytes {
    /// By position, from 1.
    truth: Vec<(usize, Fact)>,
}

impl Invariant for SameBytes {
    fn name(&self) -> &'static str {
        "the same bytes at the same position"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        let News::Seen { node, fact } = news else { return Ok(()) };
        match self.truth.get(fact.position as usize - 1) {
            None if fact.position as usize == self.truth.len() + 1 => {
                self.truth.push((*node, fact.clone()));
                Ok(())
            }
            None => Err(format!("n{node} shows {}, and nobody what is before", fact.position)),
            Some((_, seen)) if seen == fact => Ok(()),
            Some((first, seen)) => Err(format!("n{first} showed {seen:?}, n{node} shows {fact:?}")),
        }
    }
}
