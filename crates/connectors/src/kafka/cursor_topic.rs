//! The topic that stores the cursors of exactly-once sinks, in the same transactions as the records
//! they deliver.

use crate::cursor::Cursor;
use crate::fault::{Fault, StopCode};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wellspring_kafka::{
    Cluster, Creation, FaultKind, NewTopic, OutgoingRecord, Producer, Reader, Record,
    TopicDescription,
};
use wellspring_log::Clock;
use wellspring_types::{HistoryId, hex};

/// Header of a cursor's record that names the history of the log. Earlier versions refuse a
/// document with a further field, and pass over headers.
const HISTORY: &str = "wellspring-history";
/// The partition of all cursors. Every topic has it, and a later change of the partition count
/// cannot move a cursor to another partition and so lose it.
const PARTITION: i32 = 0;
/// Brokers compact only whole segments. With small ones a start reads thousands of cursors instead
/// of the millions in a segment of 1 GiB.
const CREATED_WITH: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("segment.bytes", "16777216"),
    ("min.cleanable.dirty.ratio", "0.1"),
];
/// Number of attempts to describe a newly created topic, and the wait between them.
const NEW_TOPIC_LOOKS: u32 = 30;
const NEW_TOPIC_WAIT: Duration = Duration::from_millis(100);
/// Maximum wait for a record before the reader checks the time.
const POLL: Duration = Duration::from_millis(200);
/// Maximum wait for a further record. Brokers end a transaction that blocks readers after 30 s (the
/// timeout set by our producers) and check for such transactions every 10 s.
const STALLED_US: u64 = 45_000_000;
/// How long to look for a newer owner after this one was fenced.
const NEW_OWNER_US: u64 = 2_000_000;

/// A cursor as the topic stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CursorDocument {
    generation: u64,
    position: u64,
    anchor: u32,
    topic_id: String,
    /// Informative.
    log: String,
    /// Informative.
    sink: String,
}

/// A cursor and the topic that it delivers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptCursor {
    pub(super) cursor: Cursor,
    /// Id of the target topic, in hexadecimal digits.
    pub(super) topic_id: String,
}

impl CursorDocument {
    /// The cursor, with the history that its record names.
    fn kept(self, history: Option<HistoryId>) -> KeptCursor {
        let CursorDocument { generation, position, anchor, topic_id, .. } = self;
        KeptCursor { cursor: Cursor { generation, history, position, anchor }, topic_id }
    }
}

/// One sink's cursor in the topic.
pub(super) struct CursorTopic {
    pub(super) topic: String,
    /// Key of the cursor's records.
    pub(super) identity: String,
    pub(super) log_name: String,
    pub(super) sink_name: String,
}

/// Describes a topic once it is known: not all brokers learn of a new topic at once.
///
/// # Errors
/// A fault of the cluster.
pub(super) fn describe_new(cluster: &dyn Cluster, topic: &str) -> Result<TopicDescription, Fault> {
    let mut looks = 0;
    loop {
        match cluster.topic(topic) {
            Err(fault) if fault.kind == FaultKind::NoTopic => {
                looks += 1;
                if looks == NEW_TOPIC_LOOKS {
                    return Err(Fault::transient(fault.detail));
                }
                std::thread::sleep(NEW_TOPIC_WAIT);
            }
            described => return Ok(described?),
        }
    }
}

impl CursorTopic {
    /// Ensures that the topic exists and is compacted.
    ///
    /// # Errors
    /// [`StopCode::Unusable`] if it is not compacted; a fault of the cluster.
    pub(super) fn require(&self, cluster: &dyn Cluster) -> Result<(), Fault> {
        let found = match cluster.topic(&self.topic) {
            Err(fault) if fault.kind == FaultKind::NoTopic => {
                self.create(cluster)?;
                describe_new(cluster, &self.topic)?
            }
            found => found?,
        };
        if found.is_compacted {
            return Ok(());
        }
        let detail = format!(
            "the topic of cursors {} is not compacted, so Kafka would delete the cursor after a while; set its \
             cleanup.policy to compact, or use another topic of cursors",
            self.topic
        );
        Err(Fault::stop(StopCode::Unusable, detail))
    }

    fn create(&self, cluster: &dyn Cluster) -> Result<(), Fault> {
        let settings = CREATED_WITH.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let new = NewTopic {
            name: self.topic.clone(),
            partitions: Some(1),
            replicas: None,
            settings: settings.to_vec(),
        };
        if cluster.create_topic(&new)? == Creation::Created {
            tracing::info!(topic = self.topic, "created the cursor topic");
        }
        Ok(())
    }

    fn record(&self, key: String, value: Option<Vec<u8>>, clock: &dyn Clock) -> OutgoingRecord {
        OutgoingRecord {
            topic: self.topic.clone(),
            partition: PARTITION,
            timestamp_ms: i64::try_from(clock.wall_us() / 1_000).unwrap_or(i64::MAX),
            key: Some(Bytes::from(key)),
            value: value.map(Bytes::from),
            headers: Vec::new(),
        }
    }

    /// The record of a cursor.
    pub(super) fn cursor_record(
        &self,
        cursor: Cursor,
        topic_id: [u8; 16],
        clock: &dyn Clock,
    ) -> OutgoingRecord {
        let document = CursorDocument {
            generation: cursor.generation,
            position: cursor.position,
            anchor: cursor.anchor,
            topic_id: hex::digits(&topic_id),
            log: self.log_name.clone(),
            sink: self.sink_name.clone(),
        };
        let value = serde_json::to_vec(&document).expect("numbers and texts");
        let mut record = self.record(self.identity.clone(), Some(value), clock);
        let named = |id: HistoryId| (HISTORY.to_owned(), Some(Bytes::from(id.to_string())));
        record.headers.extend(cursor.history.map(named));
        record
    }

    fn probe_key(&self) -> String {
        format!("probe:{}", self.identity)
    }

    fn is_probe(&self, record: &Record) -> bool {
        let identity = record.key.as_ref().and_then(|key| key.strip_prefix(b"probe:"));
        identity == Some(self.identity.as_bytes())
    }

    fn reader(&self, cluster: &dyn Cluster, from: i64) -> Result<Box<dyn Reader>, Fault> {
        cluster.reader(&self.topic, &[(PARTITION, from)]).map_err(reading_fault)
    }

    /// Reads the newest cursor, after the producer has taken the transactional id. Also returns the
    /// offset of its probe: a record that this call delivers and then reads. Everything that
    /// earlier owners committed lies before the probe. Offsets alone cannot show that all records
    /// were read, because readers do not see transaction markers.
    ///
    /// # Errors
    /// [`StopCode::Unusable`] if the cursor cannot be read. [`Fault::Transient`] if another
    /// producer's open transaction blocks the probe for too long. A fault of the cluster.
    pub(super) fn take_over(
        &self,
        cluster: &dyn Cluster,
        producer: &mut dyn Producer,
        clock: &dyn Clock,
    ) -> Result<(Option<KeptCursor>, i64), Fault> {
        let range = cluster.offsets(&self.topic, PARTITION)?;
        producer.deliver(vec![self.record(self.probe_key(), None, clock)])?;
        let mut reader = self.reader(cluster, range.first)?;
        let mut newest = None;
        let mut progress_us = clock.monotonic_us();
        loop {
            let records = reader.poll(POLL).map_err(reading_fault)?;
            let now_us = clock.monotonic_us();
            if !records.is_empty() {
                progress_us = now_us;
            } else if now_us.saturating_sub(progress_us) > STALLED_US {
                let detail = format!(
                    "the cursor topic {} cannot be read to its end: a transaction of another producer is open",
                    self.topic
                );
                return Err(Fault::Transient(detail));
            }
            for record in records {
                if self.is_probe(&record) && record.offset >= range.end {
                    return Ok((self.parse(newest)?, record.offset));
                }
                if record.key.as_deref() == Some(self.identity.as_bytes()) {
                    newest = Some(record);
                }
            }
        }
    }

    fn parse(&self, record: Option<Record>) -> Result<Option<KeptCursor>, Fault> {
        // A tombstone deletes a cursor from a compacted topic.
        let Some(Record { value: Some(value), offset, headers, .. }) = record else {
            return Ok(None);
        };
        let unreadable = |why: String| {
            let detail = format!(
                "the cursor {} at offset {offset} of {} cannot be read: {why}",
                self.identity, self.topic
            );
            Fault::stop(StopCode::Unusable, detail)
        };
        let document: CursorDocument =
            serde_json::from_slice(&value).map_err(|error| unreadable(error.to_string()))?;
        let named = headers.iter().find(|(name, _)| name == HISTORY);
        let history = named.map(|(_, id)| {
            String::from_utf8_lossy(id.as_deref().unwrap_or_default()).parse::<HistoryId>()
        });
        let history = history.transpose().map_err(|error| unreadable(error.to_string()))?;
        Ok(Some(document.kept(history)))
    }

    /// Whether another owner has taken over since this one's probe; it would have left its own
    /// probe.
    ///
    /// # Errors
    /// A fault of the cluster.
    pub(super) fn has_newer_owner(
        &self,
        cluster: &dyn Cluster,
        probe_offset: i64,
        clock: &dyn Clock,
    ) -> Result<bool, Fault> {
        let mut reader = self.reader(cluster, probe_offset + 1)?;
        let begin_us = clock.monotonic_us();
        while clock.monotonic_us().saturating_sub(begin_us) < NEW_OWNER_US {
            let records = reader.poll(POLL).map_err(reading_fault)?;
            if records.iter().any(|record| self.is_probe(record)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The fault of a reader of this topic.
fn reading_fault(fault: wellspring_kafka::Fault) -> Fault {
    match fault.kind {
        // Records have just been deleted; the next attempt starts at the topic's new beginning.
        FaultKind::OutOfRange => Fault::Transient(fault.detail),
        _ => fault.into(),
    }
}

#[cfg(test)]
#[path = "cursor_topic_tests.rs"]
mod tests;
