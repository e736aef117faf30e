//! Existing logs that cannot be opened on this node: the disk is full, the folder holds something
//! else, no descriptors are left.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time between two attempts at one log.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The logs that cannot be opened here, or whose old copy cannot be removed.
#[derive(Debug, Default)]
pub(super) struct UnopenedLogs(Mutex<BTreeMap<String, UnopenedLog>>);

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct UnopenedLog {
    /// Its incarnation; `None` if it was dropped.
    pub(super) incarnation: Option<u64>,
    /// The cause.
    pub(super) reason: String,
    tried: Instant,
}

impl UnopenedLogs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, UnopenedLog>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an attempt is due.
    pub(super) fn is_to_be_tried(&self, name: &str) -> bool {
        self.lock().get(name).is_none_or(|log| log.tried.elapsed() >= TRY_AGAIN)
    }

    /// An attempt has failed.
    pub(super) fn failed(&self, name: &str, incarnation: Option<u64>, reason: String) {
        let mut logs = self.lock();
        if logs.get(name).is_none_or(|known| known.reason != reason) {
            tracing::warn!(log = name, "does not match the log system on this node: {reason}");
        }
        let log = UnopenedLog { incarnation, reason, tried: Instant::now() };
        logs.insert(name.to_owned(), log);
    }

    /// It is in its catalog state.
    pub(super) fn opened(&self, name: &str) {
        if self.lock().remove(name).is_some() {
            tracing::info!(log = name, "matches the log system on this node again");
        }
    }

    /// Existing logs that are not open, by name.
    pub(super) fn all(&self) -> Vec<(String, UnopenedLog)> {
        let logs = self.lock();
        let there = logs.iter().filter(|(_, log)| log.incarnation.is_some());
        there.map(|(name, log)| (name.clone(), log.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_open_is_told_until_it_does_and_not_tried_all_the_time() {
        let logs = UnopenedLogs::default();
        assert!(logs.is_to_be_tried("a"));
        logs.failed("a", Some(2), "no room".into());
        logs.failed("b", None, "in the way".into());
        assert!(!logs.is_to_be_tried("a"));
        let all: Vec<_> = logs.all().into_iter().map(|(name, log)| (name, log.reason)).collect();
        assert_eq!(all, [("a".to_owned(), "no room".to_owned())], "the other one was dropped");
        logs.opened("a");
        assert!(logs.is_to_be_tried("a") && logs.all().is_empty());
    }
}
