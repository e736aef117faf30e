//! Events of a graph's types without effect: any client may append them, and no other is told.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Those of a log, since its graph was opened.
#[derive(Debug, Default)]
pub(crate) struct VoidEvents {
    log: Box<str>,
    count: AtomicU64,
}

impl VoidEvents {
    /// None yet.
    pub(crate) fn of(log: &str) -> VoidEvents {
        VoidEvents { log: log.into(), count: AtomicU64::new(0) }
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Counts another one. The first is worth a warning; the others, of which a client may append
    /// any number, are not.
    pub(crate) fn add(&self, position: u64, why: &str) {
        let log = &*self.log;
        if self.count.fetch_add(1, Relaxed) == 0 {
            tracing::warn!(
                log,
                position,
                why,
                "an event has no effect on the graph; others like it are counted \
                 (wellspring_graph_void_events_total)"
            );
        } else {
            tracing::debug!(log, position, why, "an event has no effect on the graph");
        }
    }
}
