//! Torn writes and bit rot: a small log truncated at every byte and with every bit flipped is
//! recovered, or refused with file and offset; its answers are never wrong and, if bytes only
//! rotted, never incomplete.

use crate::oracle::{SeenEvent, append, drain, open, read_all, small_segments};
use std::collections::BTreeMap;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{OpenError, Options, ReadError, Stopped, Work};
use wellspring_types::{Event, Query};

fn small_log() -> (BTreeMap<String, Vec<u8>>, Vec<SeenEvent>) {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    for i in 0..6 {
        let events: Vec<Event> = (0..i % 3 + 1)
            .map(|j| Event::json("T", &[&format!("t:{i}")], &format!("[{i},{j}]")))
            .collect();
        log.append(append(&events)).unwrap();
    }
    let seen = read_all(&log);
    log.close();
    (storage.contents(), seen)
}

fn segment_of(files: &BTreeMap<String, Vec<u8>>) -> String {
    files.keys().find(|name| name.ends_with(".seg")).unwrap().clone()
}

/// The events of the log in these files, or `None` if it is refused with file and offset.
fn recover(files: &BTreeMap<String, Vec<u8>>) -> Option<Vec<SeenEvent>> {
    let storage = SimulatedStorage::with_contents(1, files);
    let log = match open(&storage, Options::default()) {
        Ok(log) => log,
        Err(OpenError::Corrupt(corruption)) => {
            assert!(corruption.file.ends_with(".seg"), "{corruption}");
            return None;
        }
        Err(OpenError::UnknownVersion { .. }) => return None,
        Err(other) => panic!("{other}"),
    };
    let all = read_all(&log);
    assert_eq!(log.head(), all.len() as u64);
    // A recovered log can be appended to, and its content survives again.
    log.append(append(&[Event::json("After", &[], "1")])).unwrap();
    log.close();
    let log = open(&storage, Options::default()).unwrap();
    assert_eq!(log.head(), all.len() as u64 + 1);
    Some(all)
}

#[test]
fn cut_at_every_byte_a_prefix_is_recovered() {
    let (files, seen) = small_log();
    let segment = segment_of(&files);
    let used = files[&segment].iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let mut longest = 0;
    for len in 0..=used {
        let mut cut = files.clone();
        cut.get_mut(&segment).unwrap().truncate(len);
        if let Some(events) = recover(&cut) {
            assert_eq!(events, seen[..events.len()], "cut to {len}");
            assert!(events.len() >= longest, "cut to {len}");
            longest = events.len();
        }
    }
    assert_eq!(longest, seen.len());
}

#[test]
fn no_flipped_bit_gives_a_wrong_or_a_short_answer() {
    let (files, seen) = small_log();
    let segment = segment_of(&files);
    let used = files[&segment].iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let mut refused = 0;
    for bit in 0..(used + 100) * 8 {
        let mut rotten = files.clone();
        rotten.get_mut(&segment).unwrap()[bit / 8] ^= 1 << (bit % 8);
        match recover(&rotten) {
            Some(events) => assert_eq!(events, seen, "bit {bit} of byte {}", bit / 8),
            None => refused += 1,
        }
    }
    // Except in reserved bytes, every flipped bit is detected.
    assert!(refused >= used * 8, "only {refused} of {} flips were refused", used * 8);
}

#[test]
fn rot_in_a_sealed_segment_is_an_error_of_the_read_that_meets_it() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    for i in 0..40 {
        let data = format!("\"{}\"", "x".repeat(5000));
        log.append(append(&[Event::json("T", &[&format!("t:{i}")], &data)])).unwrap();
    }
    let seen = read_all(&log);
    log.close();
    let mut files = storage.contents();
    let segment = segment_of(&files);
    let bytes = files.get_mut(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let storage = SimulatedStorage::with_contents(1, &files);
    let log = open(&storage, small_segments()).unwrap();
    let mut events = log.snapshot().read(&Query::all(), Default::default());
    let mut good = 0;
    let error = loop {
        match events.next() {
            Ok(Some(record)) => assert_eq!(crate::oracle::seen(&record), seen[good]),
            Ok(None) => panic!("a short answer"),
            Err(error) => break error,
        }
        good += 1;
    };
    assert!(error.to_string().contains(&segment), "{error}");
    assert!(drain(events).is_err(), "asking again does not skip the damage");
    let damage = log.damage();
    assert_eq!(damage.len(), 1, "one segment has some: {damage:?}");
    assert_eq!(ReadError::Corrupt(damage[0].clone()), error);
    assert_eq!(log.stats().damaged_segments, 1);
    assert_eq!(log.damage(), damage, "it stays");
    log.close();
    drop(log);
    let log = open(&storage, small_segments()).unwrap();
    assert_eq!(log.damage(), [], "an opening does not read what has an index");
}

#[test]
fn a_rebuilt_index_is_counted() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    for _ in 0..40 {
        let data = format!("\"{}\"", "x".repeat(5000));
        log.append(append(&[Event::json("T", &["t"], &data)])).unwrap();
    }
    log.close();
    let mut files = storage.contents();
    let index = files.keys().find(|name| name.ends_with(".idx")).unwrap().clone();
    // Its last section, which opening does not read, and then its header, which it does.
    for (at, at_opening) in [(files[&index].len() - 1, 0), (4, 1)] {
        let was = files[&index][at];
        files.get_mut(&index).unwrap()[at] ^= 1;
        let log = open(&SimulatedStorage::with_contents(1, &files), small_segments()).unwrap();
        assert_eq!(log.indexes_mended(), at_opening, "byte {at}");
        for query in [Query::item(&["T"], &["t"]), Query::item(&["T"], &[])] {
            assert_eq!(drain(log.snapshot().read(&query, Default::default())).unwrap().len(), 40);
        }
        assert_eq!((log.indexes_mended(), log.damage()), (1, vec![]), "byte {at}");
        files.get_mut(&index).unwrap()[at] = was;
    }
}

#[test]
fn a_damaged_or_missing_index_is_rebuilt() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    for i in 0..200 {
        let data = format!("\"{}\"", "x".repeat(1000));
        let tag = format!("t:{}", i % 7);
        log.append(append(&[Event::json("T", &[&tag, "all"], &data)])).unwrap();
    }
    let query = Query::item(&["T"], &["t:3", "all"]);
    let expected = drain(log.snapshot().read(&query, Default::default())).unwrap();
    let all: Vec<u64> = expected.iter().map(|event| event.position).collect();
    log.close();
    let files = storage.contents();
    let indexes: Vec<&String> = files.keys().filter(|name| name.ends_with(".idx")).collect();
    assert!(indexes.len() >= 2, "segments were sealed");
    let check = |files: &BTreeMap<String, Vec<u8>>, what: &str| {
        let storage = SimulatedStorage::with_contents(1, files);
        let log = open(&storage, small_segments()).unwrap();
        // First on a serving thread, which leaves repairs to others, then where they are made:
        // damage found during a read causes no error.
        let mut events = log.snapshot().read(&query, Default::default());
        events.bound(Work::unbounded().leaving_repairs());
        let mut positions = Vec::new();
        let read = loop {
            match events.next() {
                Ok(Some(event)) => positions.push(event.position()),
                Ok(None) => break Ok(()),
                Err(ReadError::Stopped(Stopped::Repair)) => events.bound(Work::unbounded()),
                Err(error) => break Err(error.to_string()),
            }
        };
        assert_eq!((read, &positions), (Ok(()), &all), "{what}");
        let read = drain(log.snapshot().read(&query, Default::default()));
        assert_eq!(read.as_ref(), Ok(&expected), "{what}");
        assert_eq!(log.damage(), [], "an index is no loss: {what}");
    };
    for name in &indexes {
        let mut without = files.clone();
        without.remove(*name);
        check(&without, "missing");
        let len = files[*name].len();
        for at in (0..len).step_by(len / 97 + 1) {
            let mut rotten = files.clone();
            rotten.get_mut(*name).unwrap()[at] ^= 0x10;
            check(&rotten, &format!("byte {at} of {name} flipped"));
            let mut cut = files.clone();
            cut.get_mut(*name).unwrap().truncate(at);
            check(&cut, &format!("{name} cut to {at}"));
        }
    }
}

#[test]
fn a_missing_segment_is_refused() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    for _ in 0..30 {
        let data = format!("\"{}\"", "x".repeat(9000));
        log.append(append(&[Event::json("T", &[], &data)])).unwrap();
    }
    log.close();
    let files = storage.contents();
    let names: Vec<String> = files.keys().filter(|name| name.ends_with(".seg")).cloned().collect();
    assert!(names.len() >= 3);
    for name in &names[..names.len() - 1] {
        let mut without = files.clone();
        without.remove(name);
        let refused = open(&SimulatedStorage::with_contents(1, &without), small_segments());
        assert!(matches!(refused, Err(OpenError::Corrupt(_))), "{name}");
    }
}
