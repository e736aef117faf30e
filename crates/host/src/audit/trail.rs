//! The way of an entry into the system log: accepted by its batcher, without waiting for the disk.

use crate::names::SYSTEM_LOG;
use crate::node::Node;
use std::sync::{Mutex, PoisonError};
use wellspring_log::batcher::{EventTemplate, Producer, PushError};
use wellspring_types::DataKind;

/// The place among producers: after the intakes of serving threads.
const ORDER: u8 = 2;

/// The outcome of handing an event in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepOutcome {
    /// It will be stored soon.
    Accepted,
    /// There is no room for it, or the log refuses appends.
    Shed,
}

/// The producer of audit events. One for all threads, so that entries keep one order.
#[derive(Default)]
pub(super) struct Trail(Mutex<Option<Producer>>);

impl Trail {
    /// Hands an event in. Waits for other callers for the time of a copy; never for the disk.
    pub(super) fn keep(
        &self,
        node: &Node,
        event_type: &str,
        tags: &[String],
        data: &[u8],
    ) -> KeepOutcome {
        let Ok(template) = EventTemplate::new(event_type, tags) else { return KeepOutcome::Shed };
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            // The first event starts the batcher. A batcher that refuses events is given no more
            // producers: their memory would never be freed.
            let batcher = node.batcher(SYSTEM_LOG).ok();
            let batcher = batcher.filter(|batcher| batcher.refusal().is_none());
            *slot = batcher.map(|batcher| batcher.producer(ORDER, None));
        }
        let Some(producer) = slot.as_mut() else { return KeepOutcome::Shed };
        match producer.try_push_events(&template, DataKind::Json, std::iter::once(data)) {
            Ok(_) => KeepOutcome::Accepted,
            Err(error) => {
                producer.count_shed(1, template.frame_bytes(data) as u64);
                if matches!(error, PushError::Closed { .. }) {
                    *slot = None;
                }
                KeepOutcome::Shed
            }
        }
    }
}
