//! The way into the system log: through its batcher, accepted and never waited for.

use crate::access::SYSTEM_LOG;
use crate::node::Node;
use std::sync::{Mutex, PoisonError};
use wellspring_log::batcher::{EventTemplate, Producer, PushError};
use wellspring_types::DataKind;

/// Behind whatever a serving thread hands in.
const ORDER: u8 = 2;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is stored soon.
    Accepted,
    /// There is no room for it, or the log takes nothing.
    Shed,
}

/// The way there. One for all threads, so that entries stand in one order.
#[derive(Default)]
pub(super) struct Trail(Mutex<Option<Producer>>);

impl Trail {
    /// Hands an event in. Held up by others that do the same, for the time of a copy; never by the disk.
    pub(super) fn keep(&self, node: &Node, event_type: &str, tags: &[String], data: &[u8]) -> Kept {
        let Ok(template) = EventTemplate::new(event_type, tags) else { return Kept::Shed };
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            // The first of them, which starts the batcher. One that takes nothing is given no more
            // producers: nobody would ever free what they hold.
            let batcher = node.batcher(SYSTEM_LOG).ok();
            let batcher = batcher.filter(|batcher| batcher.refusal().is_none());
            *slot = batcher.map(|batcher| batcher.producer(ORDER, None));
        }
        let Some(producer) = slot.as_mut() else { return Kept::Shed };
        match producer.try_push_events(&template, DataKind::Json, std::iter::once(data)) {
            Ok(_) => Kept::Accepted,
            Err(error) => {
                producer.count_shed(1, template.frame_bytes(data) as u64);
                if matches!(error, PushError::Closed { .. }) {
                    *slot = None;
                }
                Kept::Shed
            }
        }
    }
}
