//! All keys of a server: which subjects have one, and what becomes of it.
//!
//! A key is *live*, then perhaps *withdrawn* (an erasure is due or under way: it neither seals nor
//! opens; a cancelled erasure gives it back), then *erased* (gone for ever). The states live and
//! erased are in the store; withdrawn follows from facts of the log `system`, which the caller
//! keeps and tells after each start.
//!
//! Lock order: the store's, then that of what is known.

use crate::fault::{KeysFault, SealRefusal};
use crate::key::SubjectKey;
use crate::key_table::{Closed, KeyEntry, KeyState, KeyTable};
use crate::roots::{KeyRoots, RootSource};
use crate::slot::{Slot, SlotContent};
use crate::store::KeyStore;
use crate::subject_names::{SubjectNames, check_subject};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use wellspring_format::sealed_parts::{KeyId, SealedPart};
use wellspring_log::storage::Storage;

/// Opens the folder of the store, which is made on first use.
pub type StorageOpener = Box<dyn Fn() -> io::Result<Arc<dyn Storage>> + Send + Sync>;

/// See the module's documentation.
pub struct SubjectKeys {
    opener: StorageOpener,
    source: RootSource,
    names: SubjectNames,
    store: Mutex<OpenStore>,
    known: RwLock<KeyTable>,
    unavailable_parts: AtomicU64,
}

#[derive(Default)]
struct OpenStore {
    /// Both are there once there is a key.
    open: Option<(KeyStore, KeyRoots)>,
}

/// What was made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persisted {
    /// New keys, or nothing.
    Keys,
    /// The first keys, and a root for them: its operator has to keep a second copy of it.
    KeysAndRoot,
}

/// A copy of the store.
#[derive(Debug, Clone)]
pub struct StoreCopy {
    /// The id of the store.
    pub store: u64,
    /// The number of its last change.
    pub change: u64,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Facts about the keys, for operators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeysStatus {
    /// Subjects with a live key.
    pub live: u64,
    /// Keys that are to be erased.
    pub withdrawn: u64,
    /// Keys that were erased.
    pub erased: u64,
    /// The number of the last change of the store.
    pub change: u64,
    /// How often a sealed part could not be opened since the start: its key is not here, or it was
    /// changed.
    pub unavailable_parts: u64,
    /// Generations of the roots that are there, and how many keys each wraps.
    pub generations: BTreeMap<u16, u64>,
}

impl SubjectKeys {
    /// Opens the keys of a server. `folder`: whether the folder of the store is there.
    ///
    /// # Errors
    /// [`KeysFault`].
    pub fn open(
        opener: StorageOpener,
        source: RootSource,
        has_folder: bool,
        names: SubjectNames,
    ) -> Result<SubjectKeys, KeysFault> {
        let (mut known, mut open) = (KeyTable::default(), None);
        if has_folder {
            let storage = opener().map_err(KeysFault::io("opening the folder of subject keys"))?;
            if KeyStore::exists(&*storage)? {
                let missing = || KeysFault::RootMissing { source: source.to_string() };
                let roots = source.load()?.ok_or_else(missing)?;
                let mut tried = BTreeSet::new();
                let store = KeyStore::open(storage, &mut |number, slot| {
                    known.learn(number, &slot, &roots)?;
                    match slot.content {
                        // One of each: a root of another server has the same generations.
                        SlotContent::Live { generation, .. }
                            if tried.insert(generation) && slot.unwrap(&roots).is_none() =>
                        {
                            Err(KeysFault::WrongRoot { generation })
                        }
                        _ => Ok(()),
                    }
                })?;
                open = Some((store, roots));
            }
        }
        let store = Mutex::new(OpenStore { open });
        let (known, unavailable_parts) = (RwLock::new(known), AtomicU64::new(0));
        Ok(SubjectKeys { opener, source, names, store, known, unavailable_parts })
    }

    fn store(&self) -> MutexGuard<'_, OpenStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<R>(&self, look: impl FnOnce(&KeyTable) -> R) -> R {
        look(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<R>(&self, change: impl FnOnce(&mut KeyTable) -> R) -> R {
        change(&mut self.known.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The key that seals for a subject. A new one is not durable before
    /// [`persist`](Self::persist); nothing sealed with it may be staged earlier.
    pub(crate) fn sealing_key(
        &self,
        subject: &str,
        now_us: u64,
    ) -> Result<Arc<SubjectKey>, SealRefusal> {
        let found = self.read(|known| known.sealing(subject, now_us))?;
        match found {
            Some(Ok(key)) => return Ok(key),
            Some(Err(id)) => {
                return self.load(&id).map_err(|closed| match closed {
                    Closed::Erased | Closed::Withdrawn => SealRefusal::Erased { until_us: None },
                    Closed::Unavailable => {
                        SealRefusal::Unavailable("it cannot be read from the store".to_owned())
                    }
                });
            }
            None => {}
        }
        check_subject(subject, self.names)?;
        let users = Arc::new(());
        let drawn = SubjectKey::draw(subject, Arc::clone(&users));
        let drawn = drawn.map_err(|error| SealRefusal::Unavailable(error.to_string()))?;
        self.write(|known| match known.sealing(subject, now_us)? {
            // Another request was first.
            Some(Ok(key)) => Ok(key),
            Some(Err(_)) => Err(SealRefusal::Unavailable("it was just made; try again".into())),
            None => Ok(known.begin(drawn, &users)),
        })
    }

    /// The key of this id, unwrapped from its slot.
    fn load(&self, id: &KeyId) -> Result<Arc<SubjectKey>, Closed> {
        let store = self.store();
        let (slot, users) = self.write(|known| {
            let entry = known.keys.get_mut(id).ok_or(Closed::Unavailable)?;
            entry.state.closed().map_or_else(|| Ok((entry.slot, entry.users())), Err)
        })?;
        let (Some((file, roots)), Some(slot)) = (&store.open, slot) else {
            return self.read(|known| known.cache.get(id).cloned()).ok_or(Closed::Unavailable);
        };
        let slot = file.read(slot).map_err(|_| Closed::Unavailable)?;
        let bytes = slot.unwrap(roots).ok_or(Closed::Unavailable)?;
        let key = Arc::new(SubjectKey::of(&slot.subject, &bytes, users));
        // Under the store's lock: nothing is erased meanwhile.
        self.write(|known| known.keep(Arc::clone(&key)));
        Ok(key)
    }

    /// Makes every new key durable. Blocks on the device; one barrier serves all that wait.
    ///
    /// # Errors
    /// [`KeysFault`]; the keys stay, and a retry tries again.
    pub fn persist(&self, now_us: u64) -> Result<Persisted, KeysFault> {
        let mut store = self.store();
        let unsaved = self.read(|known| known.unsaved.clone());
        if unsaved.is_empty() {
            return Ok(Persisted::Keys);
        }
        let OpenStore { open } = &mut *store;
        let mut persisted = Persisted::Keys;
        if open.is_none() {
            let (file, roots, made) = self.found()?;
            *open = Some((file, roots));
            persisted = made;
        }
        let (file, roots) = open.as_mut().expect("just made");
        let change = file.change + 1;
        let wrap = |key: &Arc<SubjectKey>| {
            let bytes = key.unsaved.as_ref().expect("a new key has its bytes");
            let content = SlotContent::wrap(roots, &key.subject, &key.id, bytes)?;
            let subject = key.subject.clone();
            Ok(Slot { subject, id: key.id, content, change, changed_us: now_us })
        };
        let slots: io::Result<Vec<Slot>> = unsaved.iter().map(wrap).collect();
        let slots = slots.map_err(KeysFault::io("wrapping subject keys"))?;
        let first = file.add(&slots)?;
        self.write(|known| known.saved(&unsaved, first));
        Ok(persisted)
    }

    /// The folder, the root and an empty store: made before the first key.
    fn found(&self) -> Result<(KeyStore, KeyRoots, Persisted), KeysFault> {
        let storage =
            (self.opener)().map_err(KeysFault::io("making the folder of subject keys"))?;
        let (roots, persisted) = match self.source.load()? {
            Some(roots) => (roots, Persisted::Keys),
            None => {
                let roots = KeyRoots::draw().map_err(KeysFault::io("drawing a root"))?;
                let saved = self.source.save(&roots);
                saved.map_err(KeysFault::io("writing the root of subject keys"))?;
                (roots, Persisted::KeysAndRoot)
            }
        };
        Ok((KeyStore::create(storage)?, roots, persisted))
    }

    /// Opens a part of an event of this type, whose subject this tag names.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn open_part(
        &self,
        part: &SealedPart<'_>,
        subject: &str,
        event_type: &str,
    ) -> Result<Vec<u8>, Closed> {
        self.opened(part, subject, event_type).inspect_err(|closed| {
            if *closed == Closed::Unavailable {
                self.unavailable_parts.fetch_add(1, Relaxed);
            }
        })
    }

    fn opened(
        &self,
        part: &SealedPart<'_>,
        subject: &str,
        event_type: &str,
    ) -> Result<Vec<u8>, Closed> {
        let found = self.read(|known| {
            let entry = known.keys.get(&part.key).ok_or(Closed::Unavailable)?;
            entry.state.closed().map_or_else(|| Ok(known.cache.get(&part.key).cloned()), Err)
        })?;
        let key = found.map_or_else(|| self.load(&part.key), Ok)?;
        key.open(part, subject, event_type).ok_or(Closed::Unavailable)
    }

    /// How often a sealed part could not be opened since the start.
    pub fn unavailable_parts(&self) -> u64 {
        self.unavailable_parts.load(Relaxed)
    }

    /// The state of a subject's newest key, and its id; `None` if it has none that is durable.
    pub fn state_of(&self, subject: &str) -> Option<(KeyId, KeyState)> {
        self.read(|known| {
            let id = known.of_subject.get(subject)?;
            let entry = known.keys.get(id).filter(|entry| entry.slot.is_some())?;
            Some((*id, entry.state))
        })
    }

    /// The key of this id, to seal with: a request that has let go of it goes on.
    pub(crate) fn hold(&self, id: &KeyId) -> Result<Arc<SubjectKey>, SealRefusal> {
        let found = self.read(|known| match known.keys.get(id).map(|entry| entry.state) {
            Some(KeyState::Live) => Ok(known.cache.get(id).cloned()),
            _ => Err(SealRefusal::Erased { until_us: None }),
        })?;
        let unreadable = |_| SealRefusal::Unavailable("it cannot be read from the store".into());
        found.map_or_else(|| self.load(id).map_err(unreadable), Ok)
    }

    /// The state of a key; `None` if it is not here.
    pub fn state(&self, id: &KeyId) -> Option<KeyState> {
        self.read(|known| known.keys.get(id).map(|entry| entry.state))
    }

    /// Withdraws a key, unless it is erased or not here.
    pub fn withdraw(&self, id: &KeyId, erases_at_us: u64) {
        let _store = self.store();
        self.write(|known| {
            if let Some(entry) = known.keys.get_mut(id)
                && !entry.state.is_erased()
            {
                entry.state = KeyState::Withdrawn { erases_at_us };
                known.cache.remove(id);
            }
        });
    }

    /// The same for the newest key of a subject; returns its id, unless it is erased.
    #[cfg(test)]
    pub(crate) fn withdraw_subject(&self, subject: &str, erases_at_us: u64) -> Option<KeyId> {
        let id = self.read(|known| known.of_subject.get(subject).copied())?;
        let is_erased = self.state(&id).is_some_and(KeyState::is_erased);
        self.withdraw(&id, erases_at_us);
        (!is_erased).then_some(id)
    }

    /// Whether a request still seals or opens with a key that was withdrawn.
    pub fn is_in_use(&self, id: &KeyId) -> bool {
        self.read(|known| known.keys.get(id).is_some_and(|entry| entry.users.strong_count() > 0))
    }

    /// The number of the last change of the store.
    pub fn change(&self) -> u64 {
        self.store().open.as_ref().map_or(0, |(file, _)| file.change)
    }

    /// Gives a withdrawn key back.
    pub fn give_back(&self, id: &KeyId) {
        self.write(|known| {
            let entry = known.keys.get_mut(id);
            if let Some(entry) = entry
                && matches!(entry.state, KeyState::Withdrawn { .. })
            {
                entry.state = KeyState::Live;
                // One that is not durable is nowhere else.
                let unsaved = known.unsaved.iter().find(|key| key.id == *id).cloned();
                unsaved.into_iter().for_each(|key| known.keep(key));
            }
        });
    }

    /// Erases keys, durably: their slots are overwritten. Nothing is stored about their subjects
    /// until the fence ends. Those that are erased or unknown already are passed over. Blocks.
    ///
    /// # Errors
    /// [`KeysFault`]; a retry erases the rest.
    pub fn erase(&self, ids: &[KeyId], fence_until_us: u64, now_us: u64) -> Result<(), KeysFault> {
        let mut store = self.store();
        let erased: Vec<(KeyId, Option<u32>)> = self.write(|known| {
            // Never made durable: it was drawn and its request has failed.
            known.unsaved.retain(|key| !ids.contains(&key.id));
            ids.iter().for_each(|id| drop(known.cache.remove(id)));
            let entries = ids.iter().filter_map(|id| Some((*id, known.keys.get(id)?)));
            let left = entries.filter(|(_, entry)| !entry.state.is_erased());
            left.map(|(id, entry)| (id, entry.slot)).collect()
        });
        if let Some((file, _)) = &mut store.open
            && !erased.is_empty()
        {
            let change = file.change + 1;
            // After a failed barrier a slot may be overwritten in memory alone, so whatever it
            // holds, it is written.
            for number in erased.iter().filter_map(|(_, slot)| *slot) {
                let Slot { subject, id, .. } = file.read(number)?;
                let content = SlotContent::Erased { fence_until_us };
                let slot = Slot { subject, id, content, change, changed_us: now_us };
                file.overwrite(number, &slot)?;
            }
            file.sync()?;
        }
        self.write(|known| {
            for (id, _) in erased {
                if let Some(entry) = known.keys.get_mut(&id) {
                    entry.state = KeyState::Erased { fence_until_us };
                }
            }
        });
        Ok(())
    }

    /// Wraps every key under a new root and destroys the old ones, so that earlier copies of the
    /// store open nothing. With a command as the source, its newest root is taken, and the operator
    /// destroys the old ones. Returns the generation. Blocks, and requests for new keys wait.
    ///
    /// # Errors
    /// [`KeysFault`]; every key is still wrapped under a root that is there.
    pub fn rotate(&self) -> Result<Option<u16>, KeysFault> {
        let mut store = self.store();
        let Some((file, roots)) = &mut store.open else { return Ok(None) };
        let saving = KeysFault::io("writing the root of subject keys");
        let next = match &self.source {
            RootSource::File(_) => {
                let next = roots.with_another()?;
                self.source.save(&next).map_err(&saving)?;
                next
            }
            RootSource::Command(_) => {
                let missing = || KeysFault::RootMissing { source: self.source.to_string() };
                let next = self.source.load()?.ok_or_else(missing)?;
                if next.newest() <= roots.newest() {
                    return Err(KeysFault::NoNewerRoot { generation: roots.newest() });
                }
                next
            }
        };
        let change = file.change + 1;
        let rewritten = file.rewritten(&mut |slot| {
            let slot = Slot { change, ..slot };
            let SlotContent::Live { generation, .. } = slot.content else { return Ok(slot) };
            let missing = KeysFault::GenerationMissing { generation };
            let key = slot.unwrap(&next).ok_or(missing)?;
            let content = SlotContent::wrap(&next, &slot.subject, &slot.id, &key);
            let content = content.map_err(KeysFault::io("wrapping subject keys"))?;
            Ok(Slot { content, ..slot })
        })?;
        // They unwrap the old file and the new one, whichever is there if replacing it fails.
        *roots = next;
        file.replace(&rewritten)?;
        if let RootSource::File(_) = &self.source {
            let newest = roots.newest_alone();
            self.source.save(&newest).map_err(&saving)?;
            *roots = newest;
        }
        Ok(Some(roots.newest()))
    }

    /// A copy of the store, for a backup; `None` if there are no keys. The root is not in it.
    ///
    /// # Errors
    /// [`KeysFault`].
    pub fn copy(&self) -> Result<Option<StoreCopy>, KeysFault> {
        let store = self.store();
        let Some((file, _)) = &store.open else { return Ok(None) };
        Ok(Some(StoreCopy { store: file.id, change: file.change, bytes: file.copy()? }))
    }

    /// Facts about the keys. Reads the store.
    ///
    /// # Errors
    /// [`KeysFault`].
    pub fn status(&self) -> Result<KeysStatus, KeysFault> {
        let store = self.store();
        let unavailable_parts = self.unavailable_parts();
        let mut status = KeysStatus { unavailable_parts, ..KeysStatus::default() };
        if let Some((file, roots)) = &store.open {
            status.change = file.change;
            status.generations = roots.generations().map(|generation| (generation, 0)).collect();
        }
        let entries: Vec<KeyEntry> = self.read(|known| known.keys.values().cloned().collect());
        for entry in entries {
            match entry.state {
                // Drawn for a request that was refused, or is not answered yet.
                _ if entry.slot.is_none() => {}
                KeyState::Live => status.live += 1,
                KeyState::Withdrawn { .. } => status.withdrawn += 1,
                KeyState::Erased { .. } => status.erased += 1,
            }
            if let (Some((file, _)), Some(slot)) = (&store.open, entry.slot)
                && let SlotContent::Live { generation, .. } = file.read(slot)?.content
            {
                *status.generations.entry(generation).or_default() += 1;
            }
        }
        Ok(status)
    }

    /// Where the roots come from.
    pub fn source(&self) -> &RootSource {
        &self.source
    }
}
