//! Sealing the parts of a request's events: AES-256-GCM with the keys of their subjects.

use crate::fault::SealRefusal;
use crate::key::{SubjectKey, bound, random_nonce};
use crate::keys::SubjectKeys;
use ring::hmac;
use std::sync::Arc;
use wellspring_format::sealed_parts::{KeyId, NONCE_BYTES, PartKind, PartsWriter};
use wellspring_types::EventId;

/// What the nonce of a part is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonceSalt {
    /// Random bytes: equal plaintexts differ sealed.
    Random,
    /// The event's id: the same event sealed again has the same bytes, so that a retry is known.
    Id(EventId),
    /// The event's number in a request that has to be the same when it is repeated.
    Number(u64),
}

/// A part to be sealed.
#[derive(Debug, Clone, Copy)]
pub struct PlainPart<'a> {
    /// Number of the tag that names its subject.
    pub tag: u8,
    /// Its subject.
    pub subject: &'a str,
    /// What it is.
    pub kind: PartKind,
    /// Its content.
    pub plaintext: &'a [u8],
}

/// Seals parts of a request's events, one event at a time.
#[derive(Debug)]
pub struct Sealer {
    keys: Option<Arc<SubjectKeys>>,
    now_us: u64,
    used: SealedWith,
    /// Keys that it has let go of, in the order of their first use.
    loose: Vec<KeyId>,
    writer: PartsWriter,
}

/// The keys of a request. While they are here, an erasure of their subjects waits, so they are kept
/// until the request's events are stored or refused.
#[derive(Debug, Default)]
pub struct SealedWith(Vec<Arc<SubjectKey>>);

impl std::fmt::Debug for SubjectKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubjectKeys").finish_non_exhaustive()
    }
}

impl Sealer {
    /// A sealer at this time; without keys it refuses everything.
    #[must_use]
    pub fn new(keys: Option<Arc<SubjectKeys>>, now_us: u64) -> Sealer {
        let (used, writer) = (SealedWith::default(), PartsWriter::default());
        Sealer { keys, now_us, used, loose: Vec::new(), writer }
    }

    /// Seals the parts of one event; the bytes are valid until the next one.
    ///
    /// # Errors
    /// The number of the part that cannot be sealed, and why.
    pub fn seal(
        &mut self,
        event_type: &str,
        salt: NonceSalt,
        parts: &[PlainPart<'_>],
    ) -> Result<&[u8], (usize, SealRefusal)> {
        self.writer.clear();
        for (at, part) in parts.iter().enumerate() {
            let key = self.key(part.subject).map_err(|refusal| (at, refusal))?;
            let bound = bound(part.kind, part.subject, event_type);
            let nonce = nonce(&key, salt, at as u8, &bound, part.plaintext);
            let nonce = nonce.map_err(|why| (at, SealRefusal::Unavailable(why.to_string())))?;
            self.writer.push((part.tag, part.kind, &key.id), part.plaintext, |place, text, tag| {
                *place = nonce;
                key.seal(nonce, &bound, text, tag);
            });
        }
        Ok(self.writer.bytes())
    }

    /// Finds or makes the key of a subject, before anything is sealed.
    ///
    /// # Errors
    /// Why nothing can be sealed for it.
    pub fn begin(&mut self, subject: &str) -> Result<(), SealRefusal> {
        self.key(subject).map(drop)
    }

    fn key(&mut self, subject: &str) -> Result<Arc<SubjectKey>, SealRefusal> {
        if let Some(key) = self.used.0.iter().find(|key| &*key.subject == subject) {
            return Ok(Arc::clone(key));
        }
        let Some(keys) = &self.keys else {
            let why = "this server keeps no keys of data subjects";
            return Err(SealRefusal::Unavailable(why.to_owned()));
        };
        let key = keys.sealing_key(subject, self.now_us)?;
        self.used.0.push(Arc::clone(&key));
        Ok(key)
    }

    /// The keys that it has used.
    #[must_use]
    pub fn used(&self) -> &SealedWith {
        &self.used
    }

    /// The same, to be kept.
    #[must_use]
    pub fn into_used(self) -> SealedWith {
        debug_assert!(self.loose.is_empty(), "keys that were let go of are held again first");
        self.used
    }

    /// Lets go of the keys, so that an erasure need not wait for what the client has still to send.
    pub fn let_go(&mut self) {
        for key in self.used.0.drain(..) {
            if !self.loose.contains(&key.id) {
                self.loose.push(key.id);
            }
        }
    }

    /// The keys that it has used, held again: what they sealed can be staged.
    ///
    /// # Errors
    /// One is erased meanwhile, or cannot be read.
    pub fn into_held(mut self) -> Result<SealedWith, SealRefusal> {
        self.let_go();
        let Some(keys) = &self.keys else { return Ok(SealedWith::default()) };
        self.loose.iter().map(|id| keys.hold(id)).collect::<Result<_, _>>().map(SealedWith)
    }
}

impl SealedWith {
    /// Whether nothing was sealed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every key survives a crash; otherwise [`SubjectKeys::persist`] comes before staging.
    #[must_use]
    pub fn are_durable(&self) -> bool {
        self.0.iter().all(|key| key.is_durable())
    }

    /// What a digest of a request's plaintext may be stored as. A plain digest would let anyone
    /// test guesses about erased data; with keys among these it is keyed.
    #[must_use]
    pub fn digest(&self, plain: [u8; 16]) -> [u8; 16] {
        // Keyed by all of them: it ends with any.
        self.0.iter().fold(plain, |digest, key| {
            let tag = hmac::sign(&key.digests, &digest);
            tag.as_ref()[..16].try_into().expect("sixteen bytes")
        })
    }
}

/// The nonce of a part. Unless it is random, it is a keyed digest of everything that is sealed, so
/// that two different plaintexts never share one.
fn nonce(
    key: &SubjectKey,
    salt: NonceSalt,
    at: u8,
    bound: &[u8],
    plaintext: &[u8],
) -> std::io::Result<[u8; NONCE_BYTES]> {
    let salt = match salt {
        NonceSalt::Random => return random_nonce(),
        NonceSalt::Id(id) => id.0,
        NonceSalt::Number(number) => u128::from(number).to_be_bytes(),
    };
    let mut context = hmac::Context::with_key(&key.digests);
    context.update(b"wellspring nonce 1");
    context.update(&salt);
    context.update(&[at]);
    context.update(&(bound.len() as u64).to_be_bytes());
    context.update(bound);
    context.update(plaintext);
    Ok(context.sign().as_ref()[..NONCE_BYTES].try_into().expect("twelve bytes"))
}
