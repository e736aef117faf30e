//! Records that cannot become events, stored completely in a separate log, each once.
//!
//! They are appended before the cursor passes them, so after a crash the reject log may contain
//! records that the cursor has not passed. The next start finds them by their offsets: they stay
//! rejected, whatever the definition says by then.

use super::advance::unchanged_since;
use super::interruption::Interruption;
use super::origin::{Origin, RECORD_REJECTED};
use crate::fault::Fault;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use wellspring_kafka::Record;
use wellspring_log::{Append, EncodedEvents, Log, Order};
use wellspring_types::limits::{MAX_DATA_BYTES, MAX_EVENTS};
use wellspring_types::{DataKind, EventRef, Position};

/// Maximum size of a document's part in bytes; in BASE64 it still fits into an event.
const PART_BYTES: usize = 700_000;
/// Encoded size at which an append is full; one more event always fits.
const APPEND_BYTES: usize = 8 << 20;

/// A record and why it cannot become an event.
pub(super) struct Reject {
    pub(super) record: Record,
    pub(super) reason: String,
}

/// The reject log.
pub(super) struct RejectStore {
    log: Log,
    partitions: HashMap<i32, StoredRejects>,
}

/// The reject log's content for a partition.
#[derive(Default)]
struct StoredRejects {
    /// Position of the newest event that a condition would match.
    position: Position,
    /// Stored records after the cursor.
    ahead: BTreeMap<i64, StoredParts>,
}

/// How much of a record is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct StoredParts {
    generation: u64,
    offset: i64,
    #[serde(default = "one")]
    part: u32,
    #[serde(default = "one")]
    parts: u32,
}

fn one() -> u32 {
    1
}

impl RejectStore {
    pub(super) fn new(log: Log) -> RejectStore {
        RejectStore { log, partitions: HashMap::new() }
    }

    /// Loads what is stored of a partition after its cursor's offset.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn load(
        &mut self,
        origin: &Origin,
        partition: i32,
        cursor: i64,
    ) -> Result<(), Fault> {
        let query = origin.partition_query(RECORD_REJECTED, partition);
        let snapshot = self.log.snapshot();
        let mut events = snapshot.read_kept(&query, Order::Descending);
        let mut found = StoredRejects::default();
        while let Some(event) = events.next()? {
            if found.position == 0 {
                found.position = event.position();
            }
            let Ok(stored) = serde_json::from_slice::<StoredParts>(event.data()) else { continue };
            if stored.generation != origin.generation || stored.offset <= cursor {
                break;
            }
            // The newest event comes first, and it holds the record's last stored part.
            found.ahead.entry(stored.offset).or_insert(stored);
        }
        found.position = found.position.max(snapshot.first() - 1);
        self.partitions.insert(partition, found);
        Ok(())
    }

    /// Whether a record is stored, at least in part.
    pub(super) fn holds(&self, partition: i32, offset: i64) -> bool {
        let ahead = self.partitions.get(&partition).map(|stored| &stored.ahead);
        ahead.is_some_and(|ahead| ahead.contains_key(&offset))
    }

    /// Stores records of one partition, in order, unless they are stored already; durable on
    /// return. Returns the number of records that were not completely stored before.
    ///
    /// # Errors
    /// An [`Interruption`]; some records may be stored.
    pub(super) fn store(
        &mut self,
        origin: &Origin,
        partition: i32,
        rejects: &[Reject],
    ) -> Result<u64, Interruption> {
        let mut stored_anew = 0;
        let mut events = EncodedEvents::new();
        let tags = [origin.partition_tag(partition), origin.connector_tag.clone()];
        for reject in rejects {
            let stored = self.partitions.get(&partition);
            let stored = stored.and_then(|stored| stored.ahead.get(&reject.record.offset));
            let skipped = stored.map_or(0, |stored| stored.part as usize);
            let missing = documents(origin, reject).into_iter().skip(skipped);
            stored_anew += u64::from(missing.len() > 0);
            for data in missing {
                if events.len() == MAX_EVENTS || events.byte_len() > APPEND_BYTES {
                    self.append(origin, partition, std::mem::take(&mut events))?;
                }
                let event = EventRef {
                    event_type: RECORD_REJECTED,
                    tags: &tags,
                    data: &data,
                    kind: DataKind::Json,
                    id: None,
                    metadata: &[],
                };
                events.push(&event).map_err(wellspring_log::AppendError::from)?;
            }
        }
        if !events.is_empty() {
            self.append(origin, partition, events)?;
        }
        Ok(stored_anew)
    }

    fn append(
        &mut self,
        origin: &Origin,
        partition: i32,
        events: EncodedEvents,
    ) -> Result<(), Interruption> {
        let stored = self.partitions.entry(partition).or_default();
        let query = origin.partition_query(RECORD_REJECTED, partition);
        let condition = unchanged_since(query, stored.position);
        let appended = self.log.append(Append { events, condition, ..Append::default() })?;
        stored.position = appended.last;
        Ok(())
    }
}

/// The data of the events that store a record: one event, or as many as its size requires.
/// Concatenated, the parts of a large record form the document that a single event would have held.
fn documents(origin: &Origin, reject: &Reject) -> Vec<Vec<u8>> {
    let Reject { record, reason } = reject;
    let about = json!({
        "source": origin.source,
        "generation": origin.generation,
        "cluster": origin.cluster,
        "topic": origin.topic,
        "topic_id": origin.topic_id,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "reason": reason,
    });
    let Value::Object(about) = about else { unreachable!("an object was written") };
    let mut document = about.clone();
    put(&mut document, "key", record.key.as_deref());
    put(&mut document, "value", record.value.as_deref());
    let headers = record.headers.iter().map(|(name, value)| {
        let mut header = Map::new();
        header.insert("name".into(), name.as_str().into());
        put(&mut header, "value", value.as_deref());
        Value::Object(header)
    });
    document.insert("headers".into(), headers.collect());
    let whole = written(document);
    if whole.len() <= MAX_DATA_BYTES {
        return vec![whole];
    }
    let parts = whole.len().div_ceil(PART_BYTES);
    let slices = whole.chunks(PART_BYTES).enumerate();
    let part = |(index, slice): (usize, &[u8])| {
        let mut part = about.clone();
        part.insert("part".into(), (index + 1).into());
        part.insert("parts".into(), parts.into());
        part.insert("document_base64".into(), BASE64.encode(slice).into());
        written(part)
    };
    slices.map(part).collect()
}

fn written(document: Map<String, Value>) -> Vec<u8> {
    Value::Object(document).to_string().into_bytes()
}

/// Adds bytes as text if they are UTF-8, otherwise as BASE64 under a suffixed name; `null` if there
/// are none.
fn put(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => object.insert(name.into(), Value::Null),
        Some((_, Ok(text))) => object.insert(name.into(), text.into()),
        Some((bytes, Err(_))) => {
            object.insert(format!("{name}_base64"), BASE64.encode(bytes).into())
        }
    };
}

#[cfg(test)]
#[path = "rejects_tests.rs"]
mod tests;
