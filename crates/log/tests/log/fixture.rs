//! A data folder written by version 1 of the format stays readable permanently. If this fails, the
//! format has changed: give it a new version and keep this folder.

use crate::oracle::{append, read_all};
use std::path::Path;
use wellspring_log::{Log, Options};
use wellspring_types::{Event, EventId, Query, QueryItem};

fn committed() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

fn id(n: u64) -> EventId {
    let mut bytes = [7; 16];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    EventId(bytes)
}

/// The content of the fixture.
fn expected(n: u64) -> Event {
    let tags = [format!("n:{n}"), format!("mod7:{}", n % 7), "all".to_owned()];
    let tags: Vec<&str> = tags[..(n % 4).min(3) as usize].iter().map(String::as_str).collect();
    let mut event =
        Event::json(["A", "B", "Ünïcode"][(n % 3) as usize], &tags, &format!("{{\"n\":{n}}}"));
    if n.is_multiple_of(5) {
        event.kind = wellspring_types::DataKind::Binary;
        event.data = vec![(n % 256) as u8; (n % 300) as usize];
    }
    if n.is_multiple_of(6) {
        event.id = Some(id(n));
    }
    if n.is_multiple_of(8) {
        event.metadata = vec![("trace".into(), format!("{n}"))];
    }
    event
}

const EVENTS: u64 = 2400;

fn copy() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(committed()).expect("the fixture") {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    dir
}

fn check(dir: &Path) {
    let options = Options { segment_bytes: 64 << 10, ..Options::default() };
    let log = Log::open(dir, options).expect("the fixture opens");
    let seen = read_all(&log);
    assert_eq!(seen.len() as u64, EVENTS);
    for seen in &seen {
        assert_eq!(seen.event, expected(seen.position), "position {}", seen.position);
    }
    let snapshot = log.snapshot();
    assert_eq!(snapshot.find_id(id(6)).unwrap(), Some(6));
    let query = Query { items: vec![QueryItem::new(&["B"], &["mod7:3"])] };
    let found = crate::oracle::drain(snapshot.read(&query, Default::default())).unwrap();
    let matches = |n: &u64| {
        let event = expected(*n);
        query.items[0].matches(&event.event_type, event.tags.iter().map(String::as_str))
    };
    let positions: Vec<u64> = found.iter().map(|seen| seen.position).collect();
    assert_eq!(positions, (1..=EVENTS).filter(matches).collect::<Vec<_>>());
    assert!(!positions.is_empty());
    let appended = log.append(append(&[Event::json("New", &[], "1")])).unwrap();
    assert_eq!(appended.first, EVENTS + 1);
}

#[test]
fn version_1_is_read_with_its_indexes() {
    let dir = copy();
    let sealed = std::fs::read_dir(dir.path()).unwrap();
    let sealed =
        sealed.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "idx"));
    assert!(sealed.count() >= 2);
    check(dir.path());
}

#[test]
fn version_1_is_read_without_its_indexes() {
    let dir = copy();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "idx") {
            std::fs::remove_file(path).unwrap();
        }
    }
    check(dir.path());
}

#[test]
fn version_1_verifies_as_sound() {
    let dir = copy();
    let report = wellspring_log::inspect::verify(dir.path(), &mut |_, _| {}).unwrap();
    assert!(report.is_sound() && report.stale_indexes.is_empty(), "{report:?}");
    assert_eq!(report.events, EVENTS);
    assert_eq!(report.indexes, report.segments - 1);
}

#[test]
fn a_version_from_the_future_is_refused_by_name() {
    let dir = copy();
    let path = dir.path().join("00000000000000000001.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 4;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..64]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let refused = Log::open(dir.path(), Options::default());
    assert!(matches!(refused, Err(wellspring_log::OpenError::UnknownVersion { version: 4, .. })));
}

/// How the fixture was made. Refuses to modify an existing one.
#[test]
#[ignore = "writes the fixture of a new format version"]
fn make_the_fixture() {
    assert!(!committed().exists(), "golden bytes are never regenerated");
    let options = Options { segment_bytes: 64 << 10, ..Options::default() };
    let log = Log::open(&committed(), options).unwrap();
    let mut n = 1;
    while n <= EVENTS {
        let count = (n % 9 + 1).min(EVENTS + 1 - n);
        let events: Vec<Event> = (n..n + count).map(expected).collect();
        log.append(append(&events)).unwrap();
        n += count;
    }
    log.close();
    std::fs::remove_file(committed().join("LOCK")).unwrap();
}
