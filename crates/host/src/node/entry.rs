//! A log of the process with what stands in front of it and what is folded from it.

use super::account::IngestAccount;
use super::views::LogViews;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wellspring_log::Log;
use wellspring_log::batcher::Batcher;

/// How long a log that is closed may take to store what was accepted for it.
pub(super) const CLOSE_PATIENCE: Duration = Duration::from_secs(8);
/// The same of a log that is dropped: what was accepted for it goes with it.
pub(super) const DROP_PATIENCE: Duration = Duration::from_millis(100);

/// A log and, once something was taken in for it, its batcher.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) log: Log,
    /// Which of the logs that had its name one after the other it is.
    pub(super) incarnation: u64,
    pub(super) batching: Arc<Mutex<Batching>>,
    /// The views folded from it.
    pub(super) views: Arc<LogViews>,
}

/// What a log has of a batcher.
#[derive(Default)]
pub(super) enum Batching {
    /// None yet.
    #[default]
    Idle,
    /// This one.
    Started(Batcher),
    /// None any more. What it had is there for its figures.
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

    /// Stores what was accepted, then closes the log. Tells how many accepted events are lost.
    pub(super) fn close(&self, name: &str, patience: Duration) -> u64 {
        let mut batching = self.batching.lock().unwrap_or_else(PoisonError::into_inner);
        let batcher = batching.batcher().cloned();
        *batching = Batching::Closed(batcher.clone());
        drop(batching);
        let mut events_lost = 0;
        if let Some(batcher) = batcher {
            // A journal that several nodes share may be away for long.
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
