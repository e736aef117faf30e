//! Topics and their settings.

use super::partition::Partition;
use crate::cluster::{NewTopic, Retention, TopicDescription};
use crate::fault::{Fault, FaultKind};
use crate::record::{OutgoingRecord, Record};
use std::time::Duration;

/// The brokers' defaults.
const DEFAULT_MAX_MESSAGE_BYTES: usize = 1_048_588;
const DEFAULT_RETENTION: Duration = Duration::from_secs(7 * 24 * 3_600);
const DEFAULT_PARTITIONS: i32 = 1;

/// Approximate overhead of a record in transit beyond key, value and headers, as brokers count it.
const RECORD_OVERHEAD: usize = 16;
/// Overhead of a batch beyond its records.
const BATCH_OVERHEAD: usize = 61;
/// Records of one partition are sent in batches of about this size, as by the client.
const BATCH_BYTES: usize = 512 * 1024;

pub(super) struct Topic {
    id: [u8; 16],
    partitions: Vec<Partition>,
    max_message_bytes: usize,
    retention: Retention,
    is_compacted: bool,
}

/// The id of the `number`th created topic.
fn topic_id(number: u64) -> [u8; 16] {
    let mut id = *b"simulated\0\0\0\0\0\0\0";
    id[8..].copy_from_slice(&number.to_be_bytes());
    id
}

fn partitions(count: i32) -> Vec<Partition> {
    (0..count).map(|_| Partition::default()).collect()
}

fn size_of(record: &OutgoingRecord) -> usize {
    let len = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map_or(0, bytes::Bytes::len);
    let headers = record.headers.iter().map(|(name, value)| name.len() + len(value) + 2);
    len(&record.key) + len(&record.value) + headers.sum::<usize>() + RECORD_OVERHEAD
}

impl Topic {
    /// Creates a topic.
    ///
    /// # Errors
    /// [`FaultKind::Unusable`] if a setting does not parse.
    pub(super) fn new(topic: &NewTopic, number: u64) -> Result<Topic, Fault> {
        let setting = |key: &str| {
            topic.settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
        };
        let number_of = |key: &str| match setting(key).map(str::parse::<i64>) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(error)) => Err(unusable(&topic.name, &format!("{key}: {error}"))),
        };
        let count = topic.partitions.unwrap_or(DEFAULT_PARTITIONS);
        if count < 1 {
            return Err(unusable(&topic.name, "a topic has partitions"));
        }
        let is_compacted = setting("cleanup.policy") == Some("compact");
        let retention = match number_of("retention.ms")?.map(u64::try_from) {
            _ if is_compacted => Retention::Unlimited,
            None => Retention::Limited(DEFAULT_RETENTION),
            Some(Ok(ms)) => Retention::Limited(Duration::from_millis(ms)),
            Some(Err(_)) => Retention::Unlimited,
        };
        let max = number_of("max.message.bytes")?.and_then(|bytes| usize::try_from(bytes).ok());
        Ok(Topic {
            id: topic_id(number),
            partitions: partitions(count),
            max_message_bytes: max.unwrap_or(DEFAULT_MAX_MESSAGE_BYTES),
            retention,
            is_compacted,
        })
    }

    /// An empty topic with the same settings.
    pub(super) fn recreated(&self, number: u64) -> Topic {
        Topic {
            id: topic_id(number),
            partitions: self.partitions.iter().map(|_| Partition::default()).collect(),
            ..*self
        }
    }

    pub(super) fn grow(&mut self, count: i32) {
        let count = usize::try_from(count).expect("a positive count");
        assert!(count >= self.partitions.len(), "Kafka takes no partition away");
        self.partitions.resize_with(count, Partition::default);
    }

    pub(super) fn id(&self) -> [u8; 16] {
        self.id
    }

    pub(super) fn description(&self) -> TopicDescription {
        TopicDescription {
            id: self.id,
            partitions: i32::try_from(self.partitions.len()).unwrap_or(i32::MAX),
            replicas: 1,
            max_message_bytes: self.max_message_bytes,
            retention: self.retention,
            is_compacted: self.is_compacted,
        }
    }

    pub(super) fn partition(&self, number: i32) -> Result<&Partition, Fault> {
        let found = usize::try_from(number).ok().and_then(|number| self.partitions.get(number));
        found.ok_or_else(|| no_partition(number))
    }

    pub(super) fn partition_mut(&mut self, number: i32) -> Result<&mut Partition, Fault> {
        let found = usize::try_from(number).ok().and_then(|number| self.partitions.get_mut(number));
        found.ok_or_else(|| no_partition(number))
    }

    /// Checks that the topic accepts these records, which go to one of its partitions together.
    pub(super) fn require_fit(&self, records: &[&OutgoingRecord]) -> Result<(), Fault> {
        let mut batch = BATCH_OVERHEAD;
        for record in records {
            let size = size_of(record);
            if batch > BATCH_OVERHEAD && batch + size > BATCH_BYTES {
                batch = BATCH_OVERHEAD;
            }
            batch += size;
            if batch > self.max_message_bytes {
                let detail = format!(
                    "a batch of {batch} bytes exceeds the topic's limit of {}",
                    self.max_message_bytes
                );
                return Err(Fault::new(FaultKind::TooLarge, detail));
            }
        }
        Ok(())
    }

    pub(super) fn end_transaction(&mut self, partition: i32, number: u64, commit: bool) {
        if let Ok(partition) = self.partition_mut(partition) {
            partition.end_transaction(number, commit);
        }
    }

    pub(super) fn committed(&self) -> Vec<Record> {
        let mut all = Vec::new();
        for partition in &self.partitions {
            let mut from = partition.range().first;
            loop {
                let (records, next) = partition.read(from);
                all.extend(records);
                if next == from {
                    break;
                }
                from = next;
            }
        }
        all
    }

    pub(super) fn compact(&mut self) {
        for partition in &mut self.partitions {
            partition.compact();
        }
    }
}

fn no_partition(number: i32) -> Fault {
    Fault::new(FaultKind::NoTopic, format!("the topic has no partition {number}"))
}

fn unusable(name: &str, what: &str) -> Fault {
    Fault::new(FaultKind::Unusable, format!("creating the topic {name}: {what}"))
}
