//! Within a process, its head, its place and its known epochs only grow.

use super::{Invariant, News, World};
use std::collections::BTreeMap;
use wellspring_log::Role;

#[derive(Default)]
pub(super) struct OnlyGrows {
    /// By node: process, head, place, epoch.
    last: BTreeMap<usize, (u64, u64, u64, u64)>,
}

impl Invariant for OnlyGrows {
    fn name(&self) -> &'static str {
        "head, place and epoch only grow"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        let News::Stands { node, life, role, head, place } = news else { return Ok(()) };
        let epoch = match role {
            Role::Leading { epoch } => Some(*epoch),
            Role::Following { leader: Some(leader) } => Some(leader.epoch),
            _ => None,
        };
        let last = self.last.get(node).filter(|(of, ..)| of == life).copied();
        let (_, last_head, last_place, last_epoch) = last.unwrap_or((*life, 0, 0, 0));
        let now = (*life, *head, *place, epoch.unwrap_or(last_epoch));
        self.last.insert(*node, now);
        if *head < last_head || *place < last_place || now.3 < last_epoch {
            return Err(format!(
                "n{node} went from {last:?} to {now:?} (process, head, place, epoch)"
            ));
        }
        Ok(())
    }
}
