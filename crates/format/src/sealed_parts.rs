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
