//! The key of one subject.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wellspring_format::sealed_parts::{KeyId, NONCE_BYTES, PartKind, SEAL_TAG_BYTES, SealedPart};
use wellspring_types::limits;
use zeroize::Zeroizing;

/// Maximum length of a subject, in bytes: of a tag such as `student:ada`.
pub const MAX_SUBJECT_BYTES: usize = 120;

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> io::Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    let filled = SystemRandom::new().fill(&mut *bytes);
    filled.map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(bytes)
}

/// Nonces that are drawn at a time: one system call for all.
const NONCES: usize = 64;

thread_local! {
    /// Random bytes for the next nonces of this thread.
    static DRAWN: RefCell<Vec<[u8; NONCE_BYTES]>> = const { RefCell::new(Vec::new()) };
}

/// A random nonce.
pub(crate) fn random_nonce() -> io::Result<[u8; NONCE_BYTES]> {
    DRAWN.with_borrow_mut(|drawn| {
        if drawn.is_empty() {
            let bytes = random::<{ NONCES * NONCE_BYTES }>()?;
            drawn.extend(bytes.as_chunks().0);
        }
        Ok(drawn.pop().expect("just drawn"))
    })
}

/// The key of one subject, with what is derived from it (HKDF-SHA-256): its id, the key of the
/// cipher, and the key of digests. Another key has another id, so what names the id commits to the
/// key: no ciphertext has two readings.
pub struct SubjectKey {
    /// Its subject, a tag.
    pub(crate) subject: Box<str>,
    /// Its id.
    pub(crate) id: KeyId,
    cipher: LessSafeKey,
    pub(crate) digests: hmac::Key,
    /// The key itself until it is durable.
    pub(crate) unsaved: Option<Zeroizing<[u8; 32]>>,
    pub(crate) is_durable: AtomicBool,
    /// Alive while any copy of the key is in memory.
    pub(crate) _users: Arc<()>,
}

impl fmt::Debug for SubjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubjectKey").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// 32 bytes of output.
struct Bytes32;

impl KeyType for Bytes32 {
    fn len(&self) -> usize {
        32
    }
}

/// What a part is bound to: what it is, its subject and its event's type. Neither position nor
/// history is, as sealing precedes staging, and a restored log stays readable.
pub(crate) fn bound(kind: PartKind, subject: &str, event_type: &str) -> BoundBytes {
    let lengths = [kind as u8, subject.len() as u8];
    let mut bound = BoundBytes { bytes: [0; BOUND_BYTES], length: 0 };
    for piece in [b"wellspring part 1", &lengths[..], subject.as_bytes(), event_type.as_bytes()] {
        bound.bytes[bound.length..bound.length + piece.len()].copy_from_slice(piece);
        bound.length += piece.len();
    }
    bound
}

/// The longest tag and type of an event, and what stands before them.
const BOUND_BYTES: usize = 19 + limits::MAX_TAG_BYTES + limits::MAX_TYPE_BYTES;

/// What a part is bound to, without an allocation.
pub(crate) struct BoundBytes {
    bytes: [u8; BOUND_BYTES],
    length: usize,
}

impl std::ops::Deref for BoundBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn derive(key: &Prk, what: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    let info = [what];
    let derived = key.expand(&info, Bytes32).and_then(|okm| okm.fill(&mut *out));
    derived.expect("32 bytes are not too many");
    out
}

impl SubjectKey {
    /// A key of these bytes.
    pub(crate) fn of(subject: &str, bytes: &Zeroizing<[u8; 32]>, users: Arc<()>) -> SubjectKey {
        let key = Salt::new(HKDF_SHA256, b"wellspring subject key 1").extract(&**bytes);
        let cipher = derive(&key, b"seal");
        SubjectKey {
            subject: subject.into(),
            id: KeyId(*derive(&key, b"id")),
            cipher: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &*cipher).expect("32 bytes")),
            digests: hmac::Key::new(hmac::HMAC_SHA256, &*derive(&key, b"digest")),
            unsaved: None,
            is_durable: AtomicBool::new(true),
            _users: users,
        }
    }

    /// A new random key, not durable yet.
    pub(crate) fn draw(subject: &str, users: Arc<()>) -> io::Result<SubjectKey> {
        let bytes = random()?;
        let key = SubjectKey::of(subject, &bytes, users);
        Ok(SubjectKey { unsaved: Some(bytes), is_durable: AtomicBool::new(false), ..key })
    }

    /// Encrypts a text in place.
    pub(crate) fn seal(
        &self,
        nonce: [u8; NONCE_BYTES],
        bound: &[u8],
        text: &mut [u8],
        tag: &mut [u8; SEAL_TAG_BYTES],
    ) {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let made = self.cipher.seal_in_place_separate_tag(nonce, Aad::from(bound), text);
        // Only a text of 64 GiB is too long.
        tag.copy_from_slice(made.expect("a part is shorter").as_ref());
    }

    /// The text of a part; `None`: it was changed, or is of another event type or subject.
    pub(crate) fn open(
        &self,
        part: &SealedPart<'_>,
        subject: &str,
        event_type: &str,
    ) -> Option<Vec<u8>> {
        let mut text = part.ciphertext.to_vec();
        let nonce = Nonce::assume_unique_for_key(part.nonce);
        let bound = bound(part.kind, subject, event_type);
        let length = self.cipher.open_in_place(nonce, Aad::from(&*bound), &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }

    /// Whether it survives a crash.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.is_durable.load(Ordering::Acquire)
    }
}
