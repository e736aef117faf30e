//! A shared log whose entries the engine cannot read: they are sealed before they are offered, and
//! opened when they arrive. For the system log, which lists accounts, so that operators of the
//! engine's machines need not be trusted with it.
//!
//! ```text
//! byte 0       the format, 1
//! 1 to 4       fingerprint of the cluster key
//! 5 to 16      nonce, random
//! 17 to n-17   the entry, encrypted with AES-256-GCM
//! n-16 to n-1  its tag, over this and the log's name
//! ```
//! The engine still sees when entries come and how long they are, and can hold them back, as any
//! engine can. It cannot forge an entry, change one or move one from another log. What it repeats
//! or reorders is void by the rule that every node applies.

use super::ClusterKey;
use super::key::KeyFingerprint;
use crate::random;
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use wellspring_log::shared::{
    Arrival, AskId, EngineLeader, Fetched, LogStart, OfferId, Place, PlacedEntry, SharedLimits,
    SharedLog, SharedLogError,
};

/// The version of the format. Others are refused.
const FORMAT: u8 = 1;
const FINGERPRINT_BYTES: usize = 4;
const TAG_BYTES: usize = 16;
/// Bytes before the ciphertext.
const HEADER_BYTES: usize = 1 + FINGERPRINT_BYTES + NONCE_LEN;
/// Bytes that sealing adds to an entry.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES;

/// Seals and opens the entries of one log.
pub struct EntrySeal {
    /// Its name, with its incarnation if it has one.
    name: String,
    key: LessSafeKey,
    fingerprint: KeyFingerprint,
}

/// A shared log that seals another one's entries.
pub struct SealedLog<L: ?Sized = dyn SharedLog> {
    seal: EntrySeal,
    /// The first entry that could not be opened: nothing behind it may arrive.
    fault: Option<SharedLogError>,
    inner: Box<L>,
}

impl<L: ?Sized> fmt::Debug for SealedLog<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedLog({}, {})", self.seal.name, self.seal.fingerprint)
    }
}

impl<L: SharedLog + ?Sized> SealedLog<L> {
    /// Seals the entries of the log of this name in `inner`. The name is the same on all nodes, and
    /// unique in the cluster.
    pub fn new(inner: Box<L>, cluster: &ClusterKey, name: &str) -> SealedLog<L> {
        SealedLog { seal: EntrySeal::new(cluster, name), fault: None, inner }
    }
}

impl EntrySeal {
    /// That of the log of this name.
    #[must_use]
    pub fn new(cluster: &ClusterKey, name: &str) -> EntrySeal {
        let (key, fingerprint) = (cluster.sealing(name), cluster.fingerprint());
        EntrySeal { name: name.to_owned(), key, fingerprint }
    }

    /// `None`: the system provides no random bytes.
    #[must_use]
    pub fn seal(&self, entry: &[u8]) -> Option<Arc<[u8]>> {
        let nonce = random::bytes::<NONCE_LEN>();
        let nonce = nonce.inspect_err(|error| {
            tracing::error!(log = self.name, %error, "no random bytes to seal an entry with");
        });
        let nonce = nonce.ok()?;
        let mut sealed = Vec::with_capacity(entry.len() + OVERHEAD_BYTES);
        sealed.push(FORMAT);
        sealed.extend_from_slice(&self.fingerprint.0);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(entry);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let text = &mut sealed[HEADER_BYTES..];
        let tag = self.key.seal_in_place_separate_tag(nonce, self.bound(), text);
        // Only an entry of 64 GiB is too long.
        sealed.extend_from_slice(tag.ok()?.as_ref());
        Some(sealed.into())
    }

    fn open(&self, place: Place, sealed: &[u8]) -> Result<Arc<[u8]>, SharedLogError> {
        let refused = |why: String| {
            let (log, place) = (&self.name, place.0);
            let reason = format!("the entry at place {place} of the log {log} {why}");
            SharedLogError::Unusable { reason }
        };
        if sealed.len() < OVERHEAD_BYTES || sealed[0] != FORMAT {
            return Err(refused(
                "is not sealed in the format of this version: it was written by other \
                 software, by another version, or by a cluster without a key"
                    .to_owned(),
            ));
        }
        let (header, text) = sealed.split_at(HEADER_BYTES);
        let (_, header) = header.split_at(1);
        let (fingerprint, nonce) = header.split_at(FINGERPRINT_BYTES);
        let theirs = KeyFingerprint(*fingerprint.first_chunk().expect("four bytes"));
        if theirs != self.fingerprint {
            return Err(refused(format!(
                "is sealed with another cluster key: its fingerprint is {theirs}, that of this node's \
                 --cluster-key {}; all nodes need the same",
                self.fingerprint
            )));
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).expect("twelve bytes");
        let mut text = text.to_vec();
        match self.key.open_in_place(nonce, self.bound(), &mut text) {
            Ok(entry) => Ok(Arc::from(&*entry)),
            Err(_) => Err(refused(
                "was changed in the engine's storage, or moved there from another log".to_owned(),
            )),
        }
    }

    /// The associated data of an entry: the format and the log.
    fn bound(&self) -> Aad<Vec<u8>> {
        Aad::from([&[FORMAT], self.name.as_bytes()].concat())
    }
}

impl<L: SharedLog + ?Sized> SharedLog for SealedLog<L> {
    fn limits(&self) -> SharedLimits {
        let limits = self.inner.limits();
        SharedLimits { entry_bytes: limits.entry_bytes.saturating_sub(OVERHEAD_BYTES), ..limits }
    }

    fn follow(&mut self, after: Place) {
        self.inner.follow(after);
    }

    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>) {
        // An entry that cannot be sealed is lost on the way, as an engine may lose it, and offered
        // again later.
        if let Some(sealed) = self.seal.seal(&entry) {
            self.inner.offer(id, after, sealed);
        }
    }

    fn ask_end(&mut self, id: AskId) {
        self.inner.ask_end(id);
    }

    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        match self.inner.next(waker)? {
            Arrival::Entry { place, entry } => match self.seal.open(place, &entry) {
                Ok(entry) => Ok(Arrival::Entry { place, entry }),
                Err(fault) => Err(self.fault.insert(fault).clone()),
            },
            other => Ok(other),
        }
    }

    fn fetch(&mut self, after: Place, max_bytes: usize) -> Result<Fetched, SharedLogError> {
        let fetched = self.inner.fetch(after, max_bytes)?;
        let open = |entries: Vec<PlacedEntry>| {
            let opened = entries
                .into_iter()
                .map(|(place, entry)| Ok((place, self.seal.open(place, &entry)?)));
            opened.collect::<Result<Vec<_>, SharedLogError>>()
        };
        Ok(match fetched {
            Fetched::Entries(entries) => Fetched::Entries(open(entries)?),
            Fetched::Accepted(batches) => Fetched::Accepted(open(batches)?),
        })
    }

    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError> {
        self.inner.gap_after(after)
    }

    fn durable(&mut self, upto: Place, state: Arc<[u8]>) {
        // It names the cluster, the log and its leader, and no event.
        self.inner.durable(upto, state);
    }

    fn engine_leader(&self) -> Option<EngineLeader> {
        self.inner.engine_leader()
    }

    fn generation(&self) -> u64 {
        self.inner.generation()
    }
}

#[cfg(test)]
#[path = "sealed_log_tests.rs"]
mod tests;
