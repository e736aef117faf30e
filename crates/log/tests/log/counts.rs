//! Counts from the indexes compared with reading and counting.

use crate::oracle::{append, open, small_segments};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{CountStep, GroupCountStep, ReadOptions, Snapshot, Work};
use wellspring_types::{Event, Query, QueryItem};

fn count(snapshot: &Snapshot, query: &Query, after: u64) -> u64 {
    let mut count = snapshot.count(query.clone(), after);
    loop {
        if let CountStep::Done(counted) = count.step(&mut Work::unbounded()).unwrap() {
            return counted;
        }
    }
}

fn groups(
    snapshot: &Snapshot,
    query: &Query,
    prefix: &str,
    after: u64,
    most: usize,
) -> Option<BTreeMap<String, u64>> {
    let mut count = snapshot.count_by_tag(query.clone(), prefix, after, most);
    loop {
        match count.step(&mut Work::unbounded()).unwrap() {
            GroupCountStep::More => {}
            GroupCountStep::Done(groups) => return Some(groups),
            GroupCountStep::TooMany => return None,
        }
    }
}

fn naive(
    snapshot: &Snapshot,
    query: &Query,
    prefix: &str,
    after: u64,
) -> (u64, BTreeMap<String, u64>) {
    let options = ReadOptions { after: Some(after), ..ReadOptions::default() };
    let mut events = snapshot.read(query, options);
    let (mut counted, mut groups) = (0, BTreeMap::new());
    while let Some(event) = events.next().unwrap() {
        counted += 1;
        for tag in event.tags().filter(|tag| tag.starts_with(prefix)) {
            *groups.entry(tag.to_owned()).or_insert(0) += 1;
        }
    }
    (counted, groups)
}

fn item() -> impl Strategy<Value = QueryItem> {
    let types = prop::collection::vec(0u8..4, 0..3);
    let tags = prop::collection::btree_set((0u8..2, 0u8..9), 0..3);
    (types, tags).prop_map(|(types, tags)| QueryItem {
        types: types.iter().map(|n| format!("T{n}")).collect(),
        tags: tags.iter().map(|(kind, n)| format!("k{kind}:{n}")).collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Several segments, sealed and active; queries of all shapes; a snapshot that later events do
    /// not change.
    #[test]
    fn counts_are_those_of_a_read(
        events in prop::collection::vec((0u8..3, prop::collection::btree_set((0u8..2, 0u8..8), 0..4)), 1..400),
        queries in prop::collection::vec(prop::collection::vec(item(), 0..4), 1..12),
        after in 0u64..450,
        later in 0usize..40,
    ) {
        let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
        let data = format!("\"{}\"", "x".repeat(600));
        let event = |(event_type, tags): &(u8, std::collections::BTreeSet<(u8, u8)>)| {
            let tags: Vec<String> = tags.iter().map(|(kind, n)| format!("k{kind}:{n}")).collect();
            let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
            Event::json(&format!("T{event_type}"), &tags, &data)
        };
        for chunk in events.chunks(20) {
            log.append(append(&chunk.iter().map(event).collect::<Vec<_>>())).unwrap();
        }
        let snapshot = log.snapshot();
        for chunk in events[..later.min(events.len())].chunks(20) {
            log.append(append(&chunk.iter().map(event).collect::<Vec<_>>())).unwrap();
        }
        for items in queries {
            let query = Query { items };
            for after in [0, after, u64::MAX] {
                let (counted, grouped) = naive(&snapshot, &query, "k1:", after);
                prop_assert_eq!(count(&snapshot, &query, after), counted, "{:?}", &query);
                prop_assert_eq!(groups(&snapshot, &query, "k1:", after, 100), Some(grouped));
            }
        }
    }
}

#[test]
fn too_many_groups_are_not_counted() {
    let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
    for i in 0..20 {
        log.append(append(&[Event::json("T", &[&format!("k:{i}"), "other"], "1")])).unwrap();
    }
    let snapshot = log.snapshot();
    assert_eq!(groups(&snapshot, &Query::all(), "k:", 0, 19), None);
    assert_eq!(groups(&snapshot, &Query::all(), "k:", 0, 20).unwrap().len(), 20);
    let typed = Query::item(&["T"], &[]);
    assert_eq!(groups(&snapshot, &typed, "k:", 0, 19), None);
    assert_eq!(groups(&snapshot, &typed, "k:", 5, 20).unwrap().len(), 15);
}

#[test]
fn types_are_paged() {
    let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
    let data = format!("\"{}\"", "x".repeat(1500));
    for i in 0..200 {
        log.append(append(&[Event::json(&format!("Type{:02}", i % 30), &[], &data)])).unwrap();
    }
    assert!(log.stats().segments > 2);
    let snapshot = log.snapshot();
    let all = snapshot.types().unwrap();
    assert_eq!(all.len(), 30);
    let mut paged = Vec::new();
    loop {
        let after = paged.last().map(|last: &wellspring_log::TermCount| last.term.clone());
        let page = snapshot.types_page(after.as_deref(), 7, &mut Work::unbounded()).unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 7);
        paged.extend(page);
    }
    assert_eq!(paged, all);
    assert!(snapshot.types_page(None, 0, &mut Work::unbounded()).unwrap().is_empty());
}
