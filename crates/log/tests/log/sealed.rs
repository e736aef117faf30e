//! Events with sealed parts in a log of files: their segments say that they have some, from the
//! first one on, whatever happens meanwhile. The log cannot tell ciphertext from other bytes.

use crate::oracle::{Oracle, append, drain, open, small_segments};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use wellspring_format::sealed_parts::{KeyId, PartKind, PartsWriter};
use wellspring_format::segment_copy::SegmentCopy;
use wellspring_format::segment_reader::SegmentReader;
use wellspring_log::batcher::EventTemplate;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Append, AppendError, EncodedEvents, HeadGate, Log, OpenError, Options};
use wellspring_log::{ScrubEnd, inspect};
use wellspring_types::{AppendCondition, DataKind, Event, EventId, Query, QueryItem};

fn parts(n: u64, kind: char, cipher: u8) -> PartsWriter {
    let mut parts = PartsWriter::default();
    let count = match kind {
        'S' => 2,
        's' => 1,
        _ => 0,
    };
    for tag in 0..count {
        let key = KeyId([n as u8; 32]);
        let seal = |nonce: &mut [u8; 12], _: &mut [u8], seal: &mut [u8; 16]| {
            (*nonce, *seal) = ([tag; 12], [cipher; 16]);
        };
        parts.push((tag, PartKind::Personal, &key), &[cipher ^ tag; 20], seal);
    }
    parts
}

/// One event with an id; `S` has sealed parts and a few bytes, `s` one part, `L` and `.` none; `L`
/// is large. Others differ in the ciphertext alone.
fn event(n: u64, kind: char, cipher: u8) -> EncodedEvents {
    let mut id = [9; 16];
    id[..8].copy_from_slice(&n.to_be_bytes());
    let data = format!("\"{}\"", "x".repeat(if kind == 'L' { 30_000 } else { n as usize % 40 }));
    let event = Event { id: Some(EventId(id)), ..Event::json("T", &["a:1", "b:2"], &data) };
    let mut encoded = EncodedEvents::new();
    encoded.push_sealed(&event.as_ref(), parts(n, kind, cipher).bytes(), 0).unwrap();
    encoded
}

fn put(log: &Log, n: u64, kind: char, cipher: u8) -> Result<u64, AppendError> {
    let request = Append { events: event(n, kind, cipher), ..Append::default() };
    log.append(request).map(|done| if done.replayed { 0 } else { done.first })
}

/// The log holds these events, or a beginning of them with at least `least`. Segments with sealed
/// parts have version 3, and no others, except one in whose first sealed event the power went.
fn check(log: &Log, files: &BTreeMap<String, Vec<u8>>, history: &str, least: usize) {
    let mut events = log.snapshot().read(&Query::all(), Default::default());
    let mut bases = BTreeMap::new();
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".seg")) {
        bases.insert(name[..20].parse::<u64>().unwrap(), (bytes[8], false));
    }
    let mut head = 0;
    for (n, kind) in (1..).zip(history.chars()) {
        let Some(stored) = events.next().unwrap() else { break };
        let given = event(n, kind, 5);
        assert!(stored.says_the_same(&given.iter().next().unwrap()), "event {n} of {history}");
        assert_eq!(stored.id(), given.iter().next().unwrap().id());
        let segment = bases.range_mut(..=n).next_back().unwrap().1;
        segment.1 |= !stored.sealed_parts().is_empty();
        head = n;
    }
    assert!(events.next().unwrap().is_none() && head as usize >= least, "{head} of {history}");
    let is_whole = head as usize == history.len();
    for (base, (version, is_sealed)) in bases {
        let fits = version == 1 + 2 * u8::from(is_sealed) || (!is_whole && version == 3);
        assert!(fits, "segment {base} of {history} has version {version}");
    }
}

fn verify(storage: &SimulatedStorage) {
    let report = inspect::verify_on(storage, &mut |_, _| ()).unwrap();
    assert!(report.is_sound() && report.stale_indexes.is_empty(), "{report:?}");
}

#[test]
fn a_segment_has_version_3_from_its_first_sealed_event_on() {
    // `|`: the log is opened again.
    for history in ["S", "s.S", "..s.", "..|.s|.", "LLLs.L", "sLL.L.", "S|LLLSL|L|LL|s"] {
        let storage = SimulatedStorage::new(3);
        let gate = HeadGate::default();
        let options = || Options { head_gate: gate.clone(), ..small_segments() };
        let mut log = open(&storage, options()).unwrap();
        let mut so_far = String::new();
        for step in history.chars() {
            if step == '|' {
                log.close();
                verify(&storage);
                log = open(&storage, options()).unwrap();
            } else {
                so_far.push(step);
                let n = so_far.len() as u64;
                assert_eq!(put(&log, n, step, 5), Ok(n));
            }
            check(&log, &storage.contents(), &so_far, so_far.len());
        }
        for (n, kind) in (1..).zip(so_far.chars()) {
            assert_eq!(put(&log, n, kind, 5), Ok(0), "a retry");
            if kind.is_ascii_alphabetic() && kind != 'L' {
                let other = put(&log, n, kind, 6);
                assert!(
                    matches!(other, Err(AppendError::IdReused { event: 0, position }) if position == n)
                );
                assert!(matches!(put(&log, n, '.', 5), Err(AppendError::IdReused { .. })));
            }
        }
        let ScrubEnd::Complete(report) = log.scrub(&mut |_| ControlFlow::Continue(())) else {
            panic!("nothing stopped it")
        };
        assert!(report.damage.is_empty() && report.unread.is_empty(), "{report:?}");
        for segment in log.mark_extent(&gate.hold()).resolve().segments {
            let mut bytes = Vec::new();
            segment.read_from(0).unwrap().read_to_end(&mut bytes).unwrap();
            let mut read =
                SegmentReader::begin(&*bytes, "s", segment.base(), bytes.len() as u64).unwrap();
            let mut copy = SegmentCopy::begin(Vec::new(), read.header(), None).unwrap();
            while let Some(batch) = read.next_batch().unwrap() {
                copy.add(&batch).unwrap();
            }
            assert_eq!(copy.finish().0, bytes);
        }
        log.close();
        verify(&storage);
    }
}

/// A number below `n`, drawn from the state.
fn below(state: &mut u64, n: u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) % n
}

#[test]
fn conditions_and_reads_pay_no_heed_to_sealed_parts() {
    for seed in 0..40 {
        let mut coins = seed;
        let storage = SimulatedStorage::new(seed);
        let mut log = open(&storage, small_segments()).unwrap();
        let mut oracle = Oracle::default();
        let mut conflicts = 0;
        for _ in 0..80 {
            let term = |coins: &mut u64, prefix: char| format!("{prefix}:{}", below(coins, 6));
            let item = QueryItem {
                types: (0..below(&mut coins, 2)).map(|_| term(&mut coins, 'T')).collect(),
                tags: BTreeSet::from_iter((0..below(&mut coins, 3)).map(|_| term(&mut coins, 't')))
                    .into_iter()
                    .collect(),
            };
            let query = Query { items: vec![item] };
            let tags = [term(&mut coins, 't'), term(&mut coins, 's')];
            let tags = [tags[0].as_str(), tags[1].as_str()];
            let padding = "x".repeat(below(&mut coins, 1_500) as usize);
            let event = Event::json(&term(&mut coins, 'T'), &tags, &format!("\"{padding}\""));
            let kind = ['.', 's', 'S'][below(&mut coins, 3) as usize];
            let mut events = EncodedEvents::new();
            let n = oracle.events.len() as u64;
            events.push_sealed(&event.as_ref(), parts(n, kind, 5).bytes(), 0).unwrap();
            let condition = AppendCondition {
                fail_if_events_match: Some(query.clone()),
                after: (below(&mut coins, 2) == 0).then(|| n.saturating_sub(below(&mut coins, 8))),
                fail_if_exists: None,
            };
            let expected = oracle.judge(&condition);
            let condition = Some(condition);
            match log.append(Append { events, condition, ..Append::default() }) {
                Ok(done) => {
                    assert_eq!((expected, done.first), (None, n + 1), "seed {seed}");
                    oracle.events.push(event);
                }
                Err(AppendError::Conflict(conflict)) => {
                    assert_eq!(expected, Some(conflict), "seed {seed}");
                    conflicts += 1;
                }
                Err(other) => panic!("{other}"),
            }
            if below(&mut coins, 12) == 0 {
                log.close();
                log = open(&storage, small_segments()).unwrap();
            }
            let found = drain(log.snapshot().read(&query, Default::default())).unwrap();
            assert_eq!(found, oracle.matching(&query), "seed {seed}");
        }
        assert!(conflicts > 5 && oracle.events.len() > 20, "seed {seed}: {conflicts}");
    }
}

#[test]
fn a_power_loss_around_the_first_sealed_event_loses_nothing_acknowledged() {
    // The last events come while the power goes: in a log's first segment, in the middle of one,
    // and into the next one.
    for (before, after) in [("", "S.s"), ("..", "sS."), ("s", "s."), ("LL", "S.s"), ("LLs", "SLs")]
    {
        let history = [before, after].concat();
        for power in 0.. {
            let storage = SimulatedStorage::new(power + 1);
            let log = open(&storage, small_segments()).unwrap();
            let mut acknowledged = 0;
            for kind in history.chars() {
                if acknowledged == before.len() {
                    let power_fails_after = Some(power);
                    storage.set_faults(Faults { power_fails_after, ..Faults::default() });
                }
                if put(&log, acknowledged as u64 + 1, kind, 5).is_err() {
                    break;
                }
                acknowledged += 1;
            }
            for _ in 0..10 {
                let found = storage.crash();
                let log = open(&found, small_segments()).unwrap();
                check(&log, &found.contents(), &history, acknowledged);
                log.close();
                verify(&found);
            }
            if acknowledged == history.len() {
                // A write and a barrier for each event, and for the header of the first sealed one.
                let headers = usize::from(!before.contains('s'));
                assert!(power as usize >= 2 * (after.len() + headers), "{history}: {power}");
                break;
            }
        }
    }
}

#[test]
fn a_sealed_event_that_was_ingested_counts_as_any_other() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    let batcher = log.batcher(wellspring_log::batcher::Options::default()).unwrap();
    let template = EventTemplate::new("T", &["a:1"]).unwrap().sealed();
    let data = [parts(1, 's', 5).bytes(), b"null"].concat();
    batcher.producer(0, None).push_event(&template, DataKind::Json, &data).unwrap();
    batcher.close();
    assert_eq!(storage.contents()["00000000000000000001.seg"][8], 3);
    let mut events = log.snapshot().read(&Query::all(), Default::default());
    let event = events.next().unwrap().unwrap();
    assert_eq!((event.sealed_parts().count(), event.data()), (1, &b"null"[..]));
}

fn fixture() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v3")
}

const FIXTURE: &str = "..s.SS..sS";

fn fixture_files() -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(fixture()).expect("the fixture").map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
    });
    files.collect()
}

/// If this fails, the format has changed: give it a new version and keep this folder.
#[test]
fn version_3_is_read_and_features_from_the_future_are_refused_by_name() {
    let files = fixture_files();
    let storage = SimulatedStorage::with_contents(1, &files);
    verify(&storage);
    let log = open(&storage, Options::default()).unwrap();
    check(&log, &files, FIXTURE, FIXTURE.len());
    log.append(append(&[Event::json("New", &[], "1")])).unwrap();
    log.close();
    verify(&storage);
    for features in [0, 2, 3, 1 << 31] {
        let mut files = files.clone();
        let bytes = files.get_mut("00000000000000000001.seg").unwrap();
        bytes[44..48].copy_from_slice(&u32::to_le_bytes(features));
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..64]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        let refused = open(&SimulatedStorage::with_contents(1, &files), Options::default());
        assert!(matches!(refused, Err(OpenError::UnknownVersion { version: 3, .. })), "{features}");
    }
}

/// How the fixture was made. Refuses to modify an existing one.
#[test]
#[ignore = "writes the fixture of a new format version"]
fn make_the_fixture() {
    assert!(!fixture().exists(), "golden bytes are never regenerated");
    let log = Log::open(&fixture(), Options::default()).unwrap();
    for (n, kind) in (1..).zip(FIXTURE.chars()) {
        put(&log, n, kind, 5).unwrap();
    }
    log.close();
    std::fs::remove_file(fixture().join("LOCK")).unwrap();
}
