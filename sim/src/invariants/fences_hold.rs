//! Once an event was appended under a lease, no event appended under an earlier grant follows.

use super::{Invariant, News, World};
use std::collections::BTreeMap;
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct FencesHold {
    /// By lease: the last position and its token.
    last: BTreeMap<String, (Position, u64)>,
}

impl Invariant for FencesHold {
    fn name(&self) -> &'static str {
        "fencing tokens only grow"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        let News::Seen { fact, .. } = news else { return Ok(()) };
        let Some((lease, grant)) = &fact.grant else { return Ok(()) };
        let token = world.clients.tokens[*grant as usize];
        match self.last.get(lease) {
            Some((position, _)) if fact.position <= *position => return Ok(()),
            Some((position, before)) if *before > token => {
                let at = fact.position;
                // Tokens are random, so only their epochs are reported.
                let epochs = (before >> 32, token >> 32);
                return Err(format!(
                    "{lease}: the token at {at} is older than at {position}: {epochs:?}"
                ));
            }
            _ => {}
        }
        self.last.insert(lease.clone(), (fact.position, token));
        Ok(())
    }
}
