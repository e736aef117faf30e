//! The origin of a source's events: their tags, their ids, and the queries that find them.

use crate::fault::{Fault, StopCode};
use ring::digest;
use wellspring_types::limits::MAX_TAG_BYTES;
use wellspring_types::valid::check_text;
use wellspring_types::{EventId, Query, hex};

/// Type of the event that advances a source's cursor, in the log it appends to.
pub const SOURCE_ADVANCED: &str = "SourceAdvanced";
/// Type of the event that stores a record that could not become an event, in the reject log.
pub const RECORD_REJECTED: &str = "RecordRejected";

/// A source, in one generation, and the topic that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The source's name.
    pub(super) source: String,
    /// Number of times a start position was set for the source.
    pub(super) generation: u64,
    /// The cluster's id.
    pub(super) cluster: String,
    /// The topic's name.
    pub(super) topic: String,
    /// The topic's id, in hexadecimal digits.
    pub(super) topic_id: String,
    /// The tag of the source's own bookkeeping events.
    pub(super) connector_tag: String,
}

impl Origin {
    /// The origin of a source's events from a topic.
    ///
    /// # Errors
    /// [`StopCode::Unusable`]: the names do not form valid tags.
    pub(super) fn new(
        source: &str,
        generation: u64,
        cluster: &str,
        topic: &str,
        topic_id: [u8; 16],
    ) -> Result<Origin, Fault> {
        let topic_id = hex::digits(&topic_id);
        let origin = Origin {
            source: source.to_owned(),
            generation,
            cluster: cluster.to_owned(),
            topic: topic.to_owned(),
            topic_id,
            connector_tag: format!("connector:{source}"),
        };
        for tag in [&origin.connector_tag, &origin.partition_tag(i32::MAX)] {
            check_text(tag, MAX_TAG_BYTES).map_err(|reason| {
                Fault::stop(StopCode::Unusable, format!("the source's tag {tag:?} {reason}"))
            })?;
        }
        Ok(origin)
    }

    /// The tag of a partition.
    pub(super) fn partition_tag(&self, partition: i32) -> String {
        format!("source:{}/{}/{partition}", self.cluster, self.topic_id)
    }

    /// The source's bookkeeping events of a type for one partition. The query includes the source's
    /// tag, because two sources may copy the same topic into the same log.
    pub(super) fn partition_query(&self, event_type: &str, partition: i32) -> Query {
        Query::item(&[event_type], &[&self.partition_tag(partition), &self.connector_tag])
    }

    /// The source's cursors, whatever their topic.
    pub(super) fn source_query(&self) -> Query {
        Query::item(&[SOURCE_ADVANCED], &[&self.connector_tag])
    }

    /// Generates the ids of a partition's events.
    pub(super) fn event_ids(&self, partition: i32) -> EventIds {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in ["wellspring source 1", &self.source, &self.cluster, &self.topic_id] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part.as_bytes());
        }
        context.update(&self.generation.to_le_bytes());
        context.update(&partition.to_le_bytes());
        EventIds { context }
    }
}

/// Generates the ids of one partition's events: the same record, source and generation always give
/// the same id. Ids serve to look events up; they do not prevent duplicates.
pub(super) struct EventIds {
    context: digest::Context,
}

impl EventIds {
    /// The id of the event for the record at an offset: a UUID of version 8.
    pub(super) fn id(&self, offset: i64) -> EventId {
        let mut context = self.context.clone();
        context.update(&offset.to_le_bytes());
        let digest = context.finish();
        let mut id = [0; 16];
        id.copy_from_slice(&digest.as_ref()[..16]);
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        EventId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ_in_everything_that_makes_a_record_another_and_are_the_same_otherwise() {
        let origin = |source: &str, generation, cluster: &str, topic_id| {
            Origin::new(source, generation, cluster, "t", [topic_id; 16]).unwrap()
        };
        let mut ids = HashSet::new();
        for origin in [
            origin("a", 1, "c", 1),
            origin("b", 1, "c", 1),
            origin("a", 2, "c", 1),
            origin("a", 1, "d", 1),
            origin("a", 1, "c", 2),
        ] {
            for partition in 0..2 {
                for offset in 0..2 {
                    let id = origin.event_ids(partition).id(offset);
                    assert_eq!(origin.event_ids(partition).id(offset), id);
                    let text = id.to_string();
                    assert_eq!(&text[14..15], "8");
                    assert!("89ab".contains(&text[19..20]), "{text}");
                    assert!(ids.insert(id));
                }
            }
        }
    }

    #[test]
    fn names_that_make_no_tag_stop_the_source() {
        for (source, cluster) in [("a\n", "c"), (&"a".repeat(250), "c"), ("a", &"c".repeat(220))] {
            let fault = Origin::new(source, 1, cluster, "t", [0; 16]).unwrap_err();
            assert!(matches!(fault, Fault::Stop { code: StopCode::Unusable, .. }), "{fault:?}");
        }
        let origin = Origin::new("orders", 1, "MkU3OEVBNTcwNTJENDM2Qg", "t", [0xab; 16]).unwrap();
        let hex = "ab".repeat(16);
        assert_eq!(origin.partition_tag(7), format!("source:MkU3OEVBNTcwNTJENDM2Qg/{hex}/7"));
    }
}
