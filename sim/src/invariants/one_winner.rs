//! Of what may be there once, one is there: the first. Whoever was told of a conflict had a winner before.

use super::{Invariant, News, World};
use std::collections::BTreeMap;
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct OneWinner {
    winners: BTreeMap<String, Position>,
}

impl Invariant for OneWinner {
    fn name(&self) -> &'static str {
        "one winner a key"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        let News::Seen { fact, .. } = news else { return Ok(()) };
        let Some(key) = &fact.unique else { return Ok(()) };
        match self.winners.insert(key.clone(), fact.position) {
            Some(other) if other != fact.position => {
                Err(format!("{key} is at {other} and at {}", fact.position))
            }
            _ => Ok(()),
        }
    }
}
