//! Time and memory of opening a log. Measurements, not tests: `cargo test --release -p
//! wellspring-log --test log opening -- --ignored --nocapture`, with `OPENING_EVENTS` (10,000,000)
//! and `OPENING_DIR` (a temporary folder).

use std::path::Path;
use std::time::{Duration, Instant};
use wellspring_log::{Append, EncodedEvents, Log, Options, ReadOptions, Sync, Work};
use wellspring_types::{Event, Query, QueryItem};

const REQUEST_EVENTS: u64 = 1_000;

fn resident_mib() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * 4096.0 / f64::from(1 << 20)
}

fn options() -> Options {
    Options { sync: Sync::Interval(Duration::from_millis(100)), ..Options::default() }
}

fn fill(dir: &Path, events: u64) {
    let log = Log::open(dir, options()).unwrap();
    let begin = Instant::now();
    let mut most = 0f64;
    while log.head() < events {
        let first = log.head();
        let mut encoded = EncodedEvents::new();
        for i in first..first + REQUEST_EVENTS {
            let event = Event::json("OrderPlaced", &[&format!("order:{i}")], "{\"amount\":1}");
            encoded.push(&event.as_ref()).unwrap();
        }
        log.append(Append { events: encoded, ..Append::default() }).unwrap();
        most = most.max(resident_mib());
    }
    let stats = log.stats();
    println!(
        "filled {events} events in {:?}: {} segments, index memory {} MiB, resident {:.0} MiB, most {most:.0}",
        begin.elapsed(),
        stats.segments,
        stats.index_memory_bytes >> 20,
        resident_mib(),
    );
    // As after kill -9: nothing depends on a clean close.
    std::mem::forget(log);
}

#[test]
#[ignore = "a benchmark"]
fn of_a_log_of_unique_tags() {
    let events = std::env::var("OPENING_EVENTS").map_or(10_000_000, |n| n.parse().unwrap());
    let own = tempfile::tempdir().unwrap();
    let dir = std::env::var_os("OPENING_DIR").map_or(own.path().to_owned(), Into::into);
    if std::env::var_os("OPENING_CHILD").is_none() {
        if !dir.join("00000000000000000001.seg").exists() {
            // In a separate process, so that it ends without closing and frees its memory.
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["opening", "--ignored", "--nocapture"])
                .env("OPENING_CHILD", "1")
                .env("OPENING_DIR", &dir)
                .status();
            assert!(status.unwrap().success());
        }
    } else {
        return fill(&dir, events);
    }
    let before = resident_mib();
    for round in 0..3 {
        let begin = Instant::now();
        let log = Log::open(&dir, options()).unwrap();
        println!(
            "opened {} events in {:?}; resident {:.0} MiB more",
            log.head(),
            begin.elapsed(),
            resident_mib() - before,
        );
        if round == 2 {
            condition_everywhere(&log, before);
            counts(&log);
        }
        log.close();
    }
}

/// Counts, types and tags, without reading an event.
fn counts(log: &Log) {
    let snapshot = log.snapshot();
    let count = |query: Query| {
        let begin = Instant::now();
        let mut count = snapshot.count(query, 0);
        let mut work = wellspring_log::Work::unbounded();
        loop {
            if let wellspring_log::CountStep::Done(counted) = count.step(&mut work).unwrap() {
                println!("counted {counted} in {:?}", begin.elapsed());
                break;
            }
        }
    };
    count(Query::item(&["OrderPlaced"], &[]));
    count(Query::item(&[], &["order:77"]));
    count(Query {
        items: vec![
            QueryItem::new(&["OrderPlaced"], &["order:77"]),
            QueryItem::new(&["OrderPlaced"], &[]),
        ],
    });
    let begin = Instant::now();
    let types = snapshot.types_page(None, 100, &mut Work::unbounded()).unwrap().len();
    println!("{types} types in {:?}", begin.elapsed());
    for prefix in ["order:99999", "order:", "none:"] {
        let begin = Instant::now();
        let tags = snapshot.tags(prefix, None, 101, &mut Work::unbounded()).unwrap().len();
        println!("{tags} tags of {prefix} in {:?}", begin.elapsed());
    }
}

/// A query for an absent tag uses every segment.
fn condition_everywhere(log: &Log, before: f64) {
    for round in 0..3 {
        let begin = Instant::now();
        for i in 0..1_000 {
            let query = Query::item(&["OrderPlaced"], &[&format!("absent:{round}:{i}")]);
            let mut events = log.snapshot().read(&query, ReadOptions::default());
            assert!(events.next().expect("the log reads").is_none());
        }
        println!(
            "an absent tag: {:?} each; index memory {} KiB; resident {:.0} MiB more",
            begin.elapsed() / 1_000,
            log.stats().index_memory_bytes >> 10,
            resident_mib() - before,
        );
    }
}
