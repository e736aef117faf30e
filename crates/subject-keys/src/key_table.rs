//! What is known of all keys: their subjects, their states, and those that are in memory.

use crate::fault::{KeysFault, SealRefusal};
use crate::key::SubjectKey;
use crate::roots::KeyRoots;
use crate::slot::{Slot, SlotContent};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use wellspring_format::sealed_parts::KeyId;

/// Most unwrapped keys in memory; beyond it all are dropped and loaded again on use.
const CACHED: usize = if cfg!(test) { 8 } else { 65_536 };

/// Hashes ids of keys, which are random, by their first bytes.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

type IdHash = BuildHasherDefault<IdHasher>;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let first = bytes.first_chunk().map_or(0, |first| u64::from_ne_bytes(*first));
        self.0 ^= first;
    }

    // The length of an array.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct KeyTable {
    /// The newest key of each subject.
    pub(crate) of_subject: HashMap<Box<str>, KeyId>,
    pub(crate) keys: HashMap<KeyId, KeyEntry, IdHash>,
    pub(crate) cache: HashMap<KeyId, Arc<SubjectKey>, IdHash>,
    /// Keys that are not durable yet.
    pub(crate) unsaved: Vec<Arc<SubjectKey>>,
}

/// What is known of one key.
#[derive(Debug, Clone)]
pub(crate) struct KeyEntry {
    /// Its slot, once it is durable.
    pub(crate) slot: Option<u32>,
    pub(crate) state: KeyState,
    /// Alive while any copy of the key is in memory.
    pub(crate) users: Weak<()>,
}

impl KeyEntry {
    pub(crate) fn of_slot(slot: u32, state: KeyState) -> KeyEntry {
        KeyEntry { slot: Some(slot), state, users: Weak::new() }
    }

    /// What a copy of the key keeps alive.
    pub(crate) fn users(&mut self) -> Arc<()> {
        self.users.upgrade().unwrap_or_else(|| {
            let users = Arc::new(());
            self.users = Arc::downgrade(&users);
            users
        })
    }
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It seals and opens.
    Live,
    /// It is to be erased at this time, µs since 1970 UTC.
    Withdrawn {
        /// When.
        erases_at_us: u64,
    },
    /// It is gone.
    Erased {
        /// Until when nothing is stored about its subject, µs since 1970 UTC.
        fence_until_us: u64,
    },
}

impl KeyState {
    /// Whether the key is gone for ever.
    #[must_use]
    pub fn is_erased(self) -> bool {
        matches!(self, KeyState::Erased { .. })
    }

    /// Why such a key opens nothing; `None`: it does.
    pub(crate) fn closed(self) -> Option<Closed> {
        match self {
            KeyState::Live => None,
            KeyState::Withdrawn { .. } => Some(Closed::Withdrawn),
            KeyState::Erased { .. } => Some(Closed::Erased),
        }
    }
}

/// Why a part is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Its subject is erased.
    Erased,
    /// Its subject is about to be erased; the erasure may be cancelled.
    Withdrawn,
    /// Its key is not here, which says nothing about an erasure: put a backup of the keys in place.
    /// Or it was changed, and its key does not open it.
    Unavailable,
}

impl Closed {
    /// The member that tells of it wherever events are served.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Closed::Erased => "erased",
            Closed::Withdrawn => "withheld",
            Closed::Unavailable => "unavailable",
        }
    }
}

impl KeyTable {
    /// Takes note of a slot at the start.
    pub(crate) fn learn(
        &mut self,
        number: u32,
        slot: &Slot,
        roots: &KeyRoots,
    ) -> Result<(), KeysFault> {
        let state = match slot.content {
            SlotContent::Live { generation, .. } => {
                if !roots.generations().any(|known| known == generation) {
                    return Err(KeysFault::GenerationMissing { generation });
                }
                KeyState::Live
            }
            SlotContent::Erased { fence_until_us } => KeyState::Erased { fence_until_us },
        };
        self.of_subject.insert(slot.subject.clone(), slot.id);
        self.keys.insert(slot.id, KeyEntry::of_slot(number, state));
        Ok(())
    }

    /// The key that seals for a subject; its id if it must be loaded; `None` if there is none yet.
    pub(crate) fn sealing(
        &self,
        subject: &str,
        now_us: u64,
    ) -> Result<Option<Result<Arc<SubjectKey>, KeyId>>, SealRefusal> {
        let Some(id) = self.of_subject.get(subject) else { return Ok(None) };
        match self.keys.get(id).map(|entry| entry.state) {
            None => Ok(None),
            Some(KeyState::Live) => Ok(Some(self.cache.get(id).cloned().ok_or(*id))),
            Some(KeyState::Withdrawn { .. }) => Err(SealRefusal::Erased { until_us: None }),
            Some(KeyState::Erased { fence_until_us }) if fence_until_us > now_us => {
                Err(SealRefusal::Erased { until_us: Some(fence_until_us) })
            }
            Some(KeyState::Erased { .. }) => Ok(None),
        }
    }

    /// Adds a new key.
    pub(crate) fn begin(&mut self, key: SubjectKey, users: &Arc<()>) -> Arc<SubjectKey> {
        let key = Arc::new(key);
        self.of_subject.insert(key.subject.clone(), key.id);
        let users = Arc::downgrade(users);
        self.keys.insert(key.id, KeyEntry { slot: None, state: KeyState::Live, users });
        self.unsaved.push(Arc::clone(&key));
        self.keep(Arc::clone(&key));
        key
    }

    pub(crate) fn keep(&mut self, key: Arc<SubjectKey>) {
        if self.cache.len() >= CACHED {
            // One that is not durable is nowhere else.
            self.cache.retain(|_, key| !key.is_durable());
        }
        self.cache.insert(key.id, key);
    }

    /// Takes note of keys that are durable, in slots from `first` on.
    pub(crate) fn saved(&mut self, keys: &[Arc<SubjectKey>], first: u32) {
        for (slot, key) in (first..).zip(keys) {
            if let Some(entry) = self.keys.get_mut(&key.id) {
                entry.slot = Some(slot);
            }
            key.is_durable.store(true, Ordering::Release);
            // The cache may drop it now; the plain bytes go with it.
        }
        self.unsaved.retain(|key| !key.is_durable());
    }
}
