//! After a restart: which events an append has settled that the checkpoints do not know of.

use super::open::OpenConsumer;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use wellspring_consumers::Recovery;
use wellspring_log::{ReadError, RecordView, SERVER_KEYS, Snapshot, Work};
use wellspring_types::Position;

/// The part of the log in which settlements are looked for. Clones share what they have found: a
/// run may begin where its key is looked up, and end behind where the log was scanned.
#[derive(Clone, Default)]
pub(super) struct SettledSince {
    search: Option<Arc<Search>>,
}

/// It does not hold the consumer, whose scanner holds it.
struct Search {
    generation: u64,
    recovery: Recovery,
    snapshot: Snapshot,
    /// By key: the last run that was found, from its first event to its last.
    runs: Mutex<HashMap<Box<str>, RangeInclusive<Position>>>,
}

impl SettledSince {
    /// Searches on as long as the consumer recovers.
    pub(super) fn begin(
        &mut self,
        consumer: &OpenConsumer,
        generation: u64,
        recovery: Option<Recovery>,
    ) {
        let Some(recovery) = recovery else {
            self.search = None;
            return;
        };
        let goes_on = self
            .search
            .as_ref()
            .is_some_and(|search| (search.generation, search.recovery) == (generation, recovery));
        if !goes_on {
            let snapshot = consumer.log.snapshot().up_to(recovery.up_to);
            let runs = Mutex::default();
            self.search = Some(Arc::new(Search { generation, recovery, snapshot, runs }));
        }
    }

    /// Whether an event of the consumer is settled. Of a key, events come in order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(super) fn has(
        &self,
        consumer: &OpenConsumer,
        record: &RecordView<'_>,
        keys: &[Box<str>],
    ) -> Result<bool, ReadError> {
        let Some(search) = &self.search else { return Ok(false) };
        let position = record.position();
        if position > search.recovery.up_to {
            return Ok(false);
        }
        let runs = || search.runs.lock().unwrap_or_else(PoisonError::into_inner);
        // A delivery of several events has events of one key alone.
        if let [key] = keys
            && runs().get(key).is_some_and(|run| run.contains(&position))
        {
            return Ok(true);
        }
        let key = request_key(&consumer.effect_key(search.generation, record));
        let mut work = Work::unbounded();
        let after = search.recovery.after;
        let found = search.snapshot.request_with_key_after(&key, after, &mut work)?;
        let Some(found) = found else { return Ok(false) };
        let run = position..=settled_up_to(&found.digest);
        if let [key] = keys
            && run.end() > run.start()
        {
            runs().insert(key.clone(), run);
        }
        Ok(true)
    }
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
