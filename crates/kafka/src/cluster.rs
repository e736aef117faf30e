//! The interface to Kafka.

use crate::fault::Fault;
use crate::record::{OutgoingRecord, Record};
use std::time::Duration;

/// How long a topic retains records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Without a time limit.
    Unlimited,
    /// Until a record is this old.
    Limited(Duration),
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicDescription {
    /// Its id. A topic that is deleted and created again has another.
    pub id: [u8; 16],
    /// Number of its partitions, from 1; they are numbered from 0.
    pub partitions: i32,
    /// The smallest number of replicas of any partition.
    pub replicas: usize,
    /// Maximum size of a batch, in compressed bytes.
    pub max_message_bytes: usize,
    /// How long it retains records.
    pub retention: Retention,
    /// Whether it is compacted: keeps only the last record of each key.
    pub is_compacted: bool,
}

/// A topic to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name: 1 to 249 of letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Number of partitions, from 1; `None`: the brokers' default.
    pub partitions: Option<i32>,
    /// Number of replicas of each partition, from 1; `None`: the brokers' default.
    pub replicas: Option<i16>,
    /// Topic settings, such as `cleanup.policy`.
    pub settings: Vec<(String, String)>,
}

/// The result of creating a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It was created.
    Created,
    /// A topic with this name existed and is unchanged.
    Existed,
}

/// The range of offsets in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetRange {
    /// Offset of the first retained record.
    pub first: i64,
    /// Offset of the next record, including open transactions.
    pub end: i64,
}

/// A Kafka cluster. Calls block, for at most a minute.
pub trait Cluster: Send + Sync {
    /// The cluster's id, which it chose at its creation.
    ///
    /// # Errors
    /// A [`Fault`], whose kind says whether a retry helps; the same holds for all methods below.
    fn id(&self) -> Result<String, Fault>;

    /// Describes a topic.
    ///
    /// # Errors
    /// [`FaultKind::NoTopic`](crate::FaultKind::NoTopic) if it does not exist.
    fn topic(&self, name: &str) -> Result<TopicDescription, Fault>;

    /// Creates a topic unless one with this name exists.
    ///
    /// # Errors
    /// A [`Fault`].
    fn create_topic(&self, topic: &NewTopic) -> Result<Creation, Fault>;

    /// The offsets of a partition, including uncommitted records.
    ///
    /// # Errors
    /// A [`Fault`].
    fn offsets(&self, topic: &str, partition: i32) -> Result<OffsetRange, Fault>;

    /// A transactional producer. From now on any other producer with the same transactional id is
    /// fenced, and its open transaction is aborted.
    ///
    /// # Errors
    /// A [`Fault`].
    fn transactional_producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, Fault>;

    /// A producer whose records arrive exactly once and in order within a partition while it lives.
    ///
    /// # Errors
    /// A [`Fault`].
    fn idempotent_producer(&self) -> Result<Box<dyn Producer>, Fault>;

    /// A reader of committed records in some partitions, each from an offset on; it belongs to no
    /// consumer group.
    ///
    /// # Errors
    /// [`FaultKind::OutOfRange`](crate::FaultKind::OutOfRange) if a partition neither holds the
    /// start offset nor ends there.
    fn reader(&self, topic: &str, starts: &[(i32, i64)]) -> Result<Box<dyn Reader>, Fault>;
}

/// Delivers records. After an error it is unusable: create another one and determine what was
/// delivered.
pub trait Producer: Send {
    /// Delivers records to all in-sync replicas before it returns: a transactional producer all or
    /// none, any other each individually.
    ///
    /// # Errors
    /// [`FaultKind::InDoubt`](crate::FaultKind::InDoubt): possibly all were delivered (without
    /// transactions: some). Any other: none of a transaction was. A retry with this producer does
    /// not help.
    fn deliver(&mut self, records: Vec<OutgoingRecord>) -> Result<(), Fault>;
}

/// Reads partitions in order.
pub trait Reader: Send {
    /// The next records, in order within each partition, waiting up to `timeout` for one; empty if
    /// none arrived.
    ///
    /// # Errors
    /// [`FaultKind::TopicRecreated`](crate::FaultKind::TopicRecreated) within about a second of its
    /// recreation. After an error the reader is unusable.
    fn poll(&mut self, timeout: Duration) -> Result<Vec<Record>, Fault>;
}
