//! Each node has a copy, which equals the others, catches up after an absence, is repaired when
//! damaged, and is left alone if its history differs.

use crate::nodes::Deadline;
use crate::oracle::{append, drain, read_all, small_segments};
use crate::sent::{Outcome, SentAppend, check, numbered};
use crate::{JournalUnderTest, Nodes};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wellspring_format::batch::BATCH_HEADER_BYTES;
use wellspring_format::record::read_u32;
use wellspring_format::segment::{SEGMENT_HEADER_BYTES, parse_segment_name};
use wellspring_log::storage::{Storage, simulated::SimulatedStorage};
use wellspring_log::{AppendError, Log, NotConfirmed, Order, ReadOptions, Role};
use wellspring_patience::PATIENCE;
use wellspring_types::{Event, Query};

/// How long a reader waits for a change before it looks again.
const LOOK: Duration = Duration::from_millis(5);

fn large(number: u64) -> wellspring_log::Append {
    append(&[Event::json("Large", &["large"], &format!("\"{number} {}\"", "x".repeat(3000)))])
}

fn fill(nodes: &Nodes, numbers: std::ops::Range<u64>) {
    for number in numbers {
        nodes.append(large(number)).unwrap();
    }
}

fn disk(nodes: &Nodes, node: usize) -> SimulatedStorage {
    nodes.harness().disk(node).expect("nodes have simulated disks")
}

/// The batches of each segment by base, without local header fields (those that depend on a salt, a
/// chain or a barrier).
fn segments(disk: &SimulatedStorage) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let contents = disk.contents();
    let segments = contents.iter().filter_map(|(name, b)| Some((parse_segment_name(name)?, b)));
    segments.map(|(base, bytes)| (base, batches(&bytes[SEGMENT_HEADER_BYTES..]))).collect()
}

fn batches(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while bytes.len() >= BATCH_HEADER_BYTES && read_u32(bytes, 0) != 0 {
        let len = BATCH_HEADER_BYTES + read_u32(bytes, 20) as usize;
        let (batch, rest) = bytes.split_at(len);
        // First position, count, length, commit marker; epoch and time; the records.
        found.push([&batch[8..28], &batch[32..48], &batch[BATCH_HEADER_BYTES..]].concat());
        bytes = rest;
    }
    found
}

/// Every node writes the same batches into the same segments, whoever led.
pub fn all_copies_hold_the_same_bytes(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    for round in 0..4 {
        nodes.take_lead(round % nodes.count());
        fill(&nodes, round as u64 * 30..round as u64 * 30 + 30);
    }
    drop(nodes.readers());
    (0..nodes.count()).for_each(|node| nodes.close_node(node));
    let first = segments(&disk(&nodes, 0));
    assert!(first.len() > 3, "several segments: {:?}", first.keys());
    for node in 1..nodes.count() {
        let other = segments(&disk(&nodes, node));
        assert!(first.keys().eq(other.keys()), "{:?}, {:?}", first.keys(), other.keys());
        assert!(first == other, "node {node} holds other bytes than node 0");
    }
}

/// A node that was closed or lost power has what it missed soon after its restart.
pub fn who_was_away_catches_up(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let mut number = 0;
    for round in 0..6 {
        let away = round % nodes.count();
        match round % 2 {
            0 => nodes.close_node(away),
            _ => nodes.kill(away),
        }
        fill(&nodes, number..number + 40);
        number += 40;
        nodes.open_node(away);
        let log = nodes.caught_up(away);
        assert_eq!(log.head(), number);
        assert_eq!(read_all(&log), read_all(&nodes.caught_up(nodes.after(away))));
    }
}

/// Changes a byte in each segment of a closed copy in turn, in the middle and at the ends: the copy
/// is repaired from the shared log when it is opened or when a read finds the damage. Until then
/// reads fail; none shows anything other than what was appended.
pub fn a_damaged_copy_is_mended(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    fill(&nodes, 0..80);
    let expected = read_all(&nodes.caught_up(0));
    let away = nodes.after(nodes.leader().0);
    drop(nodes.caught_up(away));
    let names: Vec<String> = {
        let contents = disk(&nodes, away).contents();
        contents.into_keys().filter(|name| parse_segment_name(name).is_some()).collect()
    };
    assert!(names.len() > 2);
    for name in &names {
        for at in [3, 70, 150, 20_000] {
            drop(nodes.caught_up(away));
            nodes.close_node(away);
            let file = disk(&nodes, away).open(name).unwrap();
            let mut byte = [0];
            file.read_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
            drop(file);
            nodes.open_node(away);
            let log = nodes.caught_up(away);
            nodes.wait_until(&format!("{name}, damaged at byte {at}, is mended"), || {
                let read = drain(log.snapshot().read(&Query::all(), ReadOptions::default()));
                read.is_ok_and(|read| {
                    assert!(read == expected, "{name}, damaged at byte {at}, reads otherwise");
                    true
                })
            });
            assert!(!matches!(log.role(), Role::Detached { .. }), "{:?}", log.role());
        }
    }
}

/// Every reader, anywhere and at any time, sees only whole requests.
pub fn half_a_request_is_shown_nowhere(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for node in 0..nodes.count() {
            let (log, is_done) = (nodes.log(node).unwrap(), &is_done);
            scope.spawn(move || {
                let mut seen = 0;
                while !is_done.load(Ordering::SeqCst) {
                    // Each change is looked at when it comes, and the others have the processor.
                    seen = log.feed().wait_past(seen, LOOK);
                    let options = ReadOptions { limit: Some(1), ..newest_first() };
                    let newest = drain(log.snapshot().read(&Query::all(), options)).unwrap();
                    for seen in newest {
                        assert_eq!(seen.event.tags, ["last"], "{} at node {node}", seen.position);
                    }
                }
            });
        }
        let done = EndOfLooking(&is_done);
        for number in 0..300 {
            let mut events = vec![Event::json("Part", &["part"], "1"); number % 5];
            events.push(Event::json("Part", &["last"], "1"));
            nodes.append(append(&events)).unwrap();
        }
        drop(nodes.readers());
        drop(done);
    });
}

fn newest_first() -> ReadOptions {
    ReadOptions { order: Order::Descending, ..ReadOptions::default() }
}

/// Stops the readers, even if the test fails meanwhile.
struct EndOfLooking<'a>(&'a AtomicBool);

impl Drop for EndOfLooking<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Subscribers at every node see each event once and in order while the lead rotates.
pub fn subscribers_everywhere_go_on_while_the_lead_changes(journal: &dyn JournalUnderTest) {
    const EVENTS: u64 = 400;
    let nodes = Nodes::open(journal, 1, &small_segments());
    std::thread::scope(|scope| {
        for node in 0..nodes.count() {
            let mut subscription = nodes.log(node).unwrap().subscribe(Query::all(), 0);
            let nodes = &nodes;
            scope.spawn(move || {
                let what = format!("a subscriber at node {node} has all");
                let mut deadline = Deadline::new(nodes, what);
                let mut next = 1;
                while next <= EVENTS {
                    match subscription.next(Duration::from_millis(5)).unwrap() {
                        Some(record) => {
                            assert_eq!(record.position(), next, "at node {node}");
                            next += 1;
                            deadline.goes_on();
                        }
                        None => deadline.glance(),
                    }
                }
            });
        }
        for number in 0..EVENTS {
            if number % 25 == 0 {
                nodes.take_lead((number / 25) as usize % nodes.count());
            }
            nodes.append(numbered(number)).unwrap();
        }
    });
}

/// An engine acknowledges entries and loses them; the node that has them finds other entries at
/// their places, or none.
pub fn a_copy_with_another_past_is_detached_and_can_be_read(journal: &dyn JournalUnderTest) {
    for others in [0, 30] {
        let nodes = Nodes::open(journal, 1, &small_segments());
        let mut outcomes: Vec<Outcome> = (0..5).map(|number| outcome(&nodes, number)).collect();
        check(&nodes, &outcomes);
        let (old, log) = nodes.leader();
        nodes.link(old).give_own_past();
        for number in 100..110 {
            let told = SentAppend::to(&log, number).outcome();
            assert!(told.position.is_some(), "the engine said so");
        }
        drop(log);
        nodes.close_node(old);
        nodes.take_lead(nodes.after(old));
        outcomes.extend((200..200 + others).map(|number| outcome(&nodes, number)));
        nodes.open_node(old);
        let log = nodes.log(old).unwrap();
        nodes.wait_until("it finds that its past is another", || {
            matches!(log.role(), Role::Detached { .. })
        });
        still_reads_and_takes_nothing(&nodes, old, &log);
        // The others never receive them.
        outcomes.push(outcome(&nodes, 300));
        let (_, leader) = nodes.leader();
        assert_eq!(leader.head(), outcomes.len() as u64);
    }
}

fn outcome(nodes: &Nodes, number: u64) -> Outcome {
    let appended = nodes.append(numbered(number)).unwrap();
    Outcome { number, position: Some(appended.first) }
}

fn still_reads_and_takes_nothing(nodes: &Nodes, old: usize, log: &Log) {
    assert_eq!(read_all(log).len(), 15, "what is in the copy can be read");
    let refused = log.append(numbered(0));
    assert!(matches!(refused, Err(AppendError::NotLeading { .. })), "{refused:?}");
    let told = nodes.confirmed(old, PATIENCE);
    assert!(matches!(told, Some(Err(NotConfirmed::Detached { .. }))), "{told:?}");
}
