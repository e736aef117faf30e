//! A slot of the store: one subject's key, or what is left of it.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 4 | CRC32C of the rest |
//! | 4 | 1 | state: 1 live, 3 erased |
//! | 5 | 1 | length of the subject |
//! | 6 | 2 | generation of the root |
//! | 8 | 8 | number of the change of the store that wrote it |
//! | 16 | 8 | when, µs since 1970 UTC |
//! | 24 | 8 | erased: until when nothing is stored about the subject; else zero |
//! | 32 | 32 | id of the key |
//! | 64 | 12 | nonce; zero if erased |
//! | 76 | 48 | key, wrapped under the root; zero if erased |
//! | 124 | 120 | subject |
//! | 244 | 12 | zero |
//!
//! Two of them are a sector, which a disk writes whole, so overwriting one leaves the old one or
//! the new one.

use crate::key::MAX_SUBJECT_BYTES;
use crate::roots::{KeyRoots, WRAPPED_BYTES};
use std::io;
use wellspring_format::record::{read_u16, read_u32, read_u64};
use wellspring_format::sealed_parts::{KEY_ID_BYTES, KeyId, NONCE_BYTES};
use zeroize::Zeroizing;

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 256;
const LIVE: u8 = 1;
const ERASED: u8 = 3;
const ID_AT: usize = 32;
const NONCE_AT: usize = ID_AT + KEY_ID_BYTES;
const WRAPPED_AT: usize = NONCE_AT + NONCE_BYTES;
const SUBJECT_AT: usize = WRAPPED_AT + WRAPPED_BYTES;

/// A decoded slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) subject: Box<str>,
    pub(crate) id: KeyId,
    pub(crate) content: SlotContent,
    /// Number of the change that wrote it.
    pub(crate) change: u64,
    pub(crate) changed_us: u64,
}

/// What a slot holds of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotContent {
    Live { generation: u16, nonce: [u8; NONCE_BYTES], wrapped: [u8; WRAPPED_BYTES] },
    Erased { fence_until_us: u64 },
}

/// What a key is bound to when it is wrapped.
fn bound(subject: &str, id: &KeyId) -> Vec<u8> {
    [b"wellspring subject key 1", &id.0[..], subject.as_bytes()].concat()
}

impl SlotContent {
    /// A key wrapped under the newest root.
    pub(crate) fn wrap(
        roots: &KeyRoots,
        subject: &str,
        id: &KeyId,
        key: &[u8; 32],
    ) -> io::Result<SlotContent> {
        let (nonce, wrapped) = roots.wrap(&bound(subject, id), key)?;
        Ok(SlotContent::Live { generation: roots.newest(), nonce, wrapped })
    }
}

impl Slot {
    /// Its key; `None` if it is erased, or the roots do not open it.
    pub(crate) fn unwrap(&self, roots: &KeyRoots) -> Option<Zeroizing<[u8; 32]>> {
        match &self.content {
            SlotContent::Live { generation, nonce, wrapped } => {
                roots.unwrap(*generation, &bound(&self.subject, &self.id), *nonce, wrapped)
            }
            SlotContent::Erased { .. } => None,
        }
    }

    pub(crate) fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[5] = self.subject.len() as u8;
        bytes[8..16].copy_from_slice(&self.change.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.changed_us.to_le_bytes());
        bytes[ID_AT..NONCE_AT].copy_from_slice(&self.id.0);
        match &self.content {
            SlotContent::Live { generation, nonce, wrapped } => {
                bytes[4] = LIVE;
                bytes[6..8].copy_from_slice(&generation.to_le_bytes());
                bytes[NONCE_AT..WRAPPED_AT].copy_from_slice(nonce);
                bytes[WRAPPED_AT..SUBJECT_AT].copy_from_slice(wrapped);
            }
            SlotContent::Erased { fence_until_us } => {
                bytes[4] = ERASED;
                bytes[24..32].copy_from_slice(&fence_until_us.to_le_bytes());
            }
        }
        bytes[SUBJECT_AT..SUBJECT_AT + self.subject.len()].copy_from_slice(self.subject.as_bytes());
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None`: damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Slot> {
        if bytes.len() != SLOT_BYTES || read_u32(bytes, 0) != crc32c::crc32c(&bytes[4..]) {
            return None;
        }
        let length = usize::from(bytes[5]);
        let subject = bytes.get(SUBJECT_AT..SUBJECT_AT + length)?;
        let content = match bytes[4] {
            LIVE => SlotContent::Live {
                generation: read_u16(bytes, 6),
                nonce: bytes[NONCE_AT..WRAPPED_AT].try_into().ok()?,
                wrapped: bytes[WRAPPED_AT..SUBJECT_AT].try_into().ok()?,
            },
            ERASED => SlotContent::Erased { fence_until_us: read_u64(bytes, 24) },
            _ => return None,
        };
        Some(Slot {
            subject: std::str::from_utf8(subject)
                .ok()
                .filter(|_| length <= MAX_SUBJECT_BYTES)?
                .into(),
            id: KeyId(bytes[ID_AT..NONCE_AT].try_into().ok()?),
            content,
            change: read_u64(bytes, 8),
            changed_us: read_u64(bytes, 16),
        })
    }
}
