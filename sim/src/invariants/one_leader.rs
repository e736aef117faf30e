//! At most one process leads in an epoch, whatever the others believe.

use super::{Invariant, News, World};
use std::collections::BTreeMap;
use wellspring_log::Role;

#[derive(Default)]
pub(super) struct OneLeader {
    led: BTreeMap<u64, (usize, u64)>,
}

impl Invariant for OneLeader {
    fn name(&self) -> &'static str {
        "one leader an epoch"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        let News::Stands { node, life, role: Role::Leading { epoch }, .. } = news else {
            return Ok(());
        };
        let me = (*node, *life);
        match *self.led.entry(*epoch).or_insert(me) {
            leader if leader == me => Ok(()),
            leader => Err(format!("in epoch {epoch} lead {leader:?} and {me:?} (node, process)")),
        }
    }
}
