//! The event that records how far a source has read a partition, stored in the log that receives
//! the records.

use super::origin::{Origin, SOURCE_ADVANCED};
use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use wellspring_log::{EncodedEvents, Log, Order, ReadError, TermCount, Work};
use wellspring_types::{AppendCondition, DataKind, EventRef, Position, Query};

/// Records that everything up to an offset of a partition is in the log or the reject log. Appended
/// together with the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceAdvanced {
    pub(super) source: String,
    pub(super) generation: u64,
    pub(super) cluster: String,
    pub(super) topic: String,
    pub(super) topic_id: String,
    pub(super) partition: i32,
    /// The last offset read, or one before the first offset to read if nothing was read; so -1 or
    /// more.
    pub(super) offset: i64,
    /// Records read since the previous such event.
    pub(super) records: u64,
}

impl SourceAdvanced {
    /// The event of a source that has read a partition up to an offset.
    pub(super) fn new(
        origin: &Origin,
        partition: i32,
        offset: i64,
        records: u64,
    ) -> SourceAdvanced {
        SourceAdvanced {
            source: origin.source.clone(),
            generation: origin.generation,
            cluster: origin.cluster.clone(),
            topic: origin.topic.clone(),
            topic_id: origin.topic_id.clone(),
            partition,
            offset,
            records,
        }
    }

    /// Adds it to an append with enough room.
    ///
    /// # Errors
    /// None if the tags are valid and there is room; otherwise why it is refused.
    pub(super) fn push(
        &self,
        origin: &Origin,
        events: &mut EncodedEvents,
    ) -> Result<(), wellspring_types::Invalid> {
        let data = serde_json::to_vec(self).expect("texts and numbers");
        events.push(&EventRef {
            event_type: SOURCE_ADVANCED,
            tags: &[origin.partition_tag(self.partition).as_str(), &origin.connector_tag],
            data: &data,
            kind: DataKind::Json,
            id: None,
            metadata: &[],
        })
    }
}

/// A cursor as found in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StoredAdvance {
    /// Position of the newest event that a condition would match; for none, before the log begins.
    /// Appends are conditioned on it.
    pub(super) position: Position,
    /// The newest readable event of this kind.
    pub(super) advance: Option<SourceAdvanced>,
}

impl StoredAdvance {
    /// The newest cursor of a partition.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn of_partition(
        log: &Log,
        origin: &Origin,
        partition: i32,
    ) -> Result<StoredAdvance, Fault> {
        StoredAdvance::newest(log, &origin.partition_query(SOURCE_ADVANCED, partition))
    }

    /// The newest cursor of the source, whatever its topic.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn of_source(log: &Log, origin: &Origin) -> Result<StoredAdvance, Fault> {
        StoredAdvance::newest(log, &origin.source_query())
    }

    fn newest(log: &Log, query: &Query) -> Result<StoredAdvance, Fault> {
        let snapshot = log.snapshot();
        // Nothing is removed before a cursor that a source needs: `oldest_cursor`.
        let mut events = snapshot.read_kept(query, Order::Descending);
        let mut found = StoredAdvance::default();
        while let Some(event) = events.next()? {
            if found.position == 0 {
                found.position = event.position();
            }
            // Any client with write access can append such an event; an invalid one is ignored.
            if let Ok(advance) = serde_json::from_slice(event.data()) {
                found.advance = Some(advance);
                break;
            }
        }
        found.position = found.position.max(snapshot.first() - 1);
        Ok(found)
    }
}

/// The position of the oldest cursor that a source still needs in its log: of each partition that
/// it has read, the newest. None: it has read nothing.
///
/// # Errors
/// The log cannot be read.
pub fn oldest_cursor(log: &Log, source: &str) -> Result<Option<Position>, ReadError> {
    let snapshot = log.snapshot();
    let mut oldest = None;
    for TermCount { term, .. } in
        snapshot.tags("source:", None, usize::MAX, &mut Work::unbounded())?
    {
        let query = Query::item(&[SOURCE_ADVANCED], &[&term, &format!("connector:{source}")]);
        let mut events = snapshot.read_kept(&query, Order::Descending);
        let newest = events.next()?.map(|event| event.position());
        oldest = oldest.into_iter().chain(newest).min();
    }
    Ok(oldest)
}

/// The condition that no event after a position matches a query.
pub(super) fn unchanged_since(query: Query, position: Position) -> Option<AppendCondition> {
    Some(AppendCondition::no_match_after(query, position))
}
