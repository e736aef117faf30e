//! Records as they go out and as they come in.

use bytes::Bytes;

/// A header of a record: its name, and its value if it has one. Names may repeat.
pub type Header = (String, Option<Bytes>);

/// A record of a topic, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The partition it lies in.
    pub partition: i32,
    /// Its place there. Offsets grow, but not by one: markers of transactions and compaction leave
    /// gaps.
    pub offset: i64,
    /// When it was made or appended (as the topic is set), in ms since 1970 UTC.
    pub timestamp_ms: i64,
    /// Its key, if it has one.
    pub key: Option<Bytes>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers, in order.
    pub headers: Vec<Header>,
}

/// A record to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingRecord {
    /// The topic.
    pub topic: String,
    /// The partition, which the caller chooses ([`partition_of`](crate::partition_of)).
    pub partition: i32,
    /// Time of the record in ms since 1970 UTC. Retention of the topic counts from it.
    pub timestamp_ms: i64,
    /// Its key, if it is to have one.
    pub key: Option<Bytes>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers, in order.
    pub headers: Vec<Header>,
}
