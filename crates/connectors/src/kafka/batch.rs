//! A batch of records for Kafka. One buffer holds the bytes of all records; the next batch reuses
//! it once the Kafka client has released it.

use crate::sink::{PayloadFormat, cloud_event, partition_key};
use bytes::Bytes;
use serde_json::to_writer;
use std::io::Write as _;
use wellspring_kafka::{Header, OutgoingRecord, partition_of};
use wellspring_log::RecordView;
use wellspring_types::{DataKind, EventId, HistoryId, Position};

const LOG: &str = "wellspring-log";
const POSITION: &str = "wellspring-position";
const TYPE: &str = "wellspring-type";
const TAGS: &str = "wellspring-tags";
const ID: &str = "wellspring-id";
const CONTENT_TYPE: &str = "content-type";

/// Size of a one-record batch without its key, value and headers: 61 bytes for the batch, at most
/// 27 for lengths, attributes, time and offset.
const RECORD_OVERHEAD: usize = 88;
/// Size of a header without its name and value: two lengths.
const HEADER_OVERHEAD: usize = 4;
/// Size of all header names and their overhead.
const NAMES_BYTES: usize = LOG.len()
    + POSITION.len()
    + TYPE.len()
    + TAGS.len()
    + ID.len()
    + CONTENT_TYPE.len()
    + 6 * HEADER_OVERHEAD;

/// How events are turned into records.
pub(super) struct RecordFormat {
    /// The log's name, sent as a header.
    pub(super) log_name: String,
    /// Its history, if that is known.
    pub(super) history: Option<HistoryId>,
    pub(super) topic: String,
    pub(super) payload: PayloadFormat,
    pub(super) partition_by: Option<String>,
}

/// An event of a batch. The batch's buffer holds its parts consecutively from `begin` on: key,
/// value, position, type, tags, id.
struct Entry {
    position: Position,
    timestamp_ms: i64,
    /// `None`: the event has no key and goes to the partition for events without keys.
    partition: Option<i32>,
    content_type: &'static str,
    has_id: bool,
    begin: usize,
    ends: [usize; 6],
}

/// Events that are delivered together.
pub(super) struct Batch {
    format: RecordFormat,
    log_header: Bytes,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The partition for events without keys. It changes with each batch, so that positions ascend
    /// within each partition and a batch is not spread thin.
    keyless_partition: i32,
}

/// Error: a record exceeds the topic's maximum. Contains its size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Oversize(pub(super) usize);

/// Appends an id in display form, several times faster than `Display`: every record may have one.
fn push_id(out: &mut Vec<u8>, id: EventId) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (at, byte) in id.0.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Appends tags as a JSON array.
fn push_tags(out: &mut Vec<u8>, event: &RecordView<'_>) {
    out.push(b'[');
    for (at, tag) in event.tags().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        to_writer(&mut *out, tag).expect("a vector takes everything");
    }
    out.push(b']');
}

impl Batch {
    pub(super) fn new(format: RecordFormat) -> Batch {
        Batch {
            log_header: Bytes::from(format.log_name.clone()),
            format,
            bytes: Vec::new(),
            entries: Vec::new(),
            keyless_partition: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first event's position.
    pub(super) fn first_position(&self) -> Option<Position> {
        self.entries.first().map(|entry| entry.position)
    }

    /// Adds an event to a batch for a topic with this many partitions.
    ///
    /// # Errors
    /// Its record exceeds `max_bytes`; the batch is then unchanged.
    pub(super) fn push(
        &mut self,
        event: &RecordView<'_>,
        partitions: i32,
        max_bytes: usize,
    ) -> Result<(), Oversize> {
        let Batch { format, bytes, .. } = self;
        let begin = bytes.len();
        let key = format.partition_by.as_deref().and_then(|prefix| partition_key(event, prefix));
        bytes.extend_from_slice(key.unwrap_or_default().as_bytes());
        let key_end = bytes.len();
        let content_type = match (format.payload, event.kind()) {
            (PayloadFormat::CloudEvents, _) => {
                cloud_event(bytes, &format.log_name, format.history, event);
                "application/cloudevents+json"
            }
            (PayloadFormat::Data, kind) => {
                bytes.extend_from_slice(event.data());
                match kind {
                    DataKind::Json => "application/json",
                    DataKind::Binary => "application/octet-stream",
                }
            }
        };
        let value_end = bytes.len();
        write!(bytes, "{}", event.position()).expect("a vector takes everything");
        let position_end = bytes.len();
        bytes.extend_from_slice(event.event_type().as_bytes());
        let type_end = bytes.len();
        push_tags(bytes, event);
        let tags_end = bytes.len();
        let id = event.id();
        if let Some(id) = id {
            push_id(bytes, id);
        }
        let end = bytes.len();
        let elsewhere = self.log_header.len() + content_type.len() + NAMES_BYTES + RECORD_OVERHEAD;
        let size = end - begin + elsewhere;
        if size > max_bytes {
            bytes.truncate(begin);
            return Err(Oversize(size));
        }
        self.entries.push(Entry {
            position: event.position(),
            timestamp_ms: i64::try_from(event.recorded_at_us() / 1_000).unwrap_or(i64::MAX),
            partition: key.map(|key| partition_of(key.as_bytes(), partitions)),
            content_type,
            has_id: id.is_some(),
            begin,
            ends: [key_end, value_end, position_end, type_end, tags_end, end],
        });
        Ok(())
    }

    fn record(&self, bytes: &Bytes, entry: &Entry, keyless: i32) -> OutgoingRecord {
        let mut from = entry.begin;
        let [key, value, position, event_type, tags, id] = entry.ends.map(|end| {
            let part = bytes.slice(from..end);
            from = end;
            part
        });
        let mut headers: Vec<Header> = Vec::with_capacity(6);
        headers.push((LOG.to_owned(), Some(self.log_header.clone())));
        headers.push((POSITION.to_owned(), Some(position)));
        headers.push((TYPE.to_owned(), Some(event_type)));
        headers.push((TAGS.to_owned(), Some(tags)));
        if entry.has_id {
            headers.push((ID.to_owned(), Some(id)));
        }
        let content_type = Bytes::from_static(entry.content_type.as_bytes());
        headers.push((CONTENT_TYPE.to_owned(), Some(content_type)));
        OutgoingRecord {
            topic: self.format.topic.clone(),
            partition: entry.partition.unwrap_or(keyless),
            timestamp_ms: entry.timestamp_ms,
            key: entry.partition.map(|_| key),
            value: Some(value),
            headers,
        }
    }

    /// Takes the batch as records for a topic with this many partitions, with capacity for `more`,
    /// and its buffer, which [`reuse`](Self::reuse) takes back. The batch is empty afterwards.
    pub(super) fn take(&mut self, partitions: i32, more: usize) -> (Vec<OutgoingRecord>, Bytes) {
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        let keyless = self.keyless_partition % partitions;
        let mut records = Vec::with_capacity(self.entries.len() + more);
        records.extend(self.entries.iter().map(|entry| self.record(&bytes, entry, keyless)));
        if !self.entries.is_empty() {
            self.keyless_partition = (keyless + 1) % partitions;
        }
        self.entries.clear();
        (records, bytes)
    }

    /// Takes back the buffer of a delivered batch, so that the next one need not allocate.
    pub(super) fn reuse(&mut self, bytes: Bytes) {
        if let Ok(bytes) = bytes.try_into_mut() {
            self.bytes = Vec::from(bytes);
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
