//! A reader of partitions.

use super::{ASK_WITHIN, Link, topic_id};
use crate::cluster::Reader;
use crate::fault::{Fault, FaultKind};
use crate::record::Record;
use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerRecord, IsolationLevel};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// krafka keeps reading a topic that was deleted and created again without noticing, so its id is
/// checked this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of records per call.
const MOST_RECORDS: i32 = 10_000;

/// Reads partitions of a topic.
pub(super) struct PartitionReader {
    link: Arc<Link>,
    consumer: Consumer,
    topic: String,
    id: [u8; 16],
    looked_at: Instant,
}

impl PartitionReader {
    /// A reader of `starts`: partitions and their start offsets.
    pub(super) fn open(
        link: &Arc<Link>,
        topic: &str,
        starts: &[(i32, i64)],
    ) -> Result<PartitionReader, Fault> {
        let what = format!("reading the topic {topic}");
        let opened = async {
            let id = topic_id(&link.kafka, topic).await?;
            let consumer = link
                .kafka
                .consumer_without_group()
                .isolation_level(IsolationLevel::ReadCommitted)
                .auto_offset_reset(AutoOffsetReset::None)
                .enable_auto_commit(false)
                .max_poll_records(MOST_RECORDS)
                .initial_offsets(starts.iter().map(|(partition, offset)| {
                    (krafka::consumer::TopicPartition::new(topic, *partition), *offset)
                }))
                .build()
                .await?;
            let partitions = starts.iter().map(|(partition, _)| *partition).collect();
            consumer.assign(topic, partitions).await?;
            for (partition, offset) in starts {
                consumer.seek(topic, *partition, *offset).await?;
            }
            Ok((id, consumer, Instant::now()))
        };
        let (id, consumer, looked_at) = link.within(ASK_WITHIN, &what, opened)?;
        Ok(PartitionReader {
            link: Arc::clone(link),
            consumer,
            topic: topic.to_owned(),
            id,
            looked_at,
        })
    }

    /// Checks that the topic is the one that was opened.
    fn look(&mut self) -> Result<(), Fault> {
        if self.looked_at.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        let what = format!("checking the identity of the topic {}", self.topic);
        let id = self.link.within(ASK_WITHIN, &what, topic_id(&self.link.kafka, &self.topic))?;
        if id != self.id {
            let detail = format!("the topic {} was deleted and created again", self.topic);
            return Err(Fault::new(FaultKind::TopicRecreated, detail));
        }
        self.looked_at = Instant::now();
        Ok(())
    }
}

fn record_of(record: ConsumerRecord) -> Record {
    let headers = record.headers.into_iter();
    Record {
        partition: record.partition,
        offset: record.offset,
        timestamp_ms: record.timestamp,
        key: record.key,
        value: record.value,
        headers: headers.map(|(name, value)| (name.to_string(), value)).collect(),
    }
}

impl Reader for PartitionReader {
    fn poll(&mut self, timeout: Duration) -> Result<Vec<Record>, Fault> {
        self.look()?;
        let what = format!("reading the topic {}", self.topic);
        let polled = self.consumer.poll(timeout);
        let records = self.link.within(timeout + ASK_WITHIN, &what, polled)?;
        Ok(records.into_iter().map(record_of).collect())
    }
}
