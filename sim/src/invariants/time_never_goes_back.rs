//! Along positions, recording times never decrease, whatever the clocks do.

use super::{Invariant, News, World};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct TimeNeverGoesBack {
    /// Time of the event last shown by each node.
    last: BTreeMap<usize, u64>,
}

impl Invariant for TimeNeverGoesBack {
    fn name(&self) -> &'static str {
        "times never go back"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        let News::Seen { node, fact } = news else { return Ok(()) };
        let before = self.last.insert(*node, fact.recorded_at_us).filter(|_| fact.position > 1);
        match before {
            Some(before) if before > fact.recorded_at_us => {
                let (at, now) = (fact.position, fact.recorded_at_us);
                Err(format!("the event at {at} was recorded at {now}, the one before at {before}"))
            }
            _ => Ok(()),
        }
    }
}
