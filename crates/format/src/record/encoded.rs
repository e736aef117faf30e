//! The events of an append, encoded before the sequencer gives them positions.

use super::{
    DIGEST_BYTES, FLAG_BINARY, FLAG_ID, FLAG_KEY, FLAG_SEALED, HEADER_BYTES, RecordView,
    RequestKey, TIME_AT, read_u32, read_u64, records,
};
use wellspring_types::{DataKind, EventRef, Invalid, Reason, limits};

/// The events of one append: validated, encoded, and checksummed except for their positions.
#[derive(Debug, Default, Clone)]
pub struct EncodedEvents {
    bytes: Vec<u8>,
    count: u32,
    /// Whether an event of them wants a time.
    has_times: bool,
}

/// A point to which [`EncodedEvents`] can be rewound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    bytes: usize,
    count: u32,
}

impl EncodedEvents {
    /// No events yet.
    #[must_use]
    pub fn new() -> EncodedEvents {
        EncodedEvents::default()
    }

    /// No events yet, with capacity for `bytes` of encoded records.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> EncodedEvents {
        EncodedEvents { bytes: Vec::with_capacity(bytes), ..EncodedEvents::default() }
    }

    /// Validated records with zero positions and times and without a request key.
    #[must_use]
    pub fn of_records(bytes: Vec<u8>, count: u32) -> EncodedEvents {
        EncodedEvents { bytes, count, has_times: false }
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Encoded size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The records as laid out on disk, with zero positions, and zero times unless
    /// [wanted](Self::push_recorded). Equal events have equal bytes within a format version.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The records in order, with zero positions, and zero times unless
    /// [wanted](Self::push_recorded).
    pub fn iter(&self) -> impl Iterator<Item = RecordView<'_>> {
        records(&self.bytes)
    }

    /// Adds one event.
    ///
    /// # Errors
    /// [`Invalid`] if the event violates a limit, or if the request would hold too many events or
    /// bytes; nothing is added then. A retry does not help.
    pub fn push<T: AsRef<str>>(&mut self, event: &EventRef<'_, T>) -> Result<(), Invalid> {
        self.push_sealed(event, &[], 0)
    }

    /// Adds one event with these [sealed parts](crate::sealed_parts), or none, that was recorded at
    /// this time, as for [`push_recorded`](Self::push_recorded).
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_sealed<T: AsRef<str>>(
        &mut self,
        event: &EventRef<'_, T>,
        parts: &[u8],
        recorded_at_us: u64,
    ) -> Result<(), Invalid> {
        event.check()?;
        let too_many = |count, limit| Invalid {
            field: String::new(),
            reason: Reason::TooMany { count, limit },
        };
        if self.len() == limits::MAX_EVENTS {
            return Err(too_many(self.len() + 1, limits::MAX_EVENTS));
        }
        let start = self.bytes.len();
        encode(&mut self.bytes, event, parts);
        if self.bytes.len() > limits::MAX_REQUEST_BYTES {
            let bytes = self.bytes.len();
            self.bytes.truncate(start);
            let reason = Reason::TooLong { bytes, limit: limits::MAX_REQUEST_BYTES };
            return Err(Invalid { field: String::new(), reason });
        }
        self.bytes[start + TIME_AT..start + TIME_AT + 8]
            .copy_from_slice(&recorded_at_us.to_le_bytes());
        self.has_times |= recorded_at_us != 0;
        self.count += 1;
        Ok(())
    }

    /// Adds one event that was recorded at this time, µs since 1970 UTC; 0: the time at which it is
    /// staged. An append is refused if the time is before that of the event before it, or in the
    /// future.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_recorded<T: AsRef<str>>(
        &mut self,
        event: &EventRef<'_, T>,
        recorded_at_us: u64,
    ) -> Result<(), Invalid> {
        self.push_sealed(event, &[], recorded_at_us)
    }

    /// Adds one event without checking it, for a digest of what these events count as. The result
    /// must not be appended.
    pub fn push_unchecked<T: AsRef<str>>(&mut self, event: &EventRef<'_, T>, parts: &[u8]) {
        encode(&mut self.bytes, event, parts);
        self.count += 1;
    }

    /// The events that were added since `savepoint`, which must come from this object.
    #[must_use]
    pub fn after(&self, savepoint: Savepoint) -> EncodedEvents {
        let bytes = self.bytes[savepoint.bytes..].to_vec();
        let count = self.count - savepoint.count;
        EncodedEvents { bytes, count, has_times: self.has_times }
    }

    /// Adds events of another, without checking the limits of all of them, as
    /// [`push_unchecked`](Self::push_unchecked).
    pub fn extend(&mut self, events: &EncodedEvents) {
        self.bytes.extend_from_slice(&events.bytes);
        self.count += events.count;
        self.has_times |= events.has_times;
    }

    /// Whether an event of these was pushed with a time of its own.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.has_times
    }

    /// The times that the events want, in order; 0 for one that wants none.
    pub fn wanted_times_us(&self) -> impl Iterator<Item = u64> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let record = rest.split_off(..rest.len().min(read_length(rest)?))?;
            Some(read_u64(record, TIME_AT))
        })
    }

    /// A point to [`rewind`](Self::rewind) to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { bytes: self.bytes.len(), count: self.count }
    }

    /// Removes every event pushed since `savepoint`, which must come from this object.
    pub fn rewind(&mut self, savepoint: Savepoint) {
        assert!(savepoint.count <= self.count, "a savepoint lies in the past");
        self.bytes.truncate(savepoint.bytes);
        self.count = savepoint.count;
    }

    /// Marks the first event as the first of a request with this key. Must be called once, after
    /// every event has been pushed.
    pub fn attach_key(&mut self, key: &RequestKey) {
        // A request that was returned unjudged has it already.
        if self.bytes[27] & FLAG_KEY != 0 {
            return;
        }
        let first_len = read_u32(&self.bytes, 0) as usize;
        let id_bytes = if self.bytes[27] & FLAG_ID != 0 { 16 } else { 0 };
        let at = HEADER_BYTES + id_bytes;
        let mut section = Vec::with_capacity(2 + DIGEST_BYTES + 1 + key.key.len());
        section.extend_from_slice(&(self.count as u16).to_le_bytes());
        section.extend_from_slice(&key.digest);
        section.push(key.key.len() as u8);
        section.extend_from_slice(key.key.as_bytes());
        let len = first_len + section.len();
        self.bytes.splice(at..at, section);
        self.bytes[27] |= FLAG_KEY;
        self.bytes[..4].copy_from_slice(&(len as u32).to_le_bytes());
        let crc = crc32c::crc32c(&self.bytes[24..len]);
        self.bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The length of the first of these records, if there is one.
fn read_length(records: &[u8]) -> Option<usize> {
    (!records.is_empty()).then(|| read_u32(records, 0) as usize)
}

fn encode<T: AsRef<str>>(out: &mut Vec<u8>, event: &EventRef<'_, T>, parts: &[u8]) {
    let start = out.len();
    let flags = if event.kind == DataKind::Binary { FLAG_BINARY } else { 0 }
        | if event.id.is_some() { FLAG_ID } else { 0 }
        | if parts.is_empty() { 0 } else { FLAG_SEALED };
    out.extend_from_slice(&[0; 24]);
    out.extend_from_slice(&[
        event.event_type.len() as u8,
        event.tags.len() as u8,
        event.metadata.len() as u8,
        flags,
    ]);
    out.extend_from_slice(&((parts.len() + event.data.len()) as u32).to_le_bytes());
    if let Some(id) = event.id {
        out.extend_from_slice(&id.0);
    }
    out.extend_from_slice(event.event_type.as_bytes());
    for tag in event.tags {
        let tag = tag.as_ref();
        out.push(tag.len() as u8);
        out.extend_from_slice(tag.as_bytes());
    }
    for (key, value) in event.metadata {
        let (key, value) = (key.as_ref(), value.as_ref());
        out.push(key.len() as u8);
        out.extend_from_slice(&(value.len() as u16).to_le_bytes());
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(parts);
    out.extend_from_slice(event.data);
    let len = (out.len() - start) as u32;
    let crc = crc32c::crc32c(&out[start + 24..]);
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}
