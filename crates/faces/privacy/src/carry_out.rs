//! Carries erasures out, in this order; a crash anywhere leaves the state before or after.
//!
//! 1. The keys are withdrawn: nothing seals or opens with them. The eraser waits for the requests
//!    that already seal with them, because no event may be acknowledged after its key is destroyed.
//! 2. `ErasureBegun` is durable: from here on it always ends.
//! 3. The slots of the keys are overwritten, and a backup of the keys replaces earlier ones.
//! 4. `SubjectErased` goes into each log with events of the subject.
//! 5. `ErasureCompleted`.
//!
//! What a crash leaves is done again from step 2 on: each step changes nothing the second time.

use crate::erasure::{self, Erasure, ErasureStage};
use crate::facts::{self, ErasedInLog};
use crate::key_backup::{self, EarlierCopies};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wellspring_host::http::Host;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{
    Append, AppendError, EncodedEvents, Log, Order, ReadError, RequestKey, SERVER_KEYS,
};
use wellspring_subject_keys::{KeyId, KeyState, KeysFault, SubjectKeys};
use wellspring_types::{Query, hex};

/// How long requests that seal for a subject are waited for at a time.
const DRAIN: Duration = Duration::from_secs(2);
const DRAIN_STEP: Duration = Duration::from_millis(1);
/// Time between two tries of an erasure that could not go on, µs.
const AGAIN_AFTER_US: u64 = 3_000_000;
/// Time between a change of the keys and its backup, at most, µs.
const BACKUP_AFTER_US: u64 = 60_000_000;
/// Events of one append.
const BATCH: usize = 1_000;

/// Carries out the erasures of a server.
pub(crate) struct Eraser {
    pub(crate) host: Arc<Host>,
    /// Those that are not complete, by id.
    open: Mutex<BTreeMap<String, Erasure>>,
    /// Held while one is carried out, requested or cancelled.
    changing: Mutex<()>,
    /// The change of the keys that has a backup, and when that was looked at.
    backed_up: AtomicU64,
    looked_us: AtomicU64,
    /// Why the last backup of the keys failed.
    backup_failure: Mutex<Option<String>>,
}

/// Why an erasure could not go on. It is tried again.
#[derive(Debug)]
pub(crate) enum EraserFault {
    Keys(KeysFault),
    Append(AppendError),
    Read(ReadError),
    /// The backup of the keys, earlier ones of which have to go.
    Backup(io::Error),
    /// Requests still seal for its subjects.
    InUse,
    /// Keys of it are not in the store.
    KeysMissing {
        missing: usize,
    },
}

impl From<KeysFault> for EraserFault {
    fn from(fault: KeysFault) -> EraserFault {
        EraserFault::Keys(fault)
    }
}

impl From<AppendError> for EraserFault {
    fn from(error: AppendError) -> EraserFault {
        EraserFault::Append(error)
    }
}

impl From<ReadError> for EraserFault {
    fn from(error: ReadError) -> EraserFault {
        EraserFault::Read(error)
    }
}

impl std::fmt::Display for EraserFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EraserFault::Keys(fault) => fault.fmt(f),
            EraserFault::Append(error) => error.fmt(f),
            EraserFault::Read(error) => error.fmt(f),
            EraserFault::Backup(error) => write!(f, "backing the keys up: {error}"),
            EraserFault::InUse => f.write_str("requests still store data of its subjects"),
            EraserFault::KeysMissing { missing } => write!(
                f,
                "{missing} of its keys are not in the store of keys: another store is in place; \
                 put the newest backup of the keys back"
            ),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Eraser {
    /// Takes note of all erasures, and makes the keys obey them: what was erased stays erased,
    /// whatever store was put in place.
    ///
    /// # Errors
    /// The log `system` or the store of keys fails.
    pub(crate) fn open(host: &Arc<Host>) -> Result<Eraser, EraserFault> {
        let mut open = BTreeMap::new();
        if let (Some(keys), Some(system)) = (&host.subject_keys, host.node.get(SYSTEM_LOG)) {
            let (mut gone, mut unknown) = (Vec::new(), 0);
            for (id, erasure) in erasure::read(&system, None)? {
                if erasure.has_begun() {
                    unknown += erasure.keys.iter().filter(|id| keys.state(id).is_none()).count();
                    let is_live = |id: &&KeyId| keys.state(id) == Some(KeyState::Live);
                    gone.extend(erasure.keys.iter().filter(is_live).copied());
                }
                if erasure.is_open() {
                    let withdraw = |id| keys.withdraw(id, erasure.erases_at_us);
                    erasure.keys.iter().for_each(withdraw);
                    open.insert(id, erasure);
                }
            }
            if unknown > 0 {
                tracing::error!(
                    unknown,
                    "keys that were erased are not in the store of keys: it is older than they are, or \
                     another one. If others are missing, too, what they seal cannot be read; stop the \
                     server and put the newest backup of the keys in place"
                );
            }
            if !gone.is_empty() {
                let now_us = host.wall_us();
                keys.erase(&gone, fence_until_us(host, now_us), now_us)?;
                let keys = gone.len();
                tracing::warn!(
                    keys,
                    "keys that were erased were in the store, and are erased again"
                );
            }
        }
        Ok(Eraser {
            host: Arc::clone(host),
            open: Mutex::new(open),
            changing: Mutex::default(),
            backed_up: AtomicU64::new(0),
            looked_us: AtomicU64::new(0),
            backup_failure: Mutex::default(),
        })
    }

    /// The keys.
    ///
    /// # Errors
    /// 503 `key-unavailable`: the server is in a cluster.
    pub(crate) fn keys(&self) -> Result<&Arc<SubjectKeys>, Box<Problem>> {
        let detail = "a server of a cluster keeps no keys of data subjects";
        self.host.subject_keys.as_ref().ok_or_else(|| problem::KEY_UNAVAILABLE.because(detail))
    }

    /// The log of the facts.
    pub(crate) fn system(&self) -> Result<Log, Box<Problem>> {
        self.host.node.get(SYSTEM_LOG).ok_or_else(|| problem::no_such_log(SYSTEM_LOG))
    }

    /// The erasures that are not complete.
    pub(crate) fn open_ones(&self) -> BTreeMap<String, Erasure> {
        locked(&self.open).clone()
    }

    /// Records an erasure, withdraws its keys, and carries it out if it has no grace period.
    /// Blocks.
    ///
    /// # Errors
    /// Those of an append to `system`; later steps are tried again by [`tick`](Self::tick).
    pub(crate) fn request(
        &self,
        id: &str,
        erasure: Erasure,
        effects: &Effects,
    ) -> Result<(), Box<Problem>> {
        let _changing = locked(&self.changing);
        let (keys, now_us) = (self.keys()?, self.host.wall_us());
        let requested = facts::ErasureOrder {
            subjects: erasure.subjects.clone(),
            keys: erasure.keys.iter().map(|key| hex::digits(&key.0)).collect(),
            erases_at_us: erasure.erases_at_us,
            by: erasure.by.clone(),
        };
        effects.settle(self.system()?.append(append(facts::requested(id, &requested), None)))?;
        erasure.keys.iter().for_each(|id| keys.withdraw(id, erasure.erases_at_us));
        let is_due = erasure.erases_at_us <= now_us;
        locked(&self.open).insert(id.to_owned(), erasure);
        if is_due {
            self.carry_out(id);
        }
        Ok(())
    }

    /// Cancels an erasure that waits. Blocks.
    ///
    /// # Errors
    /// Those of an append to `system`.
    pub(crate) fn cancel(&self, id: &str, effects: &Effects) -> Result<Cancellation, Box<Problem>> {
        let _changing = locked(&self.changing);
        let waiting = locked(&self.open).get(id).cloned();
        let Some(erasure) = waiting.filter(|found| found.stage == ErasureStage::Waiting) else {
            return Ok(Cancellation::TooLate);
        };
        if self.is_superseded(&erasure) {
            self.carry_out(id);
            return Ok(Cancellation::TooLate);
        }
        effects.settle(self.system()?.append(append(facts::cancelled(id), None)))?;
        locked(&self.open).remove(id);
        let others = self.open_ones();
        for key in &erasure.keys {
            // Another erasure of the same subject may wait.
            if !others.values().any(|other| other.keys.contains(key)) {
                self.keys()?.give_back(key);
            }
        }
        Ok(Cancellation::Done)
    }

    /// Goes on with what is due, and backs the keys up. On a thread that may block.
    pub(crate) fn tick(&self, wall_us: u64) {
        let due = |erasure: &Erasure| {
            let is_due = erasure.stage == ErasureStage::Begun
                || erasure.erases_at_us <= wall_us
                || self.is_superseded(erasure);
            is_due && erasure.again_us <= wall_us
        };
        let due: Vec<String> = {
            let open = locked(&self.open);
            open.iter().filter(|(_, erasure)| due(erasure)).map(|(id, _)| id.clone()).collect()
        };
        for id in due {
            let _changing = locked(&self.changing);
            self.carry_out(&id);
        }
        if wall_us.saturating_sub(self.looked_us.load(Relaxed)) >= BACKUP_AFTER_US {
            self.looked_us.store(wall_us, Relaxed);
            self.back_up_changed();
        }
    }

    /// Backs the keys up, if they have changed.
    pub(crate) fn back_up_changed(&self) {
        if let Err(fault) = self.back_up(EarlierCopies::One) {
            tracing::error!(%fault, "the keys of data subjects could not be backed up");
        }
    }

    /// Whether other erasures have destroyed all keys of one that waits: cancelling it would give
    /// nothing back.
    fn is_superseded(&self, erasure: &Erasure) -> bool {
        let Some(keys) = &self.host.subject_keys else { return false };
        let is_erased = |id| keys.state(id).is_some_and(KeyState::is_erased);
        erasure.stage == ErasureStage::Waiting && erasure.keys.iter().all(is_erased)
    }

    /// Carries an erasure out as far as possible.
    fn carry_out(&self, id: &str) {
        let Some(mut erasure) = locked(&self.open).get(id).cloned() else { return };
        let ended = self.steps(id, &mut erasure);
        let mut open = locked(&self.open);
        match ended {
            Ok(()) => drop(open.remove(id)),
            Err(fault) => {
                tracing::warn!(erasure = id, %fault, "an erasure could not go on; it is tried again");
                erasure.again_us = self.host.wall_us() + AGAIN_AFTER_US;
                open.insert(id.to_owned(), erasure);
            }
        }
    }

    fn steps(&self, id: &str, erasure: &mut Erasure) -> Result<(), EraserFault> {
        let Some(keys) = &self.host.subject_keys else { return Ok(()) };
        let Some(system) = self.host.node.get(SYSTEM_LOG) else { return Ok(()) };
        // The logs are told by those that destroyed the keys.
        let tells = !self.is_superseded(erasure);
        if erasure.stage == ErasureStage::Waiting {
            drain(keys, erasure)?;
            system.append(append(facts::begun(id), Some(format!("{id}:begun"))))?;
            erasure.stage = ErasureStage::Begun;
        }
        let now_us = self.host.wall_us();
        keys.erase(&erasure.keys, fence_until_us(&self.host, now_us), now_us)?;
        if !erasure.is_backed_up {
            self.back_up(EarlierCopies::None)?;
            erasure.is_backed_up = true;
        }
        let (mut logs, mut failed) = (Vec::new(), None);
        for (name, log) in self.host.node.all() {
            if name == SYSTEM_LOG || !tells {
                continue;
            }
            // A log that fails must not keep the others from being told.
            match tell(&log, id, &erasure.subjects) {
                Ok(0) => {}
                Ok(subjects) => logs.push(ErasedInLog { log: name, subjects }),
                Err(fault) => failed = Some(fault),
            }
        }
        if let Some(fault) = failed {
            return Err(fault);
        }
        let done = facts::completed(id, logs);
        system.append(append(done, Some(format!("{id}:completed"))))?;
        Ok(())
    }

    /// Backs the keys up, if they have changed and there is a place for it.
    fn back_up(&self, earlier: EarlierCopies) -> Result<(), EraserFault> {
        let folder = &self.host.subject_config.subject_key_backup_to;
        let Some(keys) = self.host.subject_keys.as_ref() else { return Ok(()) };
        let is_known = self.backed_up.load(Relaxed) == keys.change();
        if folder.as_os_str().is_empty() || (is_known && earlier == EarlierCopies::One) {
            return Ok(());
        }
        if let Some(copy) = keys.copy()? {
            let written = key_backup::write(folder, &copy, self.host.wall_us(), earlier);
            *locked(&self.backup_failure) = written.as_ref().err().map(ToString::to_string);
            written.map_err(EraserFault::Backup)?;
            self.backed_up.store(copy.change, Relaxed);
        }
        Ok(())
    }

    /// Why the last backup of the keys failed; `None`: it did not, or there was none.
    pub(crate) fn backup_failure(&self) -> Option<String> {
        locked(&self.backup_failure).clone()
    }
}

/// Whether an erasure was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancellation {
    Done,
    /// It has begun, is complete or cancelled, or there is none.
    TooLate,
}

fn fence_until_us(host: &Host, now_us: u64) -> u64 {
    now_us.saturating_add(host.subject_config.subject_fence_s.saturating_mul(1_000_000))
}

fn append(events: EncodedEvents, key: Option<String>) -> Append {
    let name = |key: String| format!("{SERVER_KEYS}erasure:{key}");
    // The events follow from the erasure alone, so the key says it all.
    let key = key.map(|key| RequestKey { key: name(key), digest: [0; 16] });
    Append { events, key, ..Append::default() }
}

/// Waits until no request uses the keys of an erasure any more.
fn drain(keys: &SubjectKeys, erasure: &Erasure) -> Result<(), EraserFault> {
    // Without its key, an erasure that is called complete would be none once the key is back.
    let missing = erasure.keys.iter().filter(|id| keys.state(id).is_none()).count();
    if missing > 0 {
        return Err(EraserFault::KeysMissing { missing });
    }
    let mut left = DRAIN;
    while erasure.keys.iter().any(|id| keys.is_in_use(id)) {
        if left.is_zero() {
            return Err(EraserFault::InUse);
        }
        std::thread::sleep(DRAIN_STEP);
        left = left.saturating_sub(DRAIN_STEP);
    }
    Ok(())
}

/// Tells a log which of these subjects, of those with events in it, are erased; returns how many.
fn tell(log: &Log, erasure: &str, subjects: &[String]) -> Result<u64, EraserFault> {
    let snapshot = log.snapshot();
    let mut told = 0;
    for (number, subjects) in subjects.chunks(BATCH).enumerate() {
        let mut found = Vec::new();
        for subject in subjects {
            let query = Query::item(&[], &[subject]);
            if snapshot.read_kept(&query, Order::Ascending).next()?.is_some() {
                found.push(subject.as_str());
            }
        }
        told += found.len() as u64;
        if found.is_empty() {
            continue;
        }
        let events = facts::subjects_erased(erasure, &found);
        match log.append(append(events, Some(format!("{erasure}:{number}")))) {
            // Told before a crash, of fewer, as others have got clear events since.
            Ok(_) | Err(AppendError::KeyReused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(told)
}
