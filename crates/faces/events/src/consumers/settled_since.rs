//! After a restart: which events an append has settled that the checkpoints do not know of.

use super::open::OpenConsumer;
use std::collections::HashMap;
use std::sync::Arc;
use wellspring_consumers::Recovery;
use wellspring_log::{ReadError, RecordView, Snapshot, Work};
use wellspring_types::Position;

/// The part of the log in which settlements are looked for, and those that go on: an append
/// settles a delivery, which may have several events of a key.
#[derive(Default)]
pub(super) struct SettledSince {
    search: Option<Search>,
}

struct Search {
    consumer: Arc<OpenConsumer>,
    generation: u64,
    recovery: Recovery,
    snapshot: Snapshot,
    /// By key: everything up to here is settled.
    up_to: HashMap<Box<str>, Position>,
}

impl SettledSince {
    /// Searches on as long as the consumer recovers.
    pub(super) fn begin(
        &mut self,
        consumer: &Arc<OpenConsumer>,
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
            let consumer = Arc::clone(consumer);
            let snapshot = consumer.log.snapshot().up_to(recovery.up_to);
            let up_to = HashMap::new();
            self.search = Some(Search { consumer, generation, recovery, snapshot, up_to });
        }
    }

    /// Whether an event of a consumer is settled. Of a key, events come in order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(super) fn has(
        &mut self,
        record: &RecordView<'_>,
        keys: &[Box<str>],
    ) -> Result<bool, ReadError> {
        let Some(search) = &mut self.search else { return Ok(false) };
        let position = record.position();
        if position > search.recovery.up_to {
            return Ok(false);
        }
        // A delivery of several events has events of one key alone.
        if let [key] = keys
            && search.up_to.get(key).is_some_and(|up_to| position <= *up_to)
        {
            return Ok(true);
        }
        let key = request_key(&search.consumer.effect_key(search.generation, record));
        let mut work = Work::unbounded();
        let after = search.recovery.after;
        let found = search.snapshot.request_with_key_after(&key, after, &mut work)?;
        let Some(found) = found else { return Ok(false) };
        if let [key] = keys {
            search.up_to.insert(key.clone(), settled_up_to(&found.digest));
        }
        Ok(true)
    }
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
