//! One event as bytes, on disk and in memory.
//!
//! Little endian, no padding. `docs/format.md` draws it; the fixture under `tests/fixtures` pins
//! it.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 4 | length of the whole record |
//! | 4 | 4 | CRC32C over bytes 24…end, continued over bytes 8…24 |
//! | 8 | 8 | position |
//! | 16 | 8 | recorded at, µs since 1970 UTC |
//! | 24 | 1 | length of the type |
//! | 25 | 1 | number of tags |
//! | 26 | 1 | number of metadata entries |
//! | 27 | 1 | flags: 1 binary data, 2 event id, 4 request key, 8 sealed parts |
//! | 28 | 4 | length of the data, with the sealed parts before it |
//! | 32 | 16 | event id, if flagged |
//! | … | 19+k | request key, if flagged: events of the request u16, digest 16 bytes, length u8, key |
//! | … | | type; tags, each length u8 + bytes; metadata, each key length u8, value length u16, key, value; [sealed parts](crate::sealed_parts), if flagged; data |
//!
//! The checksum covers position and time last, so that a producer can encode and checksum
//! everything else before the sequencer assigns them.

mod encoded;

pub use encoded::{EncodedEvents, Savepoint};

use crate::sealed_parts::{self, SealedParts};
use std::fmt;
use wellspring_types::{DataKind, EventId, Position, limits};

/// Size of the fixed part.
pub const HEADER_BYTES: usize = 32;
/// Maximum size of a record; anything longer is damage.
pub const MAX_RECORD_BYTES: usize = limits::MAX_REQUEST_BYTES;

/// The flag of binary data.
pub const FLAG_BINARY: u8 = 1;
const FLAG_ID: u8 = 2;
const FLAG_KEY: u8 = 4;
/// The flag of sealed parts before the data.
pub const FLAG_SEALED: u8 = 8;
const KNOWN_FLAGS: u8 = FLAG_BINARY | FLAG_ID | FLAG_KEY | FLAG_SEALED;
const DIGEST_BYTES: usize = 16;
/// Where the time stands in a record.
const TIME_AT: usize = 16;

/// Prefix of the keys of requests that a server makes itself; clients' keys may not begin with it.
pub const SERVER_KEYS: &str = "server:";

/// A client's key for a whole request, with a digest of its body: the same key with the same digest
/// is a retry, with another digest an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// 1–255 bytes, no control characters.
    pub key: String,
    /// Digest of the request body, chosen by the caller (collision resistant).
    pub digest: [u8; DIGEST_BYTES],
}

/// Iterates over records that this process encoded.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = RecordView<'_>> {
    Records { rest: bytes }
}

struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = RecordView<'a>;

    fn next(&mut self) -> Option<RecordView<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let len = read_u32(self.rest, 0) as usize;
        let (record, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(RecordView::parse(record).expect("a record this process encoded parses"))
    }
}

/// Sets an encoded record's position and time and completes its checksum. Must be called once for
/// each record.
pub fn stamp(record: &mut [u8], position: Position, recorded_at_us: u64) {
    record[8..16].copy_from_slice(&position.to_le_bytes());
    record[TIME_AT..24].copy_from_slice(&recorded_at_us.to_le_bytes());
    let crc = crc32c::crc32c_append(read_u32(record, 4), &record[8..24]);
    record[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// Two bytes at this offset, which must be there, as a number.
#[must_use]
pub fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

/// Four bytes at this offset, which must be there, as a number.
#[must_use]
pub fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Eight bytes at this offset, which must be there, as a number.
#[must_use]
pub fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Why bytes are not a valid record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// The length field is impossible or exceeds the available bytes.
    Length,
    /// The checksum does not match.
    Checksum,
    /// The parts do not fit the length, a text is not UTF-8, or a flag is unknown.
    Layout,
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecordFault::Length => "its length is impossible",
            RecordFault::Checksum => "its checksum does not match",
            RecordFault::Layout => "its layout is invalid",
        })
    }
}

/// The offsets of a record's parts. Stored beside a verified record's bytes, it restores the view
/// without parsing again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout {
    id_at: usize,
    key_at: usize,
    type_at: usize,
    tags_at: usize,
    metadata_at: usize,
    data_at: usize,
}

/// A stored event, borrowed from a buffer. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

impl<'a> RecordView<'a> {
    /// The length of the record that starts at `bytes`, if the field is plausible.
    #[must_use]
    pub fn length(bytes: &[u8]) -> Option<usize> {
        let len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        (HEADER_BYTES..=MAX_RECORD_BYTES).contains(&len).then_some(len)
    }

    /// Verifies the checksum, then parses the record, which must be exactly `bytes`.
    ///
    /// # Errors
    /// [`RecordFault`]: the bytes are damaged; reading them again helps only if they were damaged
    /// in transit.
    pub fn verify(bytes: &'a [u8]) -> Result<RecordView<'a>, RecordFault> {
        if RecordView::length(bytes) != Some(bytes.len()) {
            return Err(RecordFault::Length);
        }
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[24..]), &bytes[8..24]);
        if crc != read_u32(bytes, 4) {
            return Err(RecordFault::Checksum);
        }
        RecordView::parse(bytes)
    }

    /// Parses the record, which must be exactly `bytes`, without verifying its checksum.
    ///
    /// # Errors
    /// [`RecordFault::Length`] or [`RecordFault::Layout`].
    pub fn parse(bytes: &'a [u8]) -> Result<RecordView<'a>, RecordFault> {
        if RecordView::length(bytes) != Some(bytes.len()) {
            return Err(RecordFault::Length);
        }
        let flags = bytes[27];
        if flags & !KNOWN_FLAGS != 0 {
            return Err(RecordFault::Layout);
        }
        let mut scan = Scan { bytes, at: HEADER_BYTES };
        let id_at = if flags & FLAG_ID != 0 { scan.skip(16)? } else { 0 };
        let key_at = if flags & FLAG_KEY != 0 { scan.request_key()? } else { 0 };
        let type_at = scan.text(bytes[24] as usize)?;
        let tags_at = scan.at;
        for _ in 0..bytes[25] {
            let len = scan.byte()? as usize;
            scan.text(len)?;
        }
        let metadata_at = scan.at;
        for _ in 0..bytes[26] {
            let key_len = scan.byte()? as usize;
            let value_len = usize::from(scan.byte()?) | usize::from(scan.byte()?) << 8;
            scan.text(key_len)?;
            scan.text(value_len)?;
        }
        let sealed_at = scan.skip(read_u32(bytes, 28) as usize)?;
        if scan.at != bytes.len() {
            return Err(RecordFault::Layout);
        }
        let mut data_at = sealed_at;
        if flags & FLAG_SEALED != 0 {
            let parts = sealed_parts::length(&bytes[sealed_at..], bytes[25]);
            data_at += parts.ok_or(RecordFault::Layout)?;
        }
        let layout = Layout { id_at, key_at, type_at, tags_at, metadata_at, data_at };
        Ok(RecordView { bytes, layout })
    }

    /// The offsets of its parts.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The view of bytes that were parsed before with this layout.
    #[must_use]
    pub fn again(bytes: &'a [u8], layout: Layout) -> RecordView<'a> {
        RecordView { bytes, layout }
    }

    /// Its position.
    #[must_use]
    pub fn position(&self) -> Position {
        read_u64(self.bytes, 8)
    }

    /// When it was recorded, µs since 1970 UTC; never decreasing along positions. Before it is
    /// staged: the time that it wants, or 0.
    #[must_use]
    pub fn recorded_at_us(&self) -> u64 {
        read_u64(self.bytes, TIME_AT)
    }

    /// Its type.
    #[must_use]
    pub fn event_type(&self) -> &'a str {
        self.str(self.layout.type_at, self.bytes[24] as usize)
    }

    /// Its tags, in the given order.
    #[must_use]
    pub fn tags(&self) -> Tags<'a> {
        Tags { bytes: &self.bytes[self.layout.tags_at..self.layout.metadata_at] }
    }

    /// Number of its tags.
    #[must_use]
    pub fn tag_count(&self) -> usize {
        self.bytes[25] as usize
    }

    /// Its metadata, in the given order.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'a> {
        Metadata { bytes: &self.bytes[self.layout.metadata_at..self.sealed_at()] }
    }

    /// The kind of its [`data`](Self::data).
    #[must_use]
    pub fn kind(&self) -> DataKind {
        if self.bytes[27] & FLAG_BINARY != 0 { DataKind::Binary } else { DataKind::Json }
    }

    /// The payload that is not sealed, byte for byte as given; JSON `null` if all of it is sealed.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        &self.bytes[self.layout.data_at..]
    }

    /// Whether it has sealed parts.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.bytes[27] & FLAG_SEALED != 0
    }

    /// Where its sealed parts begin, or its data if it has none.
    fn sealed_at(&self) -> usize {
        self.bytes.len() - read_u32(self.bytes, 28) as usize
    }

    /// Its sealed parts; none in most events.
    #[must_use]
    pub fn sealed_parts(&self) -> SealedParts<'a> {
        SealedParts::of(&self.bytes[self.sealed_at()..self.layout.data_at])
    }

    /// Whether it says the same as another event, besides their ids: type, tags, metadata, data and
    /// sealed parts.
    #[must_use]
    pub fn says_the_same(&self, other: &RecordView<'_>) -> bool {
        let said = |record: &RecordView<'a>| &record.bytes[record.layout.type_at..];
        self.bytes[24..27] == other.bytes[24..27]
            && self.kind() == other.kind()
            && self.layout.data_at - self.sealed_at() == other.layout.data_at - other.sealed_at()
            && said(self) == &other.bytes[other.layout.type_at..]
    }

    /// The event id, if the client supplied one.
    #[must_use]
    pub fn id(&self) -> Option<EventId> {
        let bytes = self.bytes.get(self.layout.id_at..self.layout.id_at + 16)?;
        (self.layout.id_at != 0).then(|| EventId(bytes.try_into().expect("sixteen bytes")))
    }

    /// If this is the first event of a request with a key: the key, the digest of the body, and the
    /// number of events in the request.
    #[must_use]
    pub fn request_key(&self) -> Option<(&'a str, [u8; DIGEST_BYTES], u32)> {
        if self.layout.key_at == 0 {
            return None;
        }
        let count = u32::from(read_u16(self.bytes, self.layout.key_at));
        let digest_at = self.layout.key_at + 2;
        let digest = self.bytes[digest_at..digest_at + DIGEST_BYTES].try_into().expect("digest");
        let len_at = digest_at + DIGEST_BYTES;
        Some((self.str(len_at + 1, self.bytes[len_at] as usize), digest, count))
    }

    /// Appends the record as its readers get it: without the key of its request, which is between
    /// the client that sent it and the log, without sealed parts, and with this data in place of
    /// its own.
    pub fn push_for_readers(&self, out: &mut Vec<u8>, kind: DataKind, data: &[u8]) {
        let is_whole =
            self.layout.key_at == 0 && !self.is_sealed() && std::ptr::eq(data, self.data());
        if is_whole {
            return out.extend_from_slice(self.bytes);
        }
        let start = out.len();
        let id_end = if self.layout.id_at == 0 { HEADER_BYTES } else { self.layout.id_at + 16 };
        out.extend_from_slice(&self.bytes[..id_end]);
        out.extend_from_slice(&self.bytes[self.layout.type_at..self.sealed_at()]);
        out.extend_from_slice(data);
        let record = &mut out[start..];
        let length = record.len() as u32;
        record[..4].copy_from_slice(&length.to_le_bytes());
        record[27] &= FLAG_ID;
        record[27] |= if kind == DataKind::Binary { FLAG_BINARY } else { 0 };
        record[28..32].copy_from_slice(&(data.len() as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&record[24..]), &record[8..24]);
        record[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// Length of the whole record in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The stored checksum (CRC32C) of the rest of the record, including position and time.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        read_u32(self.bytes, 4)
    }

    fn str(&self, at: usize, len: usize) -> &'a str {
        // `parse` has checked every text.
        std::str::from_utf8(&self.bytes[at..at + len]).unwrap_or_default()
    }
}

/// Cursor for parsing a record; every step is bounds-checked.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn skip(&mut self, len: usize) -> Result<usize, RecordFault> {
        let start = self.at;
        let end = start.checked_add(len).ok_or(RecordFault::Layout)?;
        if end > self.bytes.len() {
            return Err(RecordFault::Layout);
        }
        self.at = end;
        Ok(start)
    }

    fn byte(&mut self) -> Result<u8, RecordFault> {
        let at = self.skip(1)?;
        Ok(self.bytes[at])
    }

    fn text(&mut self, len: usize) -> Result<usize, RecordFault> {
        let start = self.skip(len)?;
        match std::str::from_utf8(&self.bytes[start..self.at]) {
            Ok(_) => Ok(start),
            Err(_) => Err(RecordFault::Layout),
        }
    }

    fn request_key(&mut self) -> Result<usize, RecordFault> {
        let start = self.skip(2 + DIGEST_BYTES)?;
        let len = self.byte()? as usize;
        self.text(len)?;
        Ok(start)
    }
}

/// Iterator over the tags of a record.
#[derive(Debug, Clone, Copy)]
pub struct Tags<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (&len, rest) = self.bytes.split_first()?;
        let (tag, rest) = rest.split_at(len as usize);
        self.bytes = rest;
        Some(std::str::from_utf8(tag).unwrap_or_default())
    }
}

/// Iterator over the metadata of a record: key, value.
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for Metadata<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        if self.bytes.is_empty() {
            return None;
        }
        let key_len = self.bytes[0] as usize;
        let value_len = read_u16(self.bytes, 1) as usize;
        let (key, rest) = self.bytes[3..].split_at(key_len);
        let (value, rest) = rest.split_at(value_len);
        self.bytes = rest;
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        Some((text(key), text(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wellspring_types::Event;

    fn any_event() -> impl Strategy<Value = Event> {
        let text = "[a-zé:]{1,20}";
        (
            text,
            prop::collection::btree_set(text, 0..6),
            prop::collection::vec(any::<u8>(), 0..200),
            any::<bool>(),
            proptest::option::of(any::<[u8; 16]>()),
            prop::collection::btree_map(text, "[ -~]{0,30}", 0..4),
        )
            .prop_map(|(event_type, tags, data, json, id, metadata)| Event {
                event_type,
                tags: tags.into_iter().collect(),
                data,
                kind: if json { DataKind::Json } else { DataKind::Binary },
                id: id.map(EventId),
                metadata: metadata.into_iter().collect(),
            })
    }

    fn owned(view: &RecordView<'_>) -> Event {
        Event {
            event_type: view.event_type().to_owned(),
            tags: view.tags().map(str::to_owned).collect(),
            data: view.data().to_vec(),
            kind: view.kind(),
            id: view.id(),
            metadata: view.metadata().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        }
    }

    proptest! {
        #[test]
        fn an_event_reads_back_as_encoded(
            event in any_event(), position in 1u64.., time in any::<u64>(), keyed in any::<bool>(),
        ) {
            let mut encoded = EncodedEvents::new();
            encoded.push(&event.as_ref()).unwrap();
            let key = RequestKey { key: "retry-1".into(), digest: [7; 16] };
            if keyed {
                encoded.attach_key(&key);
            }
            let mut bytes = encoded.bytes().to_vec();
            stamp(&mut bytes, position, time);
            let view = RecordView::verify(&bytes).unwrap();
            prop_assert_eq!(owned(&view), event);
            prop_assert_eq!(view.position(), position);
            prop_assert_eq!(view.recorded_at_us(), time);
            prop_assert_eq!(view.request_key(), keyed.then_some(("retry-1", [7; 16], 1)));
        }

        #[test]
        fn readers_get_everything_but_the_key_and_perhaps_other_data(
            event in any_event(), keyed in any::<bool>(), other in proptest::option::of(any::<[u8; 9]>()),
        ) {
            let mut encoded = EncodedEvents::new();
            encoded.push(&event.as_ref()).unwrap();
            if keyed {
                encoded.attach_key(&RequestKey { key: "secret".into(), digest: [7; 16] });
            }
            let mut bytes = encoded.bytes().to_vec();
            stamp(&mut bytes, 8, 9);
            let stored = RecordView::verify(&bytes).unwrap();
            let data = other.as_ref().map_or(stored.data(), |other| &other[..]);
            let mut out = b"before".to_vec();
            stored.push_for_readers(&mut out, event.kind, data);
            let told = RecordView::verify(&out[6..]).unwrap();
            prop_assert_eq!(told.request_key(), None);
            prop_assert_eq!((told.position(), told.recorded_at_us()), (8, 9));
            prop_assert_eq!(owned(&told), Event { data: data.to_vec(), ..event });
        }

        #[test]
        fn any_flipped_bit_is_noticed(event in any_event(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut encoded = EncodedEvents::new();
            encoded.push(&event.as_ref()).unwrap();
            let mut bytes = encoded.bytes().to_vec();
            stamp(&mut bytes, 9, 9);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(RecordView::verify(&bytes).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), fix in any::<bool>()) {
            if fix && bytes.len() >= HEADER_BYTES {
                let len = (bytes.len() as u32).to_le_bytes();
                bytes[..4].copy_from_slice(&len);
            }
            if let Ok(view) = RecordView::parse(&bytes) {
                let _ = (owned(&view), view.request_key());
            }
        }
    }

    #[test]
    fn a_request_is_bounded_in_events_and_bytes() {
        let mut encoded = EncodedEvents::new();
        let small = Event::json("T", &[], "1");
        for _ in 0..limits::MAX_EVENTS {
            encoded.push(&small.as_ref()).unwrap();
        }
        assert!(encoded.push(&small.as_ref()).unwrap_err().reason.is_size());

        let mut encoded = EncodedEvents::new();
        let large = Event { data: vec![b' '; limits::MAX_DATA_BYTES], ..small };
        let fits = (0..20).take_while(|_| encoded.push(&large.as_ref()).is_ok()).count();
        assert_eq!(fits, 15);
        assert_eq!(encoded.len(), 15);
        assert!(encoded.byte_len() <= limits::MAX_REQUEST_BYTES);
    }
}
