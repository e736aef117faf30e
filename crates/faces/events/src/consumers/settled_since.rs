//! After a restart: which events an append has settled that the checkpoints do not know of.

use super::open::OpenConsumer;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_consumers::{Recovery, SettledRun};
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
    /// By key: the runs that were found, from their first events to their last.
    runs: Mutex<HashMap<Box<str>, BTreeMap<Position, Position>>>,
}

impl Search {
    fn runs(&self) -> MutexGuard<'_, HashMap<Box<str>, BTreeMap<Position, Position>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SettledSince {
    /// Searches on as long as the consumer recovers. Runs within what was scanned are forgotten: a
    /// look-up begins before one or behind it.
    pub(super) fn begin(
        &mut self,
        consumer: &OpenConsumer,
        generation: u64,
        recovery: Option<Recovery>,
        scanned: Position,
    ) {
        let Some(recovery) = recovery else {
            self.search = None;
            return;
        };
        let known = self
            .search
            .as_ref()
            .filter(|search| (search.generation, search.recovery) == (generation, recovery));
        if let Some(search) = known {
            search.runs().retain(|_, runs| {
                runs.retain(|_, last| *last > scanned);
                !runs.is_empty()
            });
        } else {
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
        // A delivery of several events has events of one key alone.
        if let [key] = keys
            && let Some(runs) = search.runs().get(key)
            && let Some((_, last)) = runs.range(..=position).next_back()
            && position <= *last
        {
            return Ok(true);
        }
        let key = request_key(&consumer.effect_key(search.generation, record));
        let mut work = Work::unbounded();
        let after = search.recovery.after;
        let found = search.snapshot.request_with_key_after(&key, after, &mut work)?;
        let Some(found) = found else { return Ok(false) };
        let last = settled_up_to(&found.digest);
        if let [key] = keys
            && last > position
        {
            search.runs().entry(key.clone()).or_default().insert(position, last);
        }
        Ok(true)
    }

    /// The runs that were found and may end behind what was scanned.
    pub(super) fn runs(&self) -> Vec<SettledRun> {
        let mut found = Vec::new();
        if let Some(search) = &self.search {
            for (key, runs) in &*search.runs() {
                let run = |(&first, &last)| SettledRun { key: key.clone(), first, last };
                found.extend(runs.iter().map(run));
            }
        }
        found
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
