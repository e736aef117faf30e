//! Arbitrary records with their checksums put right as a WAL: opened with dense entries, which a
//! second opening finds again, or refused. A real WAL with a changed byte and a shorter file gives
//! a prefix of what was there, or refuses.
use crate::crc32c;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use wellspring_journal_raft::wal::{Entry, EntryId, Identity, Vote, Wal, WalOptions};
use wellspring_log::shared::entry::ClusterId;
use wellspring_log::storage::simulated::SimulatedStorage;

type Files = BTreeMap<String, Vec<u8>>;
/// Kind, lane, flags and zero; term; index; whether the link is right; the write; the body.
type Record = ([u8; 4], u8, u8, bool, u32, Vec<u8>);

const OPTIONS: WalOptions = WalOptions { file_bytes: 8_192, recent_bytes: 0 };

fn open(disk: &SimulatedStorage) -> Option<Wal> {
    Wal::open(Arc::new(disk.clone()), OPTIONS).ok()?
}

/// The files of a WAL with so many entries, and the entries.
fn real(count: u64) -> (Files, Vec<Entry>) {
    let disk = SimulatedStorage::new(1);
    let cluster = ClusterId([7; 16]);
    let identity = Identity { cluster, generation: 1, node: "a".into(), node_id: 77 };
    Wal::create(Arc::new(disk.clone()), &identity).unwrap();
    let mut wal = open(&disk).unwrap();
    wal.set_vote(Vote { term: 255, voted_for: Some(77), is_committed: true }).unwrap();
    for index in 1..=count {
        let id = EntryId { term: index / 5, index };
        wal.append(&[Entry { id, body: vec![index as u8; 500].into() }]).unwrap();
    }
    (disk.contents(), entries(&wal))
}

fn entries(wal: &Wal) -> Vec<Entry> {
    wal.reader().read(0..u64::MAX, usize::MAX).unwrap()
}

/// Sectors of the file `wal-1` with these bytes of records.
fn sectors(stream: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    for payload in stream.chunks(500) {
        let mut sector = [1_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
        sector.extend(payload);
        sector.resize(508, 0);
        file.extend(crc32c(&sector).to_le_bytes());
        file.extend(sector);
    }
    file
}

fn records(records: Vec<Record>) -> Files {
    let (mut stream, mut link) = (Vec::new(), 0_u32);
    for (kind, term, index, is_linked, write, body) in records {
        let mut header = kind.to_vec();
        header.extend((body.len() as u32).to_le_bytes());
        header.extend(u64::from(term).to_le_bytes());
        header.extend(u64::from(index).to_le_bytes());
        header.extend(crc32c(&body).to_le_bytes());
        header.extend(link.wrapping_add(u32::from(!is_linked)).to_le_bytes());
        header.extend(write.to_le_bytes());
        link = crc32c(&header);
        stream.extend(header);
        stream.extend(link.to_le_bytes());
        stream.extend(body);
    }
    static REAL: OnceLock<(Files, Vec<Entry>)> = OnceLock::new();
    let mut files = REAL.get_or_init(|| real(1)).0.clone();
    let file = files.get_mut("wal-1").unwrap();
    file.truncate(512);
    file.extend(sectors(&stream));
    files
}

/// What is opened goes on, and is the same at the next opening.
fn check(files: &Files) -> Option<Vec<Entry>> {
    let disk = SimulatedStorage::with_contents(1, files);
    let mut wal = open(&disk)?;
    let found = entries(&wal);
    assert!(found.windows(2).all(|two| two[0].id.index + 1 == two[1].id.index));
    let EntryId { term, index } = wal.reader().last();
    let id = EntryId { term, index: index + 1 };
    wal.append(&[Entry { id, body: b"next".to_vec().into() }]).unwrap();
    drop(wal);
    let again = entries(&open(&disk).expect("it opens again"));
    assert_eq!((again.len(), &again[..found.len()]), (found.len() + 1, &found[..]));
    Some(found)
}

pub fn run((which, at, change, end, made): (u8, u16, u8, Option<u16>, Vec<Record>)) {
    check(&records(made));
    static REAL: OnceLock<(Files, Vec<Entry>)> = OnceLock::new();
    let (mut files, expected) = REAL.get_or_init(|| real(20)).clone();
    let count = files.len();
    let file = files.values_mut().nth(usize::from(which) % count).expect("a file");
    file.truncate(end.map_or(usize::MAX, usize::from));
    if let Some(byte) = file.get_mut(usize::from(at)) {
        *byte ^= change;
    }
    if let Some(found) = check(&files) {
        assert!(expected.starts_with(&found));
    }
}
