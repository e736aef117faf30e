//! Concurrent conditional appends: exactly one of those that exclude each other wins.

use crate::oracle::{append, append_if, largest_query, small_segments};
use crate::{JournalUnderTest, Nodes};
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellspring_log::{AppendError, Options};
use wellspring_types::{AppendCondition, Event, Query, QueryItem};

const CONTENDERS: usize = 8;
const KEYS: usize = 200;

/// Eight clients, spread over the nodes, append for each key on the condition that no other has.
/// Each key has one winner, and the other clients are told so.
pub(super) fn race(
    nodes: &Nodes,
    keys: Range<usize>,
    condition: impl Fn(usize) -> (Event, AppendCondition) + Sync,
) {
    let start = Barrier::new(CONTENDERS);
    for key in keys {
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let contender = |n: usize| {
                let (start, condition) = (&start, &condition);
                move || {
                    start.wait();
                    let (event, condition) = condition(key);
                    nodes.client(n % nodes.count()).append(append_if(&[event], condition))
                }
            };
            let threads: Vec<_> = (0..CONTENDERS).map(|n| scope.spawn(contender(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winners: Vec<_> = outcomes.iter().filter_map(|o| o.as_ref().ok()).collect();
        assert_eq!(winners.len(), 1, "key {key}: {outcomes:?}");
        for loser in outcomes.iter().filter_map(|o| o.as_ref().err()) {
            match loser {
                AppendError::Conflict(conflict) => assert_eq!(conflict.position, winners[0].first),
                other => panic!("{other}"),
            }
        }
    }
}

/// 200 keys, 8 contenders, three shapes of condition.
pub fn eight_contenders_for_two_hundred_keys_have_one_winner_each(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &Options::default());
    let tag = |key: usize| format!("key:{key}");
    race(&nodes, 0..KEYS, |key| {
        let condition = AppendCondition::not_exists(Query::item(&[], &[&tag(key)]));
        (Event::json("TagOnly", &[&tag(key)], "1"), condition)
    });
    race(&nodes, 0..KEYS, |key| {
        let name = format!("Type{key}");
        (Event::json(&name, &[], "1"), AppendCondition::not_exists(Query::item(&[&name], &[])))
    });
    let filler: Vec<Event> = (0..1000)
        .map(|i| Event::json("Filler", &[&format!("filler:{i}"), "common"], "0"))
        .collect();
    for _ in 0..100 {
        nodes.append(append(&filler)).unwrap();
    }
    race(&nodes, 0..KEYS, |key| {
        let mixed = Query {
            items: vec![
                QueryItem::new(&["Mixed"], &["common", &tag(key)]),
                QueryItem::new(&["Absent"], &["common"]),
            ],
        };
        let condition = AppendCondition::no_match_after(mixed, 0);
        (Event::json("Mixed", &["common", &tag(key)], "1"), condition)
    });
}

/// Whatever a condition costs to judge, the order decides.
pub fn one_wins_where_the_largest_legal_conditions_contend_with_ordinary_ones(
    journal: &dyn JournalUnderTest,
) {
    // Small segments, so some conditions are judged over sealed ones.
    let nodes = Nodes::open(journal, 1, &small_segments());
    let contenders = AtomicUsize::new(0);
    race(&nodes, 0..60, |key| {
        let tag = format!("key:{key}");
        let item = QueryItem::new(&[], &[&tag]);
        let query = match contenders.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => largest_query(item, |n| format!("key:{n}")),
            _ => Query { items: vec![item] },
        };
        let data = format!("\"{}\"", "x".repeat(2_000));
        (Event::json("Numbered", &[&tag], &data), AppendCondition::not_exists(query))
    });
    for log in nodes.readers() {
        assert_eq!(log.head(), 60);
        assert!(log.segments() > 1);
    }
}

/// The positions reported to clients are exactly those in the log.
pub fn answers_of_concurrent_plain_appends_cover_the_log_without_gap_or_overlap(
    journal: &dyn JournalUnderTest,
) {
    let nodes = Nodes::open(journal, 1, &Options::default());
    let mut spans: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let writer = |n: usize| {
            let mut client = nodes.client(n % nodes.count());
            move || {
                let write = |i: usize| {
                    let event = Event::json("T", &[&format!("w:{n}")], "1");
                    let answer = client.append(append(&vec![event; i % 4 + 1])).unwrap();
                    (answer.first, answer.last)
                };
                (0..200).map(write).collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(writer(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    spans.sort_unstable();
    let mut next = 1;
    for (first, last) in spans {
        assert_eq!(first, next);
        next = last + 1;
    }
    for log in nodes.readers() {
        assert_eq!(next, log.head() + 1);
    }
}
