//! Watches whether events accepted by a node of a cluster get stored: waiting clients must be told
//! within a bound when there is no leader, or the journal is unreachable.

use super::Node;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::batcher::StoreProgress;

/// Time between two checks.
const LOOK: Duration = Duration::from_millis(200);

/// The progress of each log's batcher, and since when it has stored nothing although it had
/// something to store.
#[derive(Debug, Default)]
pub(super) struct IngestWatch {
    seen: HashMap<String, UnstoredEvents>,
    looked: Option<Instant>,
}

/// Something waits to be stored.
#[derive(Debug, Clone, Copy)]
struct UnstoredEvents {
    stored: u64,
    since: Instant,
}

impl IngestWatch {
    /// Tells every batcher whether storing makes progress. `patience`: longest time without any.
    pub(super) fn look(&mut self, node: &Node, patience: Duration) {
        let now = Instant::now();
        if self.looked.is_some_and(|at| now - at < LOOK) {
            return;
        }
        self.looked = Some(now);
        let mut seen = HashMap::new();
        for (name, _) in node.all() {
            let Some(batcher) = node.started_batcher(&name) else { continue };
            let figures = batcher.figures();
            let (accepted, stored) = (figures.accepted.events, figures.stored.events);
            let before = self.seen.get(&name).copied();
            let (waits, progress) = judge(before, accepted, stored, now, patience);
            batcher.set_progress(progress);
            seen.extend(waits.map(|waits| (name, waits)));
        }
        self.seen = seen;
    }
}

/// What waits now, and whether storing makes progress.
fn judge(
    before: Option<UnstoredEvents>,
    accepted: u64,
    stored: u64,
    now: Instant,
    patience: Duration,
) -> (Option<UnstoredEvents>, StoreProgress) {
    if accepted <= stored {
        return (None, StoreProgress::Flowing);
    }
    let unmoved = before.filter(|before| before.stored == stored);
    let seen = unmoved.unwrap_or(UnstoredEvents { stored, since: now });
    let progress =
        if now - seen.since >= patience { StoreProgress::Stalled } else { StoreProgress::Flowing };
    (Some(seen), progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_stalled_while_something_waits_and_nothing_is_stored() {
        let begun = Instant::now();
        let mut seen = None;
        let mut look = |at_ms: u64, accepted: u64, stored: u64| {
            let (at, patience) = (begun + Duration::from_millis(at_ms), Duration::from_secs(1));
            let (now, progress) = judge(seen, accepted, stored, at, patience);
            seen = now;
            progress
        };
        assert_eq!(look(0, 0, 0), StoreProgress::Flowing);
        assert_eq!(look(5000, 0, 0), StoreProgress::Flowing, "there is nothing to store");
        assert_eq!(
            look(5200, 7, 0),
            StoreProgress::Flowing,
            "the wait begins where it is seen first"
        );
        assert_eq!(look(6100, 9, 0), StoreProgress::Flowing);
        assert_eq!(look(6200, 9, 0), StoreProgress::Stalled);
        assert_eq!(look(6300, 9, 1), StoreProgress::Flowing, "some of it is stored");
        assert_eq!(look(7300, 9, 1), StoreProgress::Stalled);
        assert_eq!(look(7400, 9, 9), StoreProgress::Flowing);
    }
}
