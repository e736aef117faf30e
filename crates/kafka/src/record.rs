//! Records to deliver and records read.

use bytes::Bytes;

/// A header of a record: its name and optional value. Names may repeat.
pub type Header = (String, Option<Bytes>);

/// A record read from a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its partition.
    pub partition: i32,
    /// Its offset. Offsets ascend with gaps, because of transaction markers and compaction.
    pub offset: i64,
    /// Its creation or append time (depending on the topic), in ms since 1970 UTC.
    pub timestamp_ms: i64,
    /// Its key, if any.
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
    /// The partition, chosen by the caller ([`partition_of`](crate::partition_of)).
    pub partition: i32,
    /// The record's time in ms since 1970 UTC, which determines its retention.
    pub timestamp_ms: i64,
    /// Its key, if any.
    pub key: Option<Bytes>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers, in order.
    pub headers: Vec<Header>,
}
