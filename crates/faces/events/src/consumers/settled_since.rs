//! After a restart: which events an append has settled that the checkpoints do not know of.

use super::open::OpenConsumer;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_consumers::Recovery;
use wellspring_log::{ReadError, RecordView, Snapshot, Work};
use wellspring_types::Position;

/// Events that one append has settled, the last one known of each key: from the first position to
/// the last. A delivery of several events has events of one key alone, all of that key in between.
pub(super) type SettledRuns = HashMap<Box<str>, RangeInclusive<Position>>;

/// The part of the log in which settlements are looked for; none: there are no more.
pub(super) struct SettledSince {
    search: Option<Search>,
}

struct Search {
    consumer: Arc<OpenConsumer>,
    generation: u64,
    recovery: Recovery,
    snapshot: Snapshot,
}

impl SettledSince {
    /// For reads of a consumer, as long as it recovers.
    pub(super) fn of(
        consumer: &Arc<OpenConsumer>,
        generation: u64,
        recovery: Option<Recovery>,
    ) -> SettledSince {
        if recovery.is_none() {
            *lock(&consumer.settled_runs) = SettledRuns::new();
        }
        let search = recovery.map(|recovery| {
            let snapshot = consumer.log.snapshot().up_to(recovery.up_to);
            Search { consumer: Arc::clone(consumer), generation, recovery, snapshot }
        });
        SettledSince { search }
    }

    /// Whether an event of a consumer is settled. Of a key, events come in order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(super) fn has(
        &self,
        record: &RecordView<'_>,
        keys: &[Box<str>],
    ) -> Result<bool, ReadError> {
        let Some(search) = &self.search else { return Ok(false) };
        let position = record.position();
        if position > search.recovery.up_to {
            return Ok(false);
        }
        if let [key] = keys
            && search.runs().get(key).is_some_and(|run| run.contains(&position))
        {
            return Ok(true);
        }
        let key = request_key(&search.consumer.effect_key(search.generation, record));
        let mut work = Work::unbounded();
        let after = search.recovery.after;
        let found = search.snapshot.request_with_key_after(&key, after, &mut work)?;
        let Some(found) = found else { return Ok(false) };
        if let [key] = keys {
            search.runs().insert(key.clone(), position..=settled_up_to(&found.digest));
        }
        Ok(true)
    }
}

impl Search {
    /// What is known of all reads: one that was given up half-way does not begin anew.
    fn runs(&self) -> MutexGuard<'_, SettledRuns> {
        lock(&self.consumer.settled_runs)
    }
}

fn lock(runs: &Mutex<SettledRuns>) -> MutexGuard<'_, SettledRuns> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The request key of the append that settles the delivery whose first event has this effect key.
/// The control character keeps it apart from keys of clients, which are headers.
pub(crate) fn request_key(effect_key: &str) -> String {
    format!("\u{1}{effect_key}")
}

/// The last position that an append settles, from the digest of its request: eight bytes of it,
/// before eight of the content.
fn settled_up_to(digest: &[u8; 16]) -> Position {
    Position::from_le_bytes(digest[..8].try_into().expect("eight bytes"))
}

/// The digest of a request that settles events up to a position, with a hash of its content.
pub(crate) fn settling_digest(up_to: Position, content: &[u8; 16]) -> [u8; 16] {
    let mut digest = *content;
    digest[..8].copy_from_slice(&up_to.to_le_bytes());
    digest
}
