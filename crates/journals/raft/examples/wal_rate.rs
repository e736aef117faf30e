//! Measures appends to the WAL against plain writes and barriers of the same bytes on the same
//! disk, in turns; then how long an opening takes.
//!
//! ```text
//! cargo run --release -p wellspring-journal-raft --example wal_rate FOLDER [BARRIERS [ENTRIES [BYTES]]]
//! ```
//!
//! One barrier has ENTRIES (64) of BYTES (256). The kinds take turns of 50 barriers, BARRIERS
//! (20,000) of each. The WAL writes 40 bytes more for each entry, and whole blocks: the second
//! plain kind writes as many bytes.

use bytes::Bytes;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellspring_journal_raft::wal::{Entry, EntryId, Identity, Wal, WalOptions};
use wellspring_log::shared::entry::ClusterId;
use wellspring_log::storage::DiskStorage;
use wellspring_log::{Clock as _, SystemClock};

const TURN: u64 = 50;
/// The length of a file, of the WAL's as well.
const RAW_BYTES: u64 = 64 << 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder on the disk to measure"));
    let mut number =
        |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (barriers, count, bytes) = (number(20_000), number(64), number(256));
    let body = Bytes::from(vec![0x5a; bytes as usize]);
    let raw = raw_file(&folder);
    let mut wal = new_wal(&folder.join("wal"));
    let mut index = 0;
    let mut turn_us: [Vec<u64>; 3] = Default::default();
    for turn in 0..barriers / TURN {
        let write = |length: u64| {
            let (length, first) = (length.next_multiple_of(4_096), turn * TURN);
            took_us(|step| {
                let at = (first + step) * length % (RAW_BYTES / length * length);
                raw.write_all_at(&vec![0x5a; length as usize], at).expect("a write");
                raw.sync_data().expect("a barrier");
            })
        };
        turn_us[0].push(write(count * bytes));
        turn_us[1].push(write(count * (bytes + 40) * 512 / 500));
        let entry = |index| Entry { id: EntryId { term: 1, index }, body: body.clone() };
        let entries: Vec<Entry> = (index + 1..=index + TURN * count).map(entry).collect();
        turn_us[2].push(took_us(|step| {
            let first = (step * count) as usize;
            wal.append(&entries[first..first + count as usize]).expect("entries are added");
            index += count;
            // As a checkpoint does when a file is full, so that files are used again.
            if (index - wal.reader().purged().index) * (bytes + 40) > 3 * RAW_BYTES {
                let upto = EntryId { term: 1, index: index - 2 * RAW_BYTES / (bytes + 40) };
                wal.purge(upto).expect("entries are purged");
            }
        }));
    }
    let kept = index - wal.reader().purged().index;
    drop(wal);
    let began_us = SystemClock.monotonic_us();
    let wal = open(&folder.join("wal"));
    let opened_us = SystemClock.monotonic_us() - began_us;
    let read = wal.reader().read(0..u64::MAX, usize::MAX).expect("entries are read").len() as u64;
    assert_eq!(read, kept);
    let read_us = SystemClock.monotonic_us() - began_us - opened_us;
    println!("opened in {opened_us} µs, {kept} entries read in {read_us} µs");
    // The files are made in the first turns.
    let steady = turn_us.map(|turns| {
        let mut turns = turns[turns.len() / 2..].to_vec();
        turns.sort_unstable();
        turns[turns.len() / 2] as f64 / TURN as f64
    });
    let [raw_us, blocks_us, wal_us] = steady;
    println!(
        "a barrier: plain {raw_us:.0} µs, as many bytes {blocks_us:.0} µs, WAL {wal_us:.0} µs"
    );
    println!(
        "rate of the WAL: {:.3} of plain, {:.3} of as many bytes",
        raw_us / wal_us,
        blocks_us / wal_us
    );
}

/// How long a turn takes, in µs.
fn took_us(step: impl FnMut(u64)) -> u64 {
    let began_us = SystemClock.monotonic_us();
    (0..TURN).for_each(step);
    SystemClock.monotonic_us() - began_us
}

/// A file of zeros, as the WAL's are before they are written.
fn raw_file(folder: &Path) -> File {
    std::fs::create_dir_all(folder).expect("a folder");
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(true).write(true).open(folder.join("raw"));
    let file = file.expect("a file");
    for at in (0..RAW_BYTES).step_by(1 << 20) {
        file.write_all_at(&vec![0; 1 << 20], at).expect("zeros");
    }
    file.sync_all().expect("a barrier");
    file
}

fn new_wal(folder: &Path) -> Wal {
    let storage = Arc::new(DiskStorage::create(folder).expect("a folder"));
    let cluster = ClusterId([1; 16]);
    let identity = Identity { cluster, generation: 1, node: "a".into(), node_id: 1 };
    Wal::create(storage, &identity).expect("a new folder");
    let mut wal = open(folder);
    let vote = wellspring_journal_raft::wal::Vote { term: 1, ..Default::default() };
    wal.set_vote(vote).expect("a vote");
    wal
}

fn open(folder: &Path) -> Wal {
    let storage = Arc::new(DiskStorage::existing(folder).expect("the folder"));
    Wal::open(storage, WalOptions::default()).expect("a WAL").expect("an identity")
}
