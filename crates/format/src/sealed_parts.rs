//! Sealed parts of an event: pieces of its payload, each encrypted with the key of one data
//! subject, in front of what stays clear. Without the key a part is noise for ever, so destroying
//! the key erases it in every copy of the log at once.
//!
//! | size | field |
//! |---|---|
//! | 1 | number of parts, 1 to 8 |
//!
//! then for each part:
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 1 | number of the tag, from 0, that names its subject |
//! | 1 | 1 | what it is: 1 the event's JSON data, 2 its binary data, 3 a JSON value beside the data |
//! | 2 | 4 | length of the ciphertext with its tag of 16 bytes |
//! | 6 | 32 | id of the key: derived from the key, so that it commits to it |
//! | 38 | 12 | nonce |
//! | 50 | | ciphertext and its tag: AES-256-GCM |
//!
//! This crate knows the layout alone; who has keys, seals and opens.

/// Maximum number of parts of an event.
pub const MAX_PARTS: usize = 8;
/// Bytes of a key's id.
pub const KEY_ID_BYTES: usize = 32;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 12;
/// Bytes that the cipher adds to a plaintext.
pub const SEAL_TAG_BYTES: usize = 16;
const KEY_ID_AT: usize = 6;
const NONCE_AT: usize = KEY_ID_AT + KEY_ID_BYTES;
const CIPHERTEXT_AT: usize = NONCE_AT + NONCE_BYTES;
/// Bytes that sealing adds to one part.
pub const PART_OVERHEAD_BYTES: usize = CIPHERTEXT_AT + SEAL_TAG_BYTES;

/// The id of a subject's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub [u8; KEY_ID_BYTES]);

/// What a part is of its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// All of its data, JSON.
    Json = 1,
    /// All of its data, bytes.
    Binary = 2,
    /// A JSON value about one subject, beside the data.
    Personal = 3,
}

/// One sealed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedPart<'a> {
    /// Number of the tag that names its subject.
    pub tag: u8,
    /// What it is.
    pub kind: PartKind,
    /// The key.
    pub key: KeyId,
    /// The nonce.
    pub nonce: [u8; NONCE_BYTES],
    /// The ciphertext, with the cipher's tag at its end.
    pub ciphertext: &'a [u8],
}

/// The sealed parts of a verified record, in order.
#[derive(Debug, Clone, Copy)]
pub struct SealedParts<'a> {
    rest: &'a [u8],
}

impl<'a> SealedParts<'a> {
    /// Those of a record that was parsed; `bytes` is empty if it has none.
    pub(crate) fn of(bytes: &'a [u8]) -> SealedParts<'a> {
        SealedParts { rest: bytes.get(1..).unwrap_or_default() }
    }

    /// Whether there are no more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for SealedParts<'a> {
    type Item = SealedPart<'a>;

    fn next(&mut self) -> Option<SealedPart<'a>> {
        let (part, rest) = take(self.rest)?;
        self.rest = rest;
        Some(part)
    }
}

/// The first part, and what follows it; `None` if there is no whole one.
fn take(bytes: &[u8]) -> Option<(SealedPart<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(CIPHERTEXT_AT)?;
    let kind = match head[1] {
        1 => PartKind::Json,
        2 => PartKind::Binary,
        3 => PartKind::Personal,
        _ => return None,
    };
    let length = u32::from_le_bytes(head[2..KEY_ID_AT].try_into().expect("four bytes"));
    let (ciphertext, rest) = rest.split_at_checked(length as usize)?;
    let part = SealedPart {
        tag: head[0],
        kind,
        key: KeyId(head[KEY_ID_AT..NONCE_AT].try_into().expect("thirty-two bytes")),
        nonce: head[NONCE_AT..].try_into().expect("twelve bytes"),
        ciphertext,
    };
    (ciphertext.len() >= SEAL_TAG_BYTES).then_some((part, rest))
}

/// The length of the parts at the beginning of these bytes, of an event with this many tags; `None`
/// if there are no valid ones.
pub(crate) fn length(bytes: &[u8], tags: u8) -> Option<usize> {
    let (&count, mut rest) = bytes.split_first()?;
    if !(1..=MAX_PARTS).contains(&usize::from(count)) {
        return None;
    }
    for _ in 0..count {
        let (part, after) = take(rest)?;
        // Only one part can be the data, and nothing is beside it.
        let fits = part.tag < tags && (part.kind == PartKind::Personal || count == 1);
        if !fits {
            return None;
        }
        rest = after;
    }
    Some(bytes.len() - rest.len())
}

/// Writes sealed parts, one after another. The bytes are those of
/// [`EncodedEvents::push_sealed`](crate::record::EncodedEvents::push_sealed).
#[derive(Debug, Default)]
pub struct PartsWriter {
    bytes: Vec<u8>,
}

impl PartsWriter {
    /// Adds a part with room for this plaintext, and lets `seal` encrypt it: it gets the nonce's
    /// place, and the plaintext with sixteen bytes behind it, all in place.
    pub fn push(
        &mut self,
        (tag, kind, key): (u8, PartKind, &KeyId),
        plaintext: &[u8],
        seal: impl FnOnce(&mut [u8; NONCE_BYTES], &mut [u8], &mut [u8; SEAL_TAG_BYTES]),
    ) {
        if self.bytes.is_empty() {
            self.bytes.push(0);
        }
        self.bytes[0] += 1;
        assert!(usize::from(self.bytes[0]) <= MAX_PARTS, "an event has few parts");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[tag, kind as u8]);
        let length = (plaintext.len() + SEAL_TAG_BYTES) as u32;
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&key.0);
        self.bytes.extend_from_slice(&[0; NONCE_BYTES]);
        self.bytes.extend_from_slice(plaintext);
        self.bytes.extend_from_slice(&[0; SEAL_TAG_BYTES]);
        let (head, text) = self.bytes[start..].split_at_mut(CIPHERTEXT_AT);
        let nonce = head[NONCE_AT..].as_mut_array().expect("twelve bytes");
        let (text, tag) = text.split_last_chunk_mut().expect("a tag's room");
        seal(nonce, text, tag);
    }

    /// The parts; empty if none were added.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all, for the next event.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{
        EncodedEvents, FLAG_SEALED, HEADER_BYTES, RecordFault, RecordView, RequestKey, stamp,
    };
    use proptest::prelude::*;
    use wellspring_types::{DataKind, Event, EventId};

    /// Tag, kind, key, nonce, ciphertext with the cipher's tag.
    type Part = (u8, PartKind, KeyId, [u8; NONCE_BYTES], Vec<u8>);

    fn any_parts() -> impl Strategy<Value = Vec<Part>> {
        let text = || prop::collection::vec(any::<u8>(), SEAL_TAG_BYTES..60);
        let part = move |kind: fn(bool) -> PartKind| {
            let kind = any::<bool>().prop_map(kind);
            (0..4u8, kind, any::<[u8; KEY_ID_BYTES]>().prop_map(KeyId), any::<[u8; 12]>(), text())
        };
        let data = part(|json| if json { PartKind::Json } else { PartKind::Binary });
        let personal = part(|_| PartKind::Personal);
        prop_oneof![
            prop::collection::vec(personal, 0..=MAX_PARTS),
            data.prop_map(|part| vec![part]),
        ]
    }

    fn any_event() -> impl Strategy<Value = Event> {
        let id = proptest::option::of(any::<[u8; 16]>());
        (prop::collection::vec(any::<u8>(), 0..80), any::<bool>(), id).prop_map(
            |(data, binary, id)| Event {
                data,
                kind: if binary { DataKind::Binary } else { DataKind::Json },
                id: id.map(EventId),
                metadata: vec![("m".into(), "v".into())],
                ..Event::json("T", &["a:1", "b:2", "c:3", "d:4"], "")
            },
        )
    }

    fn written(parts: &[Part]) -> Vec<u8> {
        let mut writer = PartsWriter::default();
        for (tag, kind, key, nonce, sealed) in parts {
            let (text, seal_tag) = sealed.split_at(sealed.len() - SEAL_TAG_BYTES);
            writer.push((*tag, *kind, key), &vec![0; text.len()], |place, room, tag_room| {
                *place = *nonce;
                room.copy_from_slice(text);
                tag_room.copy_from_slice(seal_tag);
            });
        }
        writer.bytes().to_vec()
    }

    /// The record of this event with these parts' bytes, which may be invalid.
    fn record(event: &Event, parts: &[u8], key: Option<&RequestKey>) -> Vec<u8> {
        let mut encoded = EncodedEvents::new();
        encoded.push_sealed(&event.as_ref(), parts, 0).unwrap();
        if let Some(key) = key {
            encoded.attach_key(key);
        }
        let mut bytes = encoded.bytes().to_vec();
        stamp(&mut bytes, 8, 9);
        bytes
    }

    fn parts_of(view: &RecordView<'_>) -> Vec<Part> {
        let parts = view.sealed_parts();
        parts.map(|p| (p.tag, p.kind, p.key, p.nonce, p.ciphertext.to_vec())).collect()
    }

    proptest! {
        #[test]
        fn an_event_with_parts_reads_back_and_its_readers_get_none_of_them(
            event in any_event(), parts in any_parts(), keyed in any::<bool>(), other in any_event(),
        ) {
            let key = RequestKey { key: "retry-1".into(), digest: [7; 16] };
            let bytes = record(&event, &written(&parts), keyed.then_some(&key));
            let view = RecordView::verify(&bytes).unwrap();
            prop_assert_eq!(parts_of(&view), &parts[..]);
            prop_assert_eq!(view.sealed_parts().is_empty(), parts.is_empty());
            prop_assert_eq!((view.data(), view.kind(), view.id()), (&event.data[..], event.kind, event.id));
            prop_assert_eq!(view.tags().collect::<Vec<_>>(), &event.tags[..]);
            prop_assert_eq!(view.metadata().collect::<Vec<_>>(), [("m", "v")]);
            prop_assert_eq!(view.request_key(), keyed.then_some(("retry-1", [7; 16], 1)));
            for (kind, data) in [(event.kind, view.data()), (other.kind, &other.data)] {
                let mut out = b"before".to_vec();
                view.push_for_readers(&mut out, kind, data);
                let given = Event { kind, data: data.to_vec(), ..event.clone() };
                prop_assert_eq!(&out[6..], record(&given, &[], None));
            }
        }

        #[test]
        fn an_event_says_the_same_as_itself_and_as_none_that_differs(
            event in any_event(), parts in any_parts(), others in any_parts(),
            at in any::<prop::sample::Index>(), bit in 0u8..8, id in any::<[u8; 16]>(),
        ) {
            let bytes = record(&event, &written(&parts), None);
            let view = RecordView::verify(&bytes).unwrap();
            let says_the_same = |bytes: &[u8]| {
                let other = RecordView::parse(bytes);
                other.map(|other| (view.says_the_same(&other), other.says_the_same(&view)))
            };
            // Under another id and as the first event of a request, it is still the same.
            let renamed = Event { id: Some(EventId(id)), ..event.clone() };
            let key = RequestKey { key: "k".into(), digest: [7; 16] };
            let again = record(&renamed, &written(&parts), Some(&key));
            prop_assert_eq!(says_the_same(&again), Ok((true, true)));
            let with_others = record(&event, &written(&others), None);
            let same = parts == others;
            prop_assert_eq!(says_the_same(&with_others), Ok((same, same)));
            // What follows the event's id in the record, and so all that it says.
            let said = HEADER_BYTES + if event.id.is_some() { 16 } else { 0 };
            let mut flipped = bytes.clone();
            let at = said + at.index(bytes.len() - said);
            flipped[at] ^= 1 << bit;
            prop_assert!(matches!(says_the_same(&flipped), Err(_) | Ok((false, false))));
            prop_assert!(RecordView::verify(&flipped).is_err());
        }

        #[test]
        fn arbitrary_bytes_as_parts_never_panic(
            event in any_event(), parts in any_parts(), mut noise in prop::collection::vec(any::<u8>(), 1..200),
            at in any::<prop::sample::Index>(), count in 0u8..12,
        ) {
            let mut bytes = written(&parts);
            let start = at.index(bytes.len() + 1);
            let end = (start + noise.len() / 20).min(bytes.len());
            bytes.splice(start..end, noise.drain(..noise.len() / 20));
            if let Some(first) = noise.first_mut() {
                *first = count;
            }
            for candidate in [bytes, noise].iter().filter(|parts| !parts.is_empty()) {
                // The encoder takes whatever it gets, and the reader judges.
                let mut encoded = EncodedEvents::new();
                encoded.push_unchecked(&event.as_ref(), candidate);
                if let Ok(view) = RecordView::verify(encoded.bytes()) {
                    let parts = parts_of(&view);
                    prop_assert!((1..=MAX_PARTS).contains(&parts.len()));
                    prop_assert!(parts.iter().all(|part| part.4.len() >= SEAL_TAG_BYTES));
                    prop_assert_eq!([&written(&parts), view.data()].concat(), [candidate, &event.data[..]].concat());
                }
            }
        }
    }

    #[test]
    fn parts_that_no_writer_makes_are_refused() {
        let event = Event::json("T", &["a:1", "b:2"], "{}");
        let part = |tag, kind| (tag, kind, KeyId([5; KEY_ID_BYTES]), [6; NONCE_BYTES], vec![7; 20]);
        let fault = |parts: &[u8]| RecordView::verify(&record(&event, parts, None)).err();
        let personal = part(1, PartKind::Personal);
        let eight = written(&vec![personal.clone(); MAX_PARTS]);
        assert_eq!(fault(&eight), None);
        assert_eq!(fault(&written(&[part(1, PartKind::Json)])), None);
        let mut nine = [&eight[..], &written(std::slice::from_ref(&personal))[1..]].concat();
        nine[0] = 9;
        let none = [&[0][..], &eight[1..]].concat();
        let beside = [PartKind::Json, PartKind::Binary]
            .map(|kind| written(&[part(0, kind), personal.clone()]));
        let no_such_tag = written(&[part(2, PartKind::Personal)]);
        let mut no_such_kind = written(std::slice::from_ref(&personal));
        no_such_kind[2] = 4;
        let mut without_seal = written(&[personal]);
        without_seal[3] = SEAL_TAG_BYTES as u8 - 1;
        let [json, binary] = beside;
        for parts in [nine, none, json, binary, no_such_tag, no_such_kind, without_seal] {
            assert_eq!(fault(&parts), Some(RecordFault::Layout), "{parts:?}");
        }
        let flagged = record(&event, &eight, None);
        let mut unflagged = flagged.clone();
        unflagged[27] ^= FLAG_SEALED;
        let [flagged, bare] = [&flagged, &unflagged].map(|bytes| RecordView::parse(bytes).unwrap());
        assert!(bare.sealed_parts().is_empty() && bare.data().len() == eight.len() + 2);
        assert!(!bare.says_the_same(&flagged) && !flagged.says_the_same(&bare));
    }
}
