//! Adjacent segments get one index, which is visible only in the number of files.

use crate::gated::GatedStorage;
use crate::oracle::{Oracle, SeenEvent, append, append_if, drain, open, read_all, small_segments};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{AppendError, CountStep, Log, Order, ReadOptions, Work, inspect};
use wellspring_patience::Patience;
use wellspring_types::{AppendCondition, Event, Query};

/// Number of segments whose indexes become one.
const FAN: usize = 4;

fn names(storage: &SimulatedStorage, suffix: &str) -> Vec<String> {
    storage.contents().into_keys().filter(|name| name.ends_with(suffix)).collect()
}

fn event(number: usize) -> Event {
    let data = format!("\"{}\"", "x".repeat(3_000));
    let tags = [format!("t:{}", number % 7), "all".to_owned(), format!("unique:{number:05}")];
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    Event::json(["A", "B", "C"][number % 3], &tags, &data)
}

/// Appends events until there are this many segments, and waits until their indexes are merged.
fn fill(storage: &SimulatedStorage, log: &Log, segments: usize) {
    while log.segments() < segments as u64 {
        log.append(append(&[event(log.head() as usize)])).unwrap();
    }
    // Of 4, of 16, and so on: the digits of the number of full segments.
    let (mut left, mut indexes) = (segments - 1, 0);
    while left > 0 {
        indexes += left % FAN;
        left /= FAN;
    }
    let mut patience = Patience::new();
    while names(storage, ".idx").len() != indexes {
        patience.pause(format_args!("{:?}", names(storage, ".idx")));
    }
}

fn queries() -> Vec<Query> {
    let mut queries = vec![Query::all()];
    for (types, tags) in [
        (&["A"][..], &[][..]),
        (&[], &["t:3"]),
        (&["A", "B"], &["t:3", "all"]),
        (&[], &["unique:00017"]),
        (&[], &["unique:00200"]),
        (&["C"], &["unique:00018"]),
        (&[], &["nowhere"]),
    ] {
        queries.push(Query::item(types, tags));
    }
    queries
}

/// Runs all queries and compares the results with what was appended.
fn check(log: &Log, all: &[SeenEvent]) {
    let snapshot = log.snapshot();
    let oracle = Oracle { events: all.iter().map(|seen| seen.event.clone()).collect() };
    for query in queries() {
        let matching = if query.items.is_empty() { all.to_vec() } else { oracle.matching(&query) };
        for after in [0, 1, 20, 23, 60, all.len() as u64 / 2, all.len() as u64 - 3] {
            let later = matching.iter().filter(|seen| seen.position > after).cloned();
            let wanted: Vec<SeenEvent> = later.collect();
            let options = ReadOptions { after: Some(after), ..ReadOptions::default() };
            let read = drain(snapshot.read(&query, options));
            assert!(read.as_ref() == Ok(&wanted), "{query:?} after {after}");
            let counted = {
                let mut count = snapshot.count(query.clone(), after);
                loop {
                    if let CountStep::Done(n) = count.step(&mut Work::unbounded()).unwrap() {
                        break n;
                    }
                }
            };
            assert_eq!(counted, wanted.len() as u64, "{query:?} after {after}");
            if query.items.is_empty() {
                continue;
            }
            let condition = AppendCondition::no_match_after(query.clone(), after);
            if let Some(conflict) = oracle.judge(&condition) {
                match log.append(append_if(&[event(0)], condition)) {
                    Err(AppendError::Conflict(found)) => assert_eq!(found, conflict),
                    other => panic!("{query:?} after {after}: {other:?}"),
                }
            }
        }
        let down = ReadOptions { order: Order::Descending, ..ReadOptions::default() };
        let mut back = matching;
        back.reverse();
        assert!(drain(snapshot.read(&query, down)) == Ok(back), "{query:?} descending");
    }
}

#[test]
fn adjacent_segments_share_an_index_and_answer_as_before() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&storage, &log, 3);
    let early = log.snapshot();
    let before = drain(early.read(&Query::all(), ReadOptions::default())).unwrap();
    fill(&storage, &log, FAN * FAN + 2 * FAN + 4);
    check(&log, &read_all(&log));
    // A reader that began before the merge continues with the files it has open.
    let again = drain(early.read(&Query::item(&[], &["all"]), ReadOptions::default()));
    assert!(again == Ok(before));
    log.close();
    drop(log);
    let log = open(&storage, small_segments()).unwrap();
    assert_eq!(log.segments() as usize, FAN * FAN + 2 * FAN + 4);
    check(&log, &read_all(&log));
}

/// The files of a log with a merged index, and its events.
fn merged() -> (BTreeMap<String, Vec<u8>>, Vec<SeenEvent>) {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&storage, &log, FAN + 2);
    let all = read_all(&log);
    log.close();
    (storage.contents(), all)
}

#[test]
fn indexes_that_a_crash_left_beside_the_merged_one_are_removed() {
    let (mut files, all) = merged();
    let segments: Vec<String> = files.keys().filter(|n| n.ends_with(".seg")).cloned().collect();
    let merged = files[&segments[0].replace(".seg", ".idx")].clone();
    for segment in &segments[1..FAN] {
        let index = segment.replace(".seg", ".idx");
        assert!(!files.contains_key(&index), "it has one with the others");
        files.insert(index, merged.clone());
    }
    let storage = SimulatedStorage::with_contents(1, &files);
    let log = open(&storage, small_segments()).unwrap();
    assert_eq!(names(&storage, ".idx").len(), 2);
    check(&log, &all);
}

#[test]
fn a_damaged_merged_index_is_rebuilt() {
    let (files, all) = merged();
    let name = files.keys().find(|name| name.ends_with(".idx")).unwrap().clone();
    let len = files[&name].len();
    let query = Query::item(&["A"], &["t:3", "all"]);
    let read = |log: &Log| drain(log.snapshot().read(&query, ReadOptions::default()));
    let expected: Vec<SeenEvent> =
        Oracle { events: all.iter().map(|s| s.event.clone()).collect() }.matching(&query);
    for at in (0..len).step_by(len / 61 + 1) {
        let mut rotten = files.clone();
        rotten.get_mut(&name).unwrap()[at] ^= 0x10;
        let storage = SimulatedStorage::with_contents(1, &rotten);
        let log = open(&storage, small_segments()).unwrap();
        // A read that finds damage may have to be repeated; it is never wrong.
        let found = (0..3).find_map(|_| read(&log).ok());
        assert!(found.as_ref() == Some(&expected), "byte {at} flipped");
        log.close();
    }
}

#[test]
fn a_segment_of_a_merged_index_that_is_another_is_noticed() {
    let (files, all) = merged();
    let segments: Vec<&String> = files.keys().filter(|name| name.ends_with(".seg")).collect();
    // The same bytes under another salt in the header, while the batches still have the old one.
    let mut other = files.clone();
    let bytes = other.get_mut(segments[3]).unwrap();
    bytes[24] ^= 1;
    assert!(open(&SimulatedStorage::with_contents(1, &other), small_segments()).is_err());
    let mut missing = files.clone();
    missing.remove(segments[3]);
    assert!(open(&SimulatedStorage::with_contents(1, &missing), small_segments()).is_err());
    // Truncated: only reading it detects that.
    let mut short = files.clone();
    short.get_mut(segments[3]).unwrap().truncate(20_000);
    assert!(open(&SimulatedStorage::with_contents(1, &short), small_segments()).is_err());
    check(&open(&SimulatedStorage::with_contents(1, &files), small_segments()).unwrap(), &all);
}

#[test]
fn a_segment_that_lost_its_end_is_not_counted_short_when_the_merged_index_is_rebuilt() {
    let (mut files, all) = merged();
    let segments: Vec<String> = files.keys().filter(|n| n.ends_with(".seg")).cloned().collect();
    let segment = files.get_mut(&segments[1]).unwrap();
    let middle = segment.len() / 2;
    segment[middle..].fill(0);
    // All of the index except its header and its segments' identities: opening reads no more.
    let index = files.get_mut(&segments[0].replace(".seg", ".idx")).unwrap();
    let len = index.len();
    index[500..len - 200].fill(7);
    let log = open(&SimulatedStorage::with_contents(1, &files), small_segments()).unwrap();
    let snapshot = log.snapshot();
    assert_eq!(snapshot.head(), all.len() as u64);
    for query in [Query::item(&[], &["all"]), Query::item(&["A"], &[])] {
        assert!(drain(snapshot.read(&query, ReadOptions::default())).is_err(), "{query:?}");
        let mut count = snapshot.count(query.clone(), 0);
        assert!((0..100).any(|_| count.step(&mut Work::unbounded()).is_err()), "{query:?}");
    }
}

#[test]
fn a_full_disk_leaves_the_indexes_there_are_and_they_are_merged_later() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&storage, &log, FAN);
    // Descriptors for the next segment and its index, but none for a merged one.
    while log.segments() < FAN as u64 + 1 {
        log.append(append(&[event(log.head() as usize)])).unwrap();
        let faults = Faults { descriptors: Some(storage.open_files() + 2), ..Faults::default() };
        storage.set_faults(faults);
    }
    check(&log, &read_all(&log));
    storage.set_faults(Faults::default());
    fill(&storage, &log, FAN + 3);
    check(&log, &read_all(&log));
}

#[test]
fn power_lost_while_indexes_are_merged_loses_nothing() {
    for seed in 0..40 {
        let storage = SimulatedStorage::new(seed);
        let log = open(&storage, small_segments()).unwrap();
        while log.segments() < FAN as u64 + 1 + seed % 3 {
            log.append(append(&[event(log.head() as usize)])).unwrap();
        }
        std::thread::sleep(Duration::from_micros(500 * seed));
        let all = read_all(&log);
        let crashed = storage.crash();
        log.close();
        let log = open(&crashed, small_segments()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        check(&log, &all);
        fill(&crashed, &log, FAN + 4);
        check(&log, &read_all(&log));
    }
}

#[test]
fn a_panic_while_indexes_are_written_or_merged_does_not_stop_them_for_ever() {
    for (at, segments) in [(".merged.tmp", 8), (".idx.tmp", 7)] {
        let storage = GatedStorage::new(1);
        let log = Log::open_on(Arc::new(storage.clone()), small_segments()).unwrap();
        *storage.panic_at.lock().unwrap() = Some(at);
        while log.segments() < 6 {
            log.append(append(&[event(log.head() as usize)])).unwrap();
        }
        let mut patience = Patience::new();
        while log.background_panics() == 0 {
            patience.pause(format_args!("{at}: nothing panicked"));
        }
        assert!(log.stats().index_write_failures > 0, "it is counted as failed, too");
        fill(&storage.disk, &log, segments);
        let all = read_all(&log);
        check(&log, &all);
    }
}

#[test]
fn segments_that_are_gone_from_the_end_are_missed_if_an_index_knows_of_them() {
    let storage = SimulatedStorage::new(3);
    let log = open(&storage, small_segments()).unwrap();
    // One index of four segments, one of one, and the segment that is being written.
    fill(&storage, &log, FAN + 2);
    log.close();
    let whole = storage.contents();
    let segments = names(&storage, ".seg");
    for gone in 1..segments.len() {
        let first_gone = &segments[segments.len() - gone];
        let mut files = whole.clone();
        files.retain(|name, _| !name.ends_with(".seg") || name < first_gone);
        // The indexes of what is gone are gone, too.
        files.retain(|name, _| !name.ends_with(".idx") || name[..20] < first_gone[..20]);
        let storage = SimulatedStorage::with_contents(3, &files);
        let refused = match Log::open_on(Arc::new(storage.clone()), small_segments()) {
            Err(error) => error.to_string(),
            Ok(log) => panic!("{gone} are gone: it opens and ends at {}", log.head()),
        };
        assert!(refused.contains("the events after it are missing"), "{gone}: {refused}");
        let report = inspect::verify_on(&storage, &mut |_, _| {}).unwrap();
        let told: Vec<_> = report.lost_end.iter().map(ToString::to_string).collect();
        assert!(report.damage.is_empty(), "{gone}: {report:?}");
        assert_eq!(told.len(), 1, "{gone}: {told:?}");
        assert!(refused.contains(&told[0]), "{gone}: {refused}, {told:?}");
        assert!(storage.contents() == files, "nothing was changed");
    }
    let report = inspect::verify_on(&SimulatedStorage::with_contents(3, &whole), &mut |_, _| {});
    let report = report.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.head, log.head());
}
