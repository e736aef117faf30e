//! Every verdict equals the oracle's, over random histories with skewed types and tags, in sealed
//! and active segments, across restarts.

use crate::harness::histories;
use crate::oracle::{Oracle, append, append_if, drain, small_segments};
use crate::{JournalUnderTest, Nodes};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use wellspring_log::{AppendError, Log, Order, ReadOptions};
use wellspring_types::{AppendCondition, Event, Query, QueryItem};

/// Skewed: low numbers are common.
fn skewed(prefix: &'static str, most: u32) -> impl Strategy<Value = String> {
    (0..most, 0..most).prop_map(move |(a, b)| format!("{prefix}{}", a.min(b).min(most / 2)))
}

fn any_event() -> impl Strategy<Value = Event> {
    let padding = prop_oneof![4 => Just(0usize), 1 => 0usize..3000];
    (skewed("T", 8), prop::collection::btree_set(skewed("t", 16), 0..4), padding).prop_map(
        |(event_type, tags, padding)| {
            let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
            Event::json(&event_type, &tags, &format!("\"{}\"", "x".repeat(padding)))
        },
    )
}

fn any_item() -> impl Strategy<Value = QueryItem> {
    (
        prop::collection::vec(skewed("T", 10), 0..3),
        prop::collection::btree_set(skewed("t", 20), 0..3),
    )
        .prop_map(|(types, tags)| QueryItem { types, tags: tags.into_iter().collect() })
}

fn any_query() -> impl Strategy<Value = Query> {
    prop::collection::vec(any_item(), 0..4).prop_map(|items| Query { items })
}

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Event>),
    Conditional(Vec<Event>, Option<Query>, Option<u64>, Option<Query>),
    Reopen,
}

fn any_step() -> impl Strategy<Value = Step> {
    let events = || prop::collection::vec(any_event(), 1..12);
    prop_oneof![
        6 => events().prop_map(Step::Append),
        6 => (
            events(),
            proptest::option::of(any_query()),
            proptest::option::of(0u64..80),
            proptest::option::weighted(0.3, any_query())
        )
            .prop_map(|(e, q, back, x)| Step::Conditional(e, q, back, x)),
        1 => Just(Step::Reopen),
    ]
}

fn check_step(nodes: &Nodes, oracle: &mut Oracle, step: &Step) {
    let head = oracle.events.len() as u64;
    match step {
        Step::Append(events) => {
            let appended = nodes.append(append(events)).unwrap();
            assert_eq!((appended.first, appended.replayed), (head + 1, false));
            oracle.events.extend_from_slice(events);
        }
        Step::Conditional(events, query, back, exists) => {
            let condition = AppendCondition {
                fail_if_events_match: query.clone(),
                // Half of the bounds are at or above the head.
                after: back.map(|back| (head + 20).saturating_sub(back)),
                fail_if_exists: exists.clone(),
            };
            let expected = oracle.judge(&condition);
            match nodes.append(append_if(events, condition)) {
                Ok(appended) => {
                    assert_eq!(expected, None);
                    assert_eq!(appended.last, head + events.len() as u64);
                    oracle.events.extend_from_slice(events);
                }
                Err(AppendError::Conflict(conflict)) => assert_eq!(expected, Some(conflict)),
                Err(other) => panic!("{other}"),
            }
        }
        Step::Reopen => nodes.restart_node(nodes.next_node()),
    }
}

fn check_read(log: &Log, oracle: &Oracle, query: &Query, after: u64, limit: usize) {
    let mut expected = oracle.matching(query);
    let options = |order, after| ReadOptions { after, order, limit: Some(limit as u64) };
    let mut backward: Vec<_> = expected.clone();
    backward.reverse();
    backward.retain(|seen| seen.position < after);
    backward.truncate(limit);
    expected.retain(|seen| seen.position > after);
    expected.truncate(limit);
    let snapshot = log.snapshot();
    let read = |order| drain(snapshot.read(query, options(order, Some(after)))).unwrap();
    assert_eq!(read(Order::Ascending), expected);
    assert_eq!(read(Order::Descending), backward);
}

/// Compares random histories with restarts with the oracle: each verdict, then reads at every node.
pub fn every_verdict_and_read_equals_the_oracles(journal: &dyn JournalUnderTest) {
    // The number set by `PROPTEST_CASES`, or as many as do not take long.
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let usual = histories(journal, 200) as u32;
    let cases = if asked { ProptestConfig::default().cases } else { usual };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let histories = (
        prop::collection::vec(any_step(), 1..60),
        prop::collection::vec((any_query(), 0u64..300, 0usize..50), 12),
    );
    let outcome = TestRunner::new(config).run(&histories, |(steps, reads)| {
        let nodes = Nodes::open(journal, 1, &small_segments());
        let mut oracle = Oracle::default();
        for step in &steps {
            check_step(&nodes, &mut oracle, step);
        }
        for log in nodes.readers() {
            for (query, after, limit) in &reads {
                check_read(&log, &oracle, query, *after, *limit);
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// As the DCB specification requires.
pub fn an_after_beyond_the_head_can_never_fail_yet(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    nodes.append(append(&[Event::json("T", &["t"], "1")])).unwrap();
    let condition = AppendCondition::no_match_after(Query::item(&["T"], &[]), u64::MAX);
    assert!(nodes.append(append_if(&[Event::json("U", &[], "0")], condition)).is_ok());
    let condition = AppendCondition::no_match_after(Query::all(), 99);
    assert!(nodes.append(append_if(&[Event::json("T", &["t"], "2")], condition)).is_ok());
    let condition = AppendCondition::no_match_after(Query::all(), 2);
    let refused = nodes.append(append_if(&[Event::json("T", &["t"], "3")], condition));
    assert!(matches!(refused, Err(AppendError::Conflict(conflict)) if conflict.position == 3));
}
