//! An open log with its batcher and its views.

use super::account::IngestAccount;
use super::views::LogViews;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wellspring_log::Log;
use wellspring_log::batcher::Batcher;

/// How long closing a log may take to store its accepted events.
pub(super) const CLOSE_PATIENCE: Duration = Duration::from_secs(8);
/// The same for dropping a log, whose accepted events go with it.
pub(super) const DROP_PATIENCE: Duration = Duration::from_millis(100);

/// A log and, once events were ingested into it, its batcher.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) log: Log,
    pub(super) incarnation: u64,
    pub(super) batching: Arc<Mutex<Batching>>,
    pub(super) views: Arc<LogViews>,
}

/// The batcher of a log.
#[derive(Default)]
pub(super) enum Batching {
    /// None yet.
    #[default]
    Idle,
    Started(Batcher),
    /// Stopped. Its last figures remain.
    Closed(Option<Batcher>),
}

impl Batching {
    pub(super) fn batcher(&self) -> Option<&Batcher> {
        match self {
            Batching::Idle => None,
            Batching::Started(batcher) => Some(batcher),
            Batching::Closed(batcher) => batcher.as_ref(),
        }
    }
}

impl Entry {
    pub(super) fn account(&self) -> IngestAccount {
        let log = self.log.accepted_stats();
        let batching = self.batching.lock().unwrap_or_else(PoisonError::into_inner);
        IngestAccount::new(log, batching.batcher())
    }

    /// Stores the accepted events, then closes the log. Returns how many accepted events are lost.
    pub(super) fn close(&self, name: &str, patience: Duration) -> u64 {
        let mut batching = self.batching.lock().unwrap_or_else(PoisonError::into_inner);
        let batcher = batching.batcher().cloned();
        *batching = Batching::Closed(batcher.clone());
        drop(batching);
        let mut events_lost = 0;
        if let Some(batcher) = batcher {
            // A shared journal may be unreachable for long.
            let _ = batcher.close_within(patience);
            let lost = batcher.figures().lost_possible();
            events_lost = lost.events;
            if lost.events > 0 {
                tracing::error!(
                    log = name,
                    events = lost.events,
                    bytes = lost.bytes,
                    "accepted events could not be stored and are lost"
                );
            }
        }
        self.log.close();
        self.views.end().iter().for_each(|view| view.close());
        events_lost
    }
}
