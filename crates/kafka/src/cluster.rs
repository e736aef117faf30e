//! The seam: what Wellspring asks of Kafka.

use crate::fault::Fault;
use crate::record::{OutgoingRecord, Record};
use std::time::Duration;

/// How long a topic keeps what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// For ever, as far as time goes.
    Unlimited,
    /// Until a record's time is so long ago.
    Limited(Duration),
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicDescription {
    /// Its id. A topic that is deleted and made again has another.
    pub id: [u8; 16],
    /// Number of its partitions, from 1; they are numbered from 0.
    pub partitions: i32,
    /// Number of copies of the partition that has fewest.
    pub replicas: usize,
    /// The largest batch it takes, in bytes as compressed.
    pub max_message_bytes: usize,
    /// How long it keeps records.
    pub retention: Retention,
    /// Whether it keeps the last record of each key for ever, and others not.
    pub is_compacted: bool,
}

/// A topic to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name: 1 to 249 of letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Number of partitions, from 1; `None`: as the brokers are set.
    pub partitions: Option<i32>,
    /// Copies of each partition, from 1; `None`: as the brokers are set.
    pub replicas: Option<i16>,
    /// Settings of its own, such as `cleanup.policy`.
    pub settings: Vec<(String, String)>,
}

/// What became of a topic that was to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It was made.
    Created,
    /// One of this name was there, and is as it was.
    Existed,
}

/// Where a partition begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetRange {
    /// Offset of the first record that is kept.
    pub first: i64,
    /// Offset of the record to come, open transactions counted.
    pub end: i64,
}

/// A Kafka cluster. Calls block, for a minute at most.
pub trait Cluster: Send + Sync {
    /// The id that the cluster drew when it was made.
    ///
    /// # Errors
    /// A [`Fault`]; its kind says whether a retry helps. So do all below.
    fn id(&self) -> Result<String, Fault>;

    /// Describes a topic as it is now.
    ///
    /// # Errors
    /// [`FaultKind::NoTopic`](crate::FaultKind::NoTopic) if there is none.
    fn topic(&self, name: &str) -> Result<TopicDescription, Fault>;

    /// Makes a topic unless there is one of this name.
    ///
    /// # Errors
    /// A [`Fault`].
    fn create_topic(&self, topic: &NewTopic) -> Result<Creation, Fault>;

    /// Where a partition begins and ends, whatever is committed.
    ///
    /// # Errors
    /// A [`Fault`].
    fn offsets(&self, topic: &str, partition: i32) -> Result<OffsetRange, Fault>;

    /// A producer of transactions. From here on any other with the same transactional id is fenced,
    /// and what it left open is ended.
    ///
    /// # Errors
    /// A [`Fault`].
    fn transactional_producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, Fault>;

    /// A producer whose records come once each and in order of a partition while it lives.
    ///
    /// # Errors
    /// A [`Fault`].
    fn idempotent_producer(&self) -> Result<Box<dyn Producer>, Fault>;

    /// A reader of what is committed in some partitions, each from an offset on; it belongs to no
    /// group.
    ///
    /// # Errors
    /// [`FaultKind::OutOfRange`](crate::FaultKind::OutOfRange) if a partition does not hold the
    /// offset to begin at, nor ends there.
    fn reader(&self, topic: &str, starts: &[(i32, i64)]) -> Result<Box<dyn Reader>, Fault>;
}

/// Delivers records. After any error it is spent: whoever goes on makes another and finds out what
/// was delivered.
pub trait Producer: Send {
    /// Delivers records, to all in-sync copies, before it returns: by a transactional producer all
    /// or none of them, by another each by itself.
    ///
    /// # Errors
    /// [`FaultKind::InDoubt`](crate::FaultKind::InDoubt): perhaps all were delivered (without
    /// transactions: some). Any other: of a transaction none was. No retry with this producer
    /// helps.
    fn deliver(&mut self, records: Vec<OutgoingRecord>) -> Result<(), Fault>;
}

/// Reads partitions in order.
pub trait Reader: Send {
    /// Records that come next, in order of each partition, waiting up to `timeout` for one; none if
    /// none came.
    ///
    /// # Errors
    /// [`FaultKind::TopicRecreated`](crate::FaultKind::TopicRecreated), about a second after it
    /// happened at the latest. After an error the reader is spent.
    fn poll(&mut self, timeout: Duration) -> Result<Vec<Record>, Fault>;
}
