//! Reads by position, id, type and tag; figures about terms.

use crate::oracle::{append, drain, small_segments};
use crate::{JournalUnderTest, Nodes};
use wellspring_log::{Order, ReadOptions, Snapshot, TermCount, Work};
use wellspring_types::{Event, EventId, Query};

/// It shows what existed when it was taken.
pub fn a_snapshot_does_not_move(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    nodes.append(append(&[Event::json("A", &[], "1")])).unwrap();
    let snapshots: Vec<Snapshot> = nodes.readers().iter().map(|log| log.snapshot()).collect();
    nodes.append(append(&[Event::json("B", &[], "2")])).unwrap();
    assert!(nodes.readers().iter().all(|log| log.head() == 2));
    for snapshot in snapshots {
        assert_eq!(snapshot.head(), 1);
        assert_eq!(drain(snapshot.read(&Query::all(), ReadOptions::default())).unwrap().len(), 1);
        assert_eq!(snapshot.types().unwrap().len(), 1);
        assert_eq!(snapshot.at(2, |_| ()).unwrap(), None);
    }
}

/// At every node, in sealed segments and the active one.
pub fn every_event_is_found_by_position_and_id_in_every_segment(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let id = |i: u32| {
        let mut bytes = [7; 16];
        bytes[..4].copy_from_slice(&i.to_le_bytes());
        EventId(bytes)
    };
    for i in 0..150u32 {
        let data = format!("\"{}\"", "x".repeat(1500));
        let event = Event { id: Some(id(i)), ..Event::json("T", &[&format!("t:{i}")], &data) };
        nodes.append(append(&[event])).unwrap();
    }
    for log in nodes.readers() {
        assert!(log.stats().segments > 2);
        let snapshot = log.snapshot();
        for i in 0..150u32 {
            let position = u64::from(i) + 1;
            assert_eq!(snapshot.find_id(id(i)).unwrap(), Some(position));
            assert_eq!(snapshot.at(position, |r| r.id()).unwrap(), Some(Some(id(i))));
        }
        assert_eq!(snapshot.find_id(id(150)).unwrap(), None);
        assert_eq!(snapshot.at(0, |_| ()).unwrap(), None);
        assert_eq!(snapshot.at(151, |_| ()).unwrap(), None);
        let last = ReadOptions { order: Order::Descending, limit: Some(3), after: None };
        let positions: Vec<u64> =
            drain(snapshot.read(&Query::all(), last)).unwrap().iter().map(|s| s.position).collect();
        assert_eq!(positions, [150, 149, 148]);
    }
}

/// At every node, in sealed segments and the active one.
pub fn types_and_tags_are_counted_and_paged(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    for i in 0..300 {
        let data = format!("\"{}\"", "x".repeat(700));
        let event =
            Event::json(["A", "B", "C"][i % 3], &[&format!("n:{:02}", i % 20), "all"], &data);
        nodes.append(append(&[event])).unwrap();
    }
    for log in nodes.readers() {
        assert!(log.stats().segments > 2);
        let snapshot = log.snapshot();
        let pairs = |counts: Vec<TermCount>| -> Vec<(String, u64)> {
            counts.into_iter().map(|c| (c.term, c.count)).collect()
        };
        let text = |s: &str| s.to_owned();
        assert_eq!(
            pairs(snapshot.types().unwrap()),
            [(text("A"), 100), (text("B"), 100), (text("C"), 100)]
        );
        assert_eq!(
            pairs(snapshot.tags("n:", Some("n:03"), 2, &mut Work::unbounded()).unwrap()),
            [(text("n:04"), 15), (text("n:05"), 15)]
        );
        assert_eq!(
            pairs(snapshot.tags("", None, 1, &mut Work::unbounded()).unwrap()),
            [(text("all"), 300)]
        );
        assert!(snapshot.tags("zzz", None, 10, &mut Work::unbounded()).unwrap().is_empty());
    }
}
