//! Keys against a plain model, over a disk that refuses operations and loses power at any of them.

use crate::slot::{SLOT_BYTES, Slot, SlotContent};
use crate::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use wellspring_format::record::{EncodedEvents, RecordView};
use wellspring_format::sealed_parts::{KeyId, PartKind, SealedPart};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_types::{Event, EventId};

const SUBJECTS: [&str; 3] = ["student:1f", "student:2f", "guardian:2f"];
const FENCE_US: u64 = 100;
pub(crate) const TYPE: &str = "Renamed";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Persist,
    Erase(usize),
    Rotate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    Crash,
    Retry,
    GoOn,
}

#[derive(Debug, Clone)]
enum Step {
    Seal(usize, NonceSalt),
    /// The disk refuses everything after a number of operations; then the power goes, or the change
    /// is repeated, or it is given up, unless it is an erasure.
    Make(Change, u64, AfterFailure),
    Withdraw(usize),
    GiveBack(usize),
    Copy,
    Restore(prop::sample::Index),
    Crash,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = || 0..SUBJECTS.len();
    let salt = prop_oneof![
        Just(NonceSalt::Random),
        Just(NonceSalt::Id(EventId([3; 16]))),
        Just(NonceSalt::Number(3)),
    ];
    let change = prop_oneof![
        3 => Just(Change::Persist),
        2 => who().prop_map(Change::Erase),
        1 => Just(Change::Rotate),
    ];
    let power = prop_oneof![Just(u64::MAX), 0..2u64, 0..8u64];
    let then =
        prop_oneof![Just(AfterFailure::Crash), Just(AfterFailure::Retry), Just(AfterFailure::GoOn)];
    let step = prop_oneof![
        6 => (who(), salt).prop_map(|(who, salt)| Step::Seal(who, salt)),
        8 => (change, power, then).prop_map(|(change, power, then)| Step::Make(change, power, then)),
        1 => who().prop_map(Step::Withdraw),
        1 => who().prop_map(Step::GiveBack),
        1 => Just(Step::Copy),
        1 => any::<prop::sample::Index>().prop_map(Step::Restore),
        1 => Just(Step::Crash),
        1 => (0..2 * FENCE_US).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

/// A key of the model. Its state is what the ledger says, else live.
#[derive(Debug, Clone)]
struct ModelKey {
    id: KeyId,
    subject: usize,
    is_durable: bool,
}

/// An event with one sealed part.
struct SealedEvent {
    subject: usize,
    key: KeyId,
    record: Vec<u8>,
    plaintext: String,
}

pub(crate) struct World {
    pub(crate) disk: SimulatedStorage,
    pub(crate) keys: Arc<SubjectKeys>,
    folder: tempfile::TempDir,
    now_us: u64,
    /// The keys that are in the store or in memory, oldest first.
    model: Vec<ModelKey>,
    /// What the log `system` says of keys.
    ledger: BTreeMap<KeyId, KeyState>,
    /// The keys whose erasure has ended.
    erased: BTreeSet<KeyId>,
    events: Vec<SealedEvent>,
    /// All plain keys.
    secrets: BTreeSet<[u8; 32]>,
    copies: Vec<(Vec<u8>, Vec<ModelKey>)>,
}

/// Passes the part of a record to `look`.
pub(crate) fn with_part<R>(record: &[u8], look: impl FnOnce(&SealedPart<'_>) -> R) -> R {
    look(&RecordView::parse(record).unwrap().sealed_parts().next().unwrap())
}

/// The record of an event about a subject with this part.
pub(crate) fn record(subject: &str, part: &[u8]) -> Vec<u8> {
    let mut encoded = EncodedEvents::new();
    encoded.push_sealed(&Event::json(TYPE, &[subject], "null").as_ref(), part, 0).unwrap();
    encoded.bytes().to_vec()
}

pub(crate) fn open_keys(
    disk: &SimulatedStorage,
    root: PathBuf,
) -> Result<Arc<SubjectKeys>, KeysFault> {
    let disk = disk.clone();
    let opener: StorageOpener = Box::new(move || Ok(Arc::new(disk.clone())));
    let root = RootSource::File(root);
    Ok(Arc::new(SubjectKeys::open(opener, root, true, SubjectNames::Opaque)?))
}

fn slots(store: &[u8]) -> impl Iterator<Item = Slot> {
    store.get(4096..).unwrap_or_default().chunks_exact(SLOT_BYTES).filter_map(Slot::decode)
}

fn is_live(slot: &Slot) -> bool {
    matches!(slot.content, SlotContent::Live { .. })
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let (disk, folder) = (SimulatedStorage::new(seed), tempfile::tempdir().unwrap());
        let keys = open_keys(&disk, folder.path().join("root")).unwrap();
        let (model, ledger, erased, events, secrets, copies) = Default::default();
        World { disk, keys, folder, now_us: 1, model, ledger, erased, events, secrets, copies }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn generations(&self) -> Vec<u16> {
        KeyRoots::parse(&fs::read_to_string(self.root()).unwrap()).unwrap().generations().collect()
    }

    fn newest(&self, subject: usize) -> Option<(KeyId, KeyState)> {
        let key = self.model.iter().rfind(|key| key.subject == subject)?;
        Some((key.id, *self.ledger.get(&key.id).unwrap_or(&KeyState::Live)))
    }

    pub(crate) fn seal(&mut self, who: usize, salt: NonceSalt) {
        let newest = self.newest(who);
        let subject = SUBJECTS[who];
        let plaintext = format!("\"canary {}\"", self.events.len());
        let kind = PartKind::Personal;
        let part = PlainPart { tag: 0, subject, kind, plaintext: plaintext.as_bytes() };
        let mut sealer = Sealer::new(Some(Arc::clone(&self.keys)), self.now_us);
        let sealed = sealer.seal(TYPE, salt, &[part]).map(<[u8]>::to_vec);
        let until_us = match newest {
            Some((_, KeyState::Withdrawn { .. })) => None,
            Some((_, KeyState::Erased { fence_until_us })) if fence_until_us > self.now_us => {
                Some(fence_until_us)
            }
            _ => {
                let sealed = sealed.expect("it can be sealed");
                let again = sealer.seal(TYPE, salt, &[part]).unwrap();
                assert_eq!(again == sealed, salt != NonceSalt::Random);
                let record = record(subject, &sealed);
                let key = with_part(&record, |part| part.key);
                self.used(newest, who, key);
                self.events.push(SealedEvent { subject: who, key, record, plaintext });
                return;
            }
        };
        assert_eq!(sealed, Err((0, SealRefusal::Erased { until_us })));
    }

    /// A part was sealed with this key, which is the live one or a new one.
    fn used(&mut self, newest: Option<(KeyId, KeyState)>, subject: usize, id: KeyId) {
        if let Some((live, KeyState::Live)) = newest {
            return assert_eq!(id, live);
        }
        assert!(self.model.iter().all(|known| known.id != id));
        self.model.push(ModelKey { id, subject, is_durable: false });
        let key = self.keys.sealing_key(SUBJECTS[subject], self.now_us).unwrap();
        self.secrets.insert(**key.unsaved.as_ref().expect("a new key"));
    }

    /// Makes a change; if it succeeds, the model follows.
    fn make(&mut self, change: Change) -> Result<(), KeysFault> {
        match change {
            Change::Persist => {
                self.keys.persist(self.now_us)?;
                // One that was erased before it was durable never is.
                let drawn = self.model.iter_mut().filter(|key| !self.erased.contains(&key.id));
                drawn.for_each(|key| key.is_durable = true);
            }
            Change::Erase(subject) => {
                let Some((id, state)) = self.newest(subject) else { return Ok(()) };
                let fence_until_us = match state {
                    KeyState::Erased { fence_until_us } => fence_until_us,
                    _ => self.now_us + FENCE_US,
                };
                self.ledger.insert(id, KeyState::Erased { fence_until_us });
                self.keys.erase(&[id], fence_until_us, self.now_us)?;
                self.erased.insert(id);
            }
            Change::Rotate => {
                let old = fs::File::open(self.root()).map(|file| (self.generations(), file));
                let Some(newest) = self.keys.rotate()? else { return Ok(()) };
                let (before, mut old) = old.unwrap();
                assert!(before.iter().all(|generation| *generation < newest), "it is used again");
                assert_eq!(self.generations(), [newest], "old roots are gone");
                let mut overwritten = String::new();
                old.read_to_string(&mut overwritten).unwrap();
                assert_eq!(overwritten.trim(), "", "the old root can be read");
                let roots = KeyRoots::parse(&fs::read_to_string(self.root()).unwrap()).unwrap();
                for mut slot in self.copies.iter().flat_map(|(store, _)| slots(store)) {
                    if let SlotContent::Live { generation, .. } = &mut slot.content {
                        *generation = newest;
                    }
                    assert!(slot.unwrap(&roots).is_none(), "an old copy opens");
                }
            }
        }
        Ok(())
    }

    /// Makes a change on a disk that refuses all after so many operations. Returns whether it
    /// failed.
    pub(crate) fn try_to(&mut self, change: Change, power: u64, then: AfterFailure) -> bool {
        let power_fails_after = Some(power);
        self.disk.set_faults(Faults { power_fails_after, ..Faults::default() });
        let made = self.make(change);
        self.disk.set_faults(Faults::default());
        match (then, change) {
            (AfterFailure::Crash, _) => self.crash(),
            (AfterFailure::GoOn, Change::Persist | Change::Rotate) => {}
            _ if made.is_err() => self.make(change).expect("the disk works again"),
            _ => {}
        }
        made.is_err()
    }

    pub(crate) fn crash(&mut self) {
        self.disk = self.disk.crash();
        let store = self.disk.contents().remove("store").unwrap_or_default();
        let back = slots(&store).find(|slot| is_live(slot) && self.erased.contains(&slot.id));
        assert_eq!(back, None, "an erased key is back");
        // What was being added is there or not.
        let found: BTreeSet<KeyId> = slots(&store).map(|slot| slot.id).collect();
        self.model.retain(|key| key.is_durable || found.contains(&key.id));
        self.model.iter_mut().for_each(|key| key.is_durable = true);
        self.keys = open_keys(&self.disk, self.root()).expect("it opens");
        self.tell_ledger();
    }

    /// What a server does after it has opened its keys.
    fn tell_ledger(&self) {
        for (id, state) in &self.ledger {
            if let KeyState::Erased { fence_until_us } = state {
                self.keys.erase(&[*id], *fence_until_us, self.now_us).unwrap();
            }
        }
        for key in &self.model {
            if let Some(KeyState::Withdrawn { erases_at_us }) = self.ledger.get(&key.id) {
                let withdrawn = self.keys.withdraw_subject(SUBJECTS[key.subject], *erases_at_us);
                assert_eq!(withdrawn, Some(key.id));
            }
        }
    }

    fn withdraw(&mut self, who: usize) {
        let erases_at_us = self.now_us + 50;
        let withdrawn = self.keys.withdraw_subject(SUBJECTS[who], erases_at_us);
        let newest = self.newest(who).filter(|of| !matches!(of.1, KeyState::Erased { .. }));
        assert_eq!(withdrawn, newest.map(|of| of.0));
        let withdrawn = withdrawn.map(|id| (id, KeyState::Withdrawn { erases_at_us }));
        self.ledger.extend(withdrawn);
    }

    /// Opens an earlier copy of the store, unless its root is gone.
    fn restore(&mut self, which: usize) {
        let (store, model) = self.copies[which].clone();
        let roots = self.generations();
        let has_root = slots(&store).all(|slot| match slot.content {
            SlotContent::Live { generation, .. } => roots.contains(&generation),
            SlotContent::Erased { .. } => true,
        });
        let disk = SimulatedStorage::with_contents(5, &[("store".to_owned(), store)].into());
        match open_keys(&disk, self.root()) {
            Ok(keys) => {
                assert!(has_root);
                (self.keys, self.disk, self.model) = (keys, disk, model);
                self.tell_ledger();
            }
            Err(KeysFault::GenerationMissing { .. }) => assert!(!has_root),
            Err(other) => panic!("{other}"),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Seal(who, salt) => self.seal(who, salt),
            Step::Make(change, power, then) => drop(self.try_to(change, power, then)),
            Step::Withdraw(who) => self.withdraw(who),
            Step::GiveBack(who) => {
                if let Some((id, KeyState::Withdrawn { .. })) = self.newest(who) {
                    self.keys.give_back(&id);
                    self.ledger.remove(&id);
                }
            }
            Step::Copy => {
                let Some(StoreCopy { bytes: store, .. }) = self.keys.copy().unwrap() else {
                    return;
                };
                let durable = self.model.iter().filter(|key| key.is_durable).cloned();
                self.copies.push((store, durable.collect()));
            }
            Step::Restore(_) if self.copies.is_empty() => {}
            Step::Restore(which) => self.restore(which.index(self.copies.len())),
            Step::Crash => self.crash(),
            Step::Wait(us) => self.now_us += us,
        }
    }

    /// The laws.
    fn check(&self) {
        let states: BTreeMap<KeyId, Option<&KeyState>> =
            self.model.iter().map(|key| (key.id, self.ledger.get(&key.id))).collect();
        for event in &self.events {
            let expected = match states.get(&event.key) {
                // Not here, whatever was done to it.
                None => Err(Closed::Unavailable),
                Some(None) => Ok(event.plaintext.clone().into_bytes()),
                Some(Some(state)) => Err(state.closed().unwrap()),
            };
            let open =
                |part: &SealedPart<'_>| self.keys.open_part(part, SUBJECTS[event.subject], TYPE);
            assert_eq!(with_part(&event.record, open), expected, "{}", event.plaintext);
        }
        for (who, subject) in SUBJECTS.iter().enumerate() {
            let durable = |(id, _): &(KeyId, KeyState)| {
                self.model.iter().any(|key| key.id == *id && key.is_durable)
            };
            assert_eq!(self.keys.state_of(subject), self.newest(who).filter(durable));
        }
        let is_erased = |id: &KeyId| matches!(self.ledger.get(id), Some(KeyState::Erased { .. }));
        // Those that are not durable were drawn for requests that may have failed.
        let durable = self.model.iter().filter(|key| key.is_durable);
        let (erased, wrapped): (Vec<_>, Vec<_>) = durable.partition(|key| is_erased(&key.id));
        let (erased, wrapped) = (erased.len() as u64, wrapped.len() as u64);
        let status = self.keys.status().unwrap();
        assert_eq!((status.live + status.withdrawn, status.erased), (wrapped, erased));
        assert_eq!(status.generations.values().sum::<u64>(), wrapped);
        for (name, bytes) in self.disk.contents() {
            let left = slots(&bytes).find(|slot| is_live(slot) && is_erased(&slot.id));
            assert_eq!(left, None, "an erased key is left in {name}");
        }
    }

    /// What was persisted is there after a crash, and nothing secret is in any file.
    fn check_end(&mut self) {
        self.crash();
        self.check();
        let sealed: Vec<u8> = self.events.iter().flat_map(|event| event.record.clone()).collect();
        for bytes in self.disk.contents().into_values().chain([sealed]) {
            assert!(!bytes.windows(6).any(|window| window == b"canary"));
            let stored = bytes.windows(32).find(|window| self.secrets.contains(*window));
            assert_eq!(stored, None, "a plain key is stored");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]
    #[test]
    fn keys_do_what_a_plain_map_does(steps in steps(), seed in any::<u64>()) {
        let mut world = World::new(seed);
        for step in steps {
            world.take(step);
            world.check();
        }
        world.check_end();
    }
}

#[test]
fn a_power_loss_at_any_operation_ends_before_or_after_the_change() {
    // How many operations a change takes, and how many the first key: that makes the store.
    for (change, expected) in [(Change::Persist, 2), (Change::Erase(0), 2), (Change::Rotate, 7)] {
        for seed in 0..20 {
            let failed = |power: u64| {
                let mut world = World::new(seed);
                world.seal(0, NonceSalt::Random);
                if seed % 4 > 0 {
                    world.seal(1, NonceSalt::Random);
                    world.make(Change::Persist).unwrap();
                    world.seal(2, NonceSalt::Random);
                }
                let has_failed = world.try_to(change, power, AfterFailure::Crash);
                world.check();
                world.make(change).unwrap();
                world.seal(1, NonceSalt::Random);
                world.make(Change::Persist).unwrap();
                world.check_end();
                has_failed
            };
            let first = if let Change::Persist = change { 7 } else { 0 };
            let expected = if seed % 4 > 0 { expected } else { first };
            assert_eq!((0..).take_while(|power| failed(*power)).count(), expected, "{change:?}");
        }
    }
}
