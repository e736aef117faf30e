//! Laws of keys, one at a time.
#![allow(clippy::disallowed_methods)] // tests use real threads

use crate::key::SubjectKey;
use crate::model_tests::{TYPE, World, open_keys, record, with_part};
use crate::sealer::SealedWith;
use crate::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use wellspring_format::record::records;
use wellspring_format::sealed_parts::{PartKind, SealedPart};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_types::EventId;

const ADA: &str = "student:1f";
const EVE: &str = "student:2f";

fn personal<'a>(subject: &'a str, plaintext: &'a [u8]) -> PlainPart<'a> {
    PlainPart { tag: 0, subject, kind: PartKind::Personal, plaintext }
}

/// The record of an event with this part, and the key that it is sealed with.
fn sealed(keys: &Arc<SubjectKeys>, part: PlainPart<'_>, salt: NonceSalt) -> (Vec<u8>, SealedWith) {
    let mut sealer = Sealer::new(Some(Arc::clone(keys)), 1);
    let record = record(part.subject, sealer.seal(TYPE, salt, &[part]).unwrap());
    (record, sealer.into_used())
}

fn used(keys: &Arc<SubjectKeys>, subject: &str) -> SealedWith {
    sealed(keys, personal(subject, b"1"), NonceSalt::Random).1
}

#[test]
fn threads_that_open_a_subject_at_once_share_one_key_and_an_erasure_waits_for_all() {
    let take_all = |keys: &Arc<SubjectKeys>| {
        let start = Barrier::new(8);
        let take = || {
            start.wait();
            keys.sealing_key(ADA, 1).unwrap()
        };
        let taken: Vec<Arc<SubjectKey>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(taken.iter().all(|key| key.id == taken[0].id));
        taken
    };
    for round in 0..50 {
        let mut world = World::new(1);
        drop(take_all(&world.keys));
        world.keys.persist(1).unwrap();
        world.keys = open_keys(&world.disk, world.root()).unwrap();
        let mut taken = take_all(&world.keys);
        let last = taken.swap_remove(round % 8);
        let id = world.keys.withdraw_subject(ADA, 9).unwrap();
        drop(taken);
        assert!(world.keys.is_in_use(&id), "one of them still seals");
        drop(last);
        assert!(!world.keys.is_in_use(&id));
    }
}

#[test]
fn a_withdrawn_key_is_in_use_as_long_as_a_request_seals_with_it() {
    let world = World::new(1);
    let keys = &world.keys;
    let request = used(keys, ADA);
    // More than the cache holds: the key of a request under way is not forgotten.
    (0..20).for_each(|n| drop(used(keys, &format!("other:{n}"))));
    keys.persist(1).unwrap();
    drop([used(keys, "other:20"), used(keys, ADA)]);
    // A grace period begins, the erasure is cancelled, and another one is carried out at once.
    let id = keys.withdraw_subject(ADA, 9).unwrap();
    keys.give_back(&id);
    drop(used(keys, ADA));
    assert_eq!([9, 1].map(|at| keys.withdraw_subject(ADA, at)), [Some(id); 2]);
    assert!(keys.is_in_use(&id), "an erasure does not wait for the request");
    drop(request);
    assert!(!keys.is_in_use(&id), "the key is still in memory");
}

#[test]
fn sealing_repeats_under_an_id_or_a_number_and_opens_only_in_its_place() {
    let keys = World::new(1).keys;
    let part = personal(ADA, b"{\"name\":\"Ada\"}");
    let [one, two] = [1, 2].map(|n| [NonceSalt::Id(EventId([n; 16])), NonceSalt::Number(n.into())]);
    let salts = [[NonceSalt::Random; 2], one, two].concat();
    let others =
        [part, personal(ADA, b"{\"name\":\"Eve\"}"), PlainPart { kind: PartKind::Json, ..part }];
    let mut nonces = BTreeSet::new();
    for salt in &salts {
        let again = || sealed(&keys, part, *salt).0;
        assert_eq!(again() == again(), *salt != NonceSalt::Random, "{salt:?}");
        let sealed = others.map(|part| sealed(&keys, part, *salt).0);
        nonces.extend(sealed.map(|record| with_part(&record, |part| part.nonce)));
    }
    assert_eq!(nonces.len(), 3 * salts.len(), "a nonce is used for two plaintexts");
    with_part(&sealed(&keys, part, salts[0]).0, |sealed| {
        let open = |part: &SealedPart<'_>| keys.open_part(part, ADA, TYPE);
        assert_eq!(open(sealed).unwrap(), part.plaintext);
        assert_eq!(keys.open_part(sealed, EVE, TYPE), Err(Closed::Unavailable));
        assert_eq!(keys.open_part(sealed, ADA, "Other"), Err(Closed::Unavailable));
        assert_eq!(open(&SealedPart { kind: PartKind::Json, ..*sealed }), Err(Closed::Unavailable));
        assert_eq!(open(&SealedPart { nonce: [0; 12], ..*sealed }), Err(Closed::Unavailable));
        for bit in 0..sealed.ciphertext.len() * 8 {
            let mut ciphertext = sealed.ciphertext.to_vec();
            ciphertext[bit / 8] ^= 1 << (bit % 8);
            let changed = SealedPart { ciphertext: &ciphertext, ..*sealed };
            assert_eq!(open(&changed), Err(Closed::Unavailable));
        }
    });
}

#[test]
fn a_digest_is_keyed_and_ends_with_its_key() {
    let mut world = World::new(1);
    let plain = [7; 16];
    assert_eq!(SealedWith::default().digest(plain), plain);
    let digest = |world: &World, subject| used(&world.keys, subject).digest(plain);
    let (ada, eve) = (digest(&world, ADA), digest(&world, EVE));
    assert_eq!(BTreeSet::from([plain, ada, eve, used(&world.keys, ADA).digest([8; 16])]).len(), 4);
    world.keys.persist(1).unwrap();
    world.keys = open_keys(&world.disk, world.root()).unwrap();
    assert_eq!(digest(&world, ADA), ada, "a retry after a restart is known");
    let (id, _) = world.keys.state_of(ADA).unwrap();
    world.keys.erase(&[id], 0, 1).unwrap();
    assert_ne!(digest(&world, ADA), ada);
}

#[test]
fn an_erasure_is_written_again_after_a_failed_barrier() {
    let world = World::new(1);
    drop(used(&world.keys, ADA));
    world.keys.persist(1).unwrap();
    let (id, _) = world.keys.state_of(ADA).unwrap();
    world.disk.set_faults(Faults { sync_fails_after: Some(0), ..Faults::default() });
    world.keys.erase(&[id], 9, 1).unwrap_err();
    // A barrier alone proves nothing about what the system has given up to write.
    world.disk.set_faults(Faults { power_fails_after: Some(1), ..Faults::default() });
    world.keys.erase(&[id], 9, 1).unwrap_err();
    world.disk.set_faults(Faults::default());
    world.keys.erase(&[id], 9, 1).unwrap();
    // One that is erased keeps the fence that its slot has.
    world.keys.erase(&[id], 1000, 1).unwrap();
    let again = open_keys(&world.disk, world.root()).unwrap();
    for keys in [&world.keys, &again] {
        assert_eq!(keys.state_of(ADA), Some((id, KeyState::Erased { fence_until_us: 9 })));
    }
}

#[test]
fn a_subject_is_an_opaque_tag() {
    let keys = World::new(1).keys;
    let refused = |subject: &str| keys.sealing_key(subject, 1).err();
    for subject in ["ada", "a:", ":a", "a:b\nc", &format!("a:{}", "x".repeat(119))] {
        assert_eq!(refused(subject), Some(SealRefusal::NotASubject), "{subject:?}");
    }
    for subject in ["user:ada@example.org", "phone:+49 (0)30 1234567"] {
        assert_eq!(refused(subject), Some(SealRefusal::Identifying), "{subject:?}");
    }
    for subject in ["user:ada@home", "n:4930123456", &format!("a:{}", "x".repeat(118))] {
        assert_eq!(refused(subject), None, "{subject:?}");
    }
}

#[test]
fn any_flipped_bit_of_a_slot_and_a_missing_root_are_refused() {
    let world = World::new(1);
    drop((used(&world.keys, ADA), used(&world.keys, EVE)));
    world.keys.persist(1).unwrap();
    world.keys.erase(&[world.keys.state_of(EVE).unwrap().0], 9, 1).unwrap();
    let opened = |change: &dyn Fn(&mut Vec<u8>), root: PathBuf| {
        let mut files = world.disk.contents();
        change(files.get_mut("store").unwrap());
        open_keys(&SimulatedStorage::with_contents(1, &files), root).map(drop)
    };
    for bit in (0..16 * 8).chain(4096 * 8..(4096 + 512) * 8) {
        let found = opened(&|store| store[bit / 8] ^= 1 << (bit % 8), world.root());
        let slot = bit as u64 / 8 / 256 * 256;
        let is_found = matches!(found, Err(KeysFault::Damaged { offset }) if offset == slot);
        assert!(is_found, "bit {bit}: {found:?}");
    }
    // A piece of a slot at the end was being added when the machine stopped.
    opened(&|store| store.extend([7; 255]), world.root()).unwrap();
    let missing = opened(&|_| (), world.root().with_extension("gone"));
    assert!(matches!(missing, Err(KeysFault::RootMissing { .. })), "{missing:?}");
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1").join(name)
}

/// The parts of the fixture; the subject of the second one is erased.
const FIXTURE: [(&str, NonceSalt, &[u8]); 2] = [
    (ADA, NonceSalt::Number(1), b"{\"name\":\"Ada\"}"),
    (EVE, NonceSalt::Id(EventId([2; 16])), b"{\"name\":\"Eve\"}"),
];

/// If this fails, the format of the store, of roots or of parts has changed: give it a new version
/// and keep these files.
#[test]
fn a_store_of_version_1_opens_what_was_sealed_with_it() {
    let read = |name| std::fs::read(fixture(name)).unwrap();
    let (events, store) = (read("events"), read("store"));
    let files = [("store".to_owned(), store.clone())].into();
    let keys = open_keys(&SimulatedStorage::with_contents(1, &files), fixture("root")).unwrap();
    let events: Vec<SealedPart<'_>> =
        records(&events).flat_map(|event| event.sealed_parts()).collect();
    let [(subject, salt, plaintext), erased] = FIXTURE;
    assert_eq!(keys.open_part(&events[0], subject, TYPE), Ok(plaintext.to_vec()));
    assert_eq!(keys.open_part(&events[1], erased.0, TYPE), Err(Closed::Erased));
    let again = sealed(&keys, personal(subject, plaintext), salt).0;
    with_part(&again, |part| assert_eq!(*part, events[0]));
    assert_eq!(keys.copy().unwrap().unwrap().bytes, store);
}

/// How the fixture was made. Refuses to modify an existing one.
#[test]
#[ignore = "writes the fixture of a new format version"]
fn make_the_fixture() {
    assert!(!fixture("").exists(), "golden bytes are never regenerated");
    std::fs::create_dir_all(fixture("")).unwrap();
    let disk = SimulatedStorage::new(1);
    let keys = open_keys(&disk, fixture("root")).unwrap();
    let parts = FIXTURE.map(|of| sealed(&keys, personal(of.0, of.2), of.1).0);
    keys.persist(2).unwrap();
    keys.rotate().unwrap();
    keys.erase(&[keys.state_of(EVE).unwrap().0], u64::MAX, 3).unwrap();
    std::fs::write(fixture("events"), parts.concat()).unwrap();
    std::fs::write(fixture("store"), &disk.contents()["store"]).unwrap();
}
