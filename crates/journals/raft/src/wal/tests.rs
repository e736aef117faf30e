//! Single promises of the WAL.

use super::model_tests::{acknowledged_bytes, identity, open};
use super::*;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use wellspring_log::Corruption;
use wellspring_log::storage::simulated::{Faults, SECTOR_BYTES, SimulatedStorage};
use wellspring_log::storage::{DiskStorage, Storage};

const SMALL: WalOptions = WalOptions { file_bytes: 8_192, recent_bytes: 0 };

fn entries(term: u64, indexes: std::ops::RangeInclusive<u64>, bytes: usize) -> Vec<Entry> {
    let body = |index: u64| Bytes::from(vec![index as u8 | 1; bytes]);
    indexes.map(|index| Entry { id: EntryId { term, index }, body: body(index) }).collect()
}

fn new_disk() -> SimulatedStorage {
    let disk = SimulatedStorage::new(3);
    Wal::create(Arc::new(disk.clone()), &identity()).unwrap();
    disk
}

fn all(wal: &Wal) -> Vec<Entry> {
    wal.reader().read(0..u64::MAX, usize::MAX).unwrap()
}

/// Three files, one of which is used again, a cut, two openings, a purge and a vote.
fn history(storage: Arc<dyn Storage>) -> Wal {
    Wal::create(Arc::clone(&storage), &identity()).unwrap();
    let open = || Wal::open(Arc::clone(&storage), SMALL).unwrap().unwrap();
    let mut wal = open();
    wal.set_vote(Vote { term: 4, voted_for: Some(77), is_committed: true }).unwrap();
    wal.append(&entries(3, 1..=6, 300)).unwrap();
    wal.append(&entries(3, 7..=9, 700)).unwrap();
    wal.truncate_after(8).unwrap();
    wal.append(&entries(4, 9..=12, 200)).unwrap();
    drop(wal);
    let mut wal = open();
    wal.append(&entries(4, 13..=13, 10)).unwrap();
    wal.append(&entries(4, 14..=22, 900)).unwrap();
    wal.purge(EntryId { term: 4, index: 12 }).unwrap();
    wal.append(&entries(4, 23..=30, 900)).unwrap();
    wal.append(&entries(4, 31..=31, 10)).unwrap();
    wal
}

fn damaged_file(opened: Result<Wal, WalFault>) -> Option<String> {
    match opened {
        Err(WalFault::Damaged(Corruption { file, .. })) => Some(file),
        _ => None,
    }
}

#[test]
fn every_acknowledged_byte_is_guarded() {
    let disk = SimulatedStorage::new(1);
    let wal = history(Arc::new(disk.clone()));
    let files = disk.contents();
    let ranges = acknowledged_bytes(&files, wal.end_of_records());
    let names: Vec<&str> = ranges.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["state", "state", "wal-2", "wal-3", "wal-4"]);
    for (name, range) in ranges {
        for at in range {
            let mut rotten = files.clone();
            rotten.get_mut(&name).unwrap()[at] ^= 0x10;
            let opened = open(&SimulatedStorage::with_contents(1, &rotten), SMALL);
            assert_eq!(damaged_file(opened).as_ref(), Some(&name), "byte {at}");
        }
    }
}

type Change = fn(&mut Wal) -> Result<(), WalFault>;

#[test]
fn a_power_loss_at_any_operation_loses_nothing_acknowledged() {
    let steps: [Change; 6] = [
        |wal| wal.set_vote(Vote { term: 9, voted_for: None, is_committed: false }),
        |wal| wal.append(&entries(9, 32..=60, 400)),
        |wal| wal.truncate_after(25),
        |wal| wal.append(&entries(9, 26..=27, 3_000)),
        |wal| wal.purge(EntryId { term: 9, index: 27 }),
        |wal| wal.purge(EntryId { term: 9, index: 70 }),
    ];
    for seed in 0..40 {
        let mut power = 0;
        loop {
            let disk = SimulatedStorage::new(seed);
            let mut wal = history(Arc::new(disk.clone()));
            disk.set_faults(Faults { power_fails_after: Some(power), ..Faults::default() });
            let done = steps.iter().take_while(|step| step(&mut wal).is_ok()).count();
            let (last, purged) = (wal.reader().last(), wal.reader().purged());
            let wal = open(&disk.crash(), SMALL).unwrap_or_else(|fault| panic!("{seed}: {fault}"));
            assert!(wal.vote().term == 9 || done == 0);
            assert!(wal.reader().purged().index >= purged.index);
            // A cut that was not acknowledged may have been made.
            let found = wal.reader();
            assert!(found.last().index >= if done == 2 { 25 } else { last.index });
            let count = found.last().index - found.purged().index;
            assert_eq!(all(&wal).len() as u64, count);
            if done == steps.len() {
                break;
            }
            power += 1;
        }
        assert!(power > 20, "{power} operations");
    }
}

/// Contents after each of some writes.
fn contents_of_writes() -> Vec<BTreeMap<String, Vec<u8>>> {
    let disk = new_disk();
    let mut wal = open(&disk, WalOptions { file_bytes: 65_536, ..SMALL }).unwrap();
    let mut contents = Vec::new();
    for write in 0..4 {
        wal.append(&entries(0, 1 + 3 * write..=3 + 3 * write, 600)).unwrap();
        contents.push(disk.contents());
    }
    contents
}

#[test]
fn a_lost_write_is_rot_if_a_later_one_is_there() {
    let contents = contents_of_writes();
    let newest = contents.last().unwrap();
    let sectors = newest["wal-1"].len() / SECTOR_BYTES;
    let mut lost = 0;
    for sector in 1..sectors {
        let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
        for before in &contents[..2] {
            let mut files = newest.clone();
            let old = before["wal-1"].get(bytes.clone()).unwrap_or(&[0; SECTOR_BYTES]);
            let file = files.get_mut("wal-1").unwrap();
            // A lost sector of the last write looks like one of a torn write.
            if file[bytes.clone()] == *old || file[sector * SECTOR_BYTES + 8] == 4 {
                continue;
            }
            lost += 1;
            file[bytes.clone()].copy_from_slice(old);
            let opened = open(&SimulatedStorage::with_contents(1, &files), SMALL);
            assert_eq!(damaged_file(opened).as_deref(), Some("wal-1"), "sector {sector}");
        }
    }
    assert!(lost > 4, "{lost}");
}

#[test]
fn a_torn_write_is_cut_wherever_it_is_torn() {
    let contents = contents_of_writes();
    let (before, after) = (&contents[2]["wal-1"], &contents[3]["wal-1"]);
    let changed: Vec<usize> = (0..after.len() / SECTOR_BYTES)
        .filter(|sector| {
            let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            after[bytes.clone()] != before[bytes]
        })
        .collect();
    assert_eq!(changed.len(), 5);
    for kept in 0..1 << changed.len() {
        let mut files = contents[2].clone();
        for (bit, sector) in changed.iter().enumerate().filter(|(bit, _)| kept & 1 << bit != 0) {
            assert!(bit < 5);
            let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            files.get_mut("wal-1").unwrap()[bytes.clone()].copy_from_slice(&after[bytes]);
        }
        let disk = SimulatedStorage::with_contents(1, &files);
        let mut wal = open(&disk, SMALL).unwrap_or_else(|fault| panic!("{kept:b}: {fault}"));
        let last = wal.reader().last().index;
        assert!((9..=12).contains(&last) && (last == 12) == (kept == 31), "{kept:b}: {last}");
        // What is left of the torn write never comes back.
        wal.append(&entries(0, last + 1..=last + 1, 5)).unwrap();
        drop(wal);
        let wal = open(&disk, SMALL).unwrap();
        assert_eq!(wal.reader().last().index, last + 1);
        assert_eq!(all(&wal).last().unwrap().body.len(), 5);
    }
}

#[test]
fn a_missing_or_foreign_file_is_reported() {
    let disk = SimulatedStorage::new(1);
    drop(history(Arc::new(disk.clone())));
    let files = disk.contents();
    for name in ["wal-2", "wal-3", "wal-4", "state"] {
        let mut without = files.clone();
        without.remove(name).unwrap();
        let opened = open(&SimulatedStorage::with_contents(1, &without), SMALL);
        let named = if name == "wal-2" { "wal-3" } else { name };
        assert_eq!(damaged_file(opened).as_deref(), Some(named));
    }
    let other = SimulatedStorage::new(1);
    Wal::create(Arc::new(other.clone()), &Identity { node_id: 78, ..identity() }).unwrap();
    let mut mixed = files.clone();
    mixed.insert("state".to_owned(), other.contents()["state"].clone());
    let opened = open(&SimulatedStorage::with_contents(1, &mixed), SMALL);
    assert_eq!(damaged_file(opened).as_deref(), Some("state"));
    let mut renamed = files.clone();
    let last = renamed.remove("wal-4").unwrap();
    renamed.insert("wal-5".to_owned(), last);
    assert!(damaged_file(open(&SimulatedStorage::with_contents(1, &renamed), SMALL)).is_some());
}

#[test]
fn a_vote_from_before_the_last_entry_is_reported() {
    let disk = new_disk();
    let mut wal = open(&disk, SMALL).unwrap();
    wal.append(&entries(0, 1..=1, 5)).unwrap();
    let old_state = disk.contents()["state"].clone();
    wal.set_vote(Vote { term: 2, voted_for: Some(5), is_committed: false }).unwrap();
    wal.append(&entries(2, 2..=2, 5)).unwrap();
    let mut files = disk.contents();
    files.insert("state".to_owned(), old_state);
    let opened = open(&SimulatedStorage::with_contents(1, &files), SMALL);
    assert_eq!(damaged_file(opened).as_deref(), Some("state"));
}

#[test]
fn without_an_identity_a_node_is_nobody() {
    let disk = SimulatedStorage::new(1);
    let storage = || Arc::new(disk.clone());
    assert!(Wal::open(storage(), SMALL).unwrap().is_none());
    let named = |node: &str| Identity { node: node.to_owned(), ..identity() };
    for name in ["", "a\nb", &"a".repeat(256)] {
        assert!(matches!(Wal::create(storage(), &named(name)), Err(WalFault::NodeName)));
    }
    let longest = named(&"ä".repeat(127));
    Wal::create(storage(), &longest).unwrap();
    assert!(matches!(Wal::create(storage(), &longest), Err(WalFault::HasIdentity)));
    let mut wal = open(&disk, SMALL).unwrap();
    assert_eq!(*wal.identity(), longest);
    assert!(matches!(Wal::open(storage(), SMALL), Err(WalFault::Io { .. })), "it is locked");
    wal.append(&entries(0, 1..=1, 5)).unwrap();
    drop(wal);
    disk.remove("identity").unwrap();
    assert!(matches!(Wal::open(storage(), SMALL), Err(WalFault::Orphaned { .. })));
    assert!(matches!(Wal::create(storage(), &identity()), Err(WalFault::Orphaned { .. })));
    disk.rename("wal-1", "spare").unwrap();
    assert!(matches!(Wal::create(storage(), &identity()), Err(WalFault::Orphaned { .. })));
    disk.create("identity").unwrap().write_all_at(b"cluster 1\ncheck 00000000\n", 0).unwrap();
    assert_eq!(damaged_file(open(&disk, SMALL)).as_deref(), Some("identity"));
}

#[test]
fn a_founding_that_a_crash_ends_is_repeated() {
    for seed in 0..50 {
        let mut power = 0;
        loop {
            let disk = SimulatedStorage::new(seed);
            disk.set_faults(Faults { power_fails_after: Some(power), ..Faults::default() });
            let is_made = Wal::create(Arc::new(disk.clone()), &identity()).is_ok();
            let disk = disk.crash();
            let wal = Wal::open(Arc::new(disk.clone()), SMALL).unwrap();
            assert!(wal.is_some() || !is_made);
            if wal.is_none() {
                Wal::create(Arc::new(disk.clone()), &identity()).unwrap();
                assert!(Wal::open(Arc::new(disk.clone()), SMALL).unwrap().is_some());
            }
            if is_made {
                break;
            }
            power += 1;
        }
        assert!(power > 7, "{power} operations");
    }
}

#[test]
fn many_entries_take_one_write_and_one_barrier() {
    let disk = new_disk();
    let mut wal = open(&disk, WalOptions::default()).unwrap();
    wal.append(&entries(0, 1..=10, 500)).unwrap();
    let before = disk.syncs();
    disk.set_faults(Faults { power_fails_after: Some(2), ..Faults::default() });
    wal.append(&entries(0, 11..=74, 256)).unwrap();
    assert_eq!(disk.syncs(), before + 1);
    disk.set_faults(Faults::default());
    assert_eq!(disk.contents()["wal-1"].len(), 68 << 10, "it grows with what is written");
    assert_eq!(all(&wal).len(), 74);
}

#[test]
fn a_full_disk_refuses_entries_and_takes_votes_and_purges() {
    let disk = new_disk();
    let mut wal = open(&disk, SMALL).unwrap();
    wal.append(&entries(0, 1..=2, 2_000)).unwrap();
    let used = disk.contents().values().map(|bytes| bytes.len() as u64).sum();
    disk.set_faults(Faults { capacity_bytes: Some(used), ..Faults::default() });
    assert!(matches!(wal.append(&entries(0, 3..=9, 2_000)), Err(WalFault::Io { .. })));
    // What fits into the file is there.
    assert_eq!(wal.reader().last().index, 3);
    wal.set_vote(Vote { term: 5, voted_for: Some(1), is_committed: false }).unwrap();
    wal.purge(EntryId { term: 0, index: 1 }).unwrap();
    disk.set_faults(Faults::default());
    wal.append(&entries(5, 4..=9, 2_000)).unwrap();
    drop(wal);
    let wal = open(&disk, SMALL).unwrap();
    assert_eq!(wal.vote().term, 5);
    assert_eq!(
        all(&wal).iter().map(|entry| entry.id.index).collect::<Vec<_>>(),
        [2, 3, 4, 5, 6, 7, 8, 9]
    );
}

#[test]
fn a_failed_barrier_ends_the_wal_and_reads_go_on() {
    let disk = new_disk();
    let mut wal = open(&disk, SMALL).unwrap();
    wal.append(&entries(0, 1..=2, 20)).unwrap();
    disk.set_faults(Faults { sync_fails_after: Some(0), ..Faults::default() });
    assert!(matches!(wal.append(&entries(0, 3..=3, 20)), Err(WalFault::Failed { .. })));
    assert!(matches!(wal.append(&entries(0, 3..=3, 20)), Err(WalFault::Ended)));
    assert!(matches!(wal.set_vote(Vote::default()), Err(WalFault::Ended)));
    assert!(matches!(wal.truncate_after(1), Err(WalFault::Ended)));
    assert!(matches!(wal.purge(EntryId { term: 0, index: 1 }), Err(WalFault::Ended)));
    assert_eq!(all(&wal), entries(0, 1..=2, 20));
}

#[test]
fn an_entry_that_fits_into_no_file_is_refused_and_changes_nothing() {
    let disk = new_disk();
    let mut wal = open(&disk, SMALL).unwrap();
    let largest = 15 * 500 - 40;
    let mut two = entries(0, 1..=1, 5);
    two.extend(entries(0, 2..=2, largest + 1));
    assert!(matches!(wal.append(&two), Err(WalFault::TooLong { bytes }) if bytes == largest + 1));
    assert_eq!(all(&wal), []);
    two[1].body.truncate(largest);
    wal.append(&two).unwrap();
    drop(wal);
    assert_eq!(all(&open(&disk, SMALL).unwrap()), two);
}

#[test]
fn readers_read_while_entries_are_written_purged_and_files_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Arc::new(DiskStorage::create(folder.path()).unwrap());
    Wal::create(storage.clone(), &identity()).unwrap();
    let mut wal = Wal::open(storage, SMALL).unwrap().unwrap();
    let counts = [1, 3].map(|step| (step, AtomicU64::new(0)));
    let is_enough = |(_, read): &(u64, AtomicU64)| read.load(Relaxed) > 20_000;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (step, read) in &counts {
            let (reader, is_done) = (wal.reader(), &is_done);
            scope.spawn(move || {
                for _ in (0..1_000_000).take_while(|_| !is_done.load(Relaxed)) {
                    let from = reader.purged().index + step;
                    for entry in reader.read(from..from + 40, 4_000).unwrap() {
                        assert_eq!(entry, entries(0, entry.id.index..=entry.id.index, 90)[0]);
                        read.fetch_add(1, Relaxed);
                    }
                }
            });
        }
        let written = (1..1_000_000).take_while(|index| {
            wal.append(&entries(0, *index..=*index, 90)).unwrap();
            if index % 50 == 0 && *index > 200 {
                wal.purge(EntryId { term: 0, index: index - 150 }).unwrap();
            }
            *index < 1_500 || !counts.iter().all(is_enough)
        });
        assert!(written.count() < 999_999, "the readers starve");
        is_done.store(true, Relaxed);
    });
    assert!(!folder.path().join("wal-1").exists());
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

fn files_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    files.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

#[test]
fn version_1_is_read_and_written_byte_for_byte() {
    let files = files_of(&fixture());
    let wal = open(&SimulatedStorage::with_contents(1, &files), SMALL).unwrap();
    let mut expected = entries(4, 13..=13, 10);
    expected.extend(entries(4, 14..=30, 900));
    expected.extend(entries(4, 31..=31, 10));
    assert_eq!(all(&wal), expected);
    assert_eq!(wal.vote(), Vote { term: 4, voted_for: Some(77), is_committed: true });
    assert_eq!(wal.reader().purged(), EntryId { term: 4, index: 12 });
    let disk = SimulatedStorage::new(1);
    drop(history(Arc::new(disk.clone())));
    assert_eq!(disk.contents(), files);
}

/// How the fixture was made. Refuses to modify an existing one.
#[test]
#[ignore = "writes the fixture of a new format version"]
fn make_the_fixture() {
    assert!(!fixture().exists(), "golden bytes are never regenerated");
    std::fs::create_dir_all(fixture()).unwrap();
    let disk = SimulatedStorage::new(1);
    drop(history(Arc::new(disk.clone())));
    for (name, bytes) in disk.contents() {
        std::fs::write(fixture().join(name), bytes).unwrap();
    }
}
