//! After a restart: which events an append has settled that the checkpoints do not know of.

use super::open::OpenConsumer;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_consumers::Recovery;
use wellspring_log::{ReadError, RecordView, SERVER_KEYS, Snapshot, Work};
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
/// No client can have such a key.
pub(super) fn request_key(effect_key: &str) -> String {
    format!("{SERVER_KEYS}settled/{effect_key}")
}

/// The last position that an append settles, from the digest of its request: eight bytes of it,
/// before eight of the content.
pub(super) fn settled_up_to(digest: &[u8; 16]) -> Position {
    Position::from_le_bytes(digest[..8].try_into().expect("eight bytes"))
}

/// The digest of a request that settles events up to a position, with a hash of its content.
pub(super) fn settling_digest(up_to: Position, content: &[u8; 16]) -> [u8; 16] {
    let mut digest = *content;
    digest[..8].copy_from_slice(&up_to.to_le_bytes());
    digest
}

/// Whether a request with this digest has this content.
pub(super) fn has_content(digest: &[u8; 16], content: &[u8; 16]) -> bool {
    digest[8..] == content[8..]
}
