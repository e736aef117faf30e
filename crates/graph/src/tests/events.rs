//! Foreign events: whatever they contain, nothing panics, and invalid ones change nothing,
//! identically everywhere.

use super::any_value;
use super::history::encoded;
use crate::event::{GRAPH_CHANGED, GRAPH_SCHEMA_CHANGED, LABEL_TAG};
use crate::value::Value;
use crate::{EntityScan, FoldStep, Graph, GraphFold, NodeId, Transaction, Verdict, Violation};
use proptest::prelude::*;

fn dump(fold: &GraphFold) -> Vec<String> {
    fold.graph().dump().collect()
}

fn fold_of(events: &[&str]) -> (GraphFold, Vec<FoldStep>) {
    let mut fold = GraphFold::new();
    let numbered = events.iter().zip(1..);
    let steps =
        numbered.map(|(data, position)| fold.apply(position, GRAPH_CHANGED, data.as_bytes()));
    let steps = steps.collect();
    (fold, steps)
}

#[test]
fn an_event_of_another_is_folded() {
    let (fold, steps) = fold_of(&[
        r#"{"nodes":[{"id":7,"new":["T"],"set":{"id":0,"at":1795224656517796090,"f":1.0}},{"id":3,"new":[]}],
            "rels":[{"id":1,"new":"KNOWS","from":7,"to":3,"set":{"since":{"$type":"Date","_value":"2020-01-02"}}}]}"#,
        r#"{"nodes":[{"id":3,"label":["X"],"set":{"n":[1,2.5,"a"]}},{"id":7,"unset":["f"]}],"rels":[{"id":1,"gone":true}]}"#,
    ]);
    assert!(steps.iter().all(|step| matches!(step, FoldStep::Applied(_))), "{steps:?}");
    let expected =
        [r#"node 3 :"X" "n"=[1,2.5,"a"]"#, r#"node 7 :"T" "at"=1795224656517796090 "id"=0"#];
    assert_eq!(dump(&fold), expected);
    let mut tx = Transaction::writing(fold.graph().clone());
    assert_eq!(tx.create_node(&[], []).map(NodeId::number), Ok(8));
}

#[test]
fn nonsense_voids_the_whole_transaction() {
    let start = r#"{"nodes":[{"id":1,"new":["A"]},{"id":2,"new":[]}],"rels":[{"id":1,"new":"R","from":1,"to":2}]}"#;
    for nonsense in [
        "",
        "[]",
        "{\"nodes\":1}",
        r#"{"nodes":[{"id":1,"new":[]}]}"#,
        r#"{"nodes":[{"id":5,"gone":true}]}"#,
        r#"{"nodes":[{"id":5,"new":["A"]},{"id":1,"gone":true}]}"#,
        r#"{"nodes":[{"id":5,"new":[]},{"id":5,"new":[]}]}"#,
        r#"{"nodes":[{"id":281474976710656,"new":[]}]}"#,
        r#"{"nodes":[{"id":5,"new":[""]}]}"#,
        r#"{"nodes":[{"id":5,"new":[],"set":{"k":null}}]}"#,
        r#"{"nodes":[{"id":5,"new":[],"set":{"k":[[1]]}}]}"#,
        r#"{"nodes":[{"id":5,"new":[],"set":{"k":9223372036854775808}}]}"#,
        r#"{"nodes":[{"id":5,"new":[],"set":{"k":{"$type":"Date","_value":"2021-02-30"}}}]}"#,
        r#"{"nodes":[{"id":5,"new":[],"other":1}]}"#,
        r#"{"nodes":[{"id":1,"set":{"k":1},"unset":["k"]}]}"#,
        r#"{"nodes":[{"id":5,"new":[]}],"rels":[{"id":2,"new":"R","from":5,"to":6}]}"#,
        r#"{"rels":[{"id":1,"set":{"k":1}},{"id":9,"gone":true}]}"#,
        r#"{"tx":"a","part":2,"of":2,"nodes":[{"id":5,"new":[]}]}"#,
        r#"{"tx":"a","part":1,"of":9999,"nodes":[{"id":5,"new":[]}]}"#,
    ] {
        let (fold, steps) = fold_of(&[start, nonsense]);
        assert!(matches!(steps[1], FoldStep::Void(_)), "{nonsense} {:?}", steps[1]);
        assert_eq!(dump(&fold), dump(&fold_of(&[start]).0), "{nonsense}");
        assert_eq!(fold.graph().audit(), Ok(()));
        assert_eq!(fold.graph().position(), 2);
    }
}

#[test]
fn parts_show_when_the_last_has_come_and_not_if_something_comes_between() {
    let one = r#"{"tx":"a","part":1,"of":2,"nodes":[{"id":1,"new":["A"],"set":{"k":1}}]}"#;
    let two = r#"{"tx":"a","part":2,"of":2,"nodes":[{"id":1,"set":{"j":2}}]}"#;
    let other = r#"{"nodes":[{"id":9,"new":[]}]}"#;
    let (fold, steps) = fold_of(&[one]);
    assert!(matches!(steps[0], FoldStep::Pending));
    assert!(dump(&fold).is_empty());
    let mut restored = GraphFold::decode(&mut &encoded(&fold)[..]).expect("a snapshot");
    assert_eq!(encoded(&restored), encoded(&fold));
    assert!(matches!(restored.apply(2, GRAPH_CHANGED, two.as_bytes()), FoldStep::Applied(_)));
    assert_eq!(dump(&restored), [r#"node 1 :"A" "j"=2 "k"=1"#]);
    let (fold, steps) = fold_of(&[one, other, two]);
    assert!(matches!(steps[2], FoldStep::Void(_)));
    assert_eq!(dump(&fold), ["node 9"]);
    let (fold, _) = fold_of(&[one, one, two]);
    assert_eq!(dump(&fold).len(), 1);
}

#[test]
fn an_id_far_off_uses_up_no_ids() {
    let (fold, _) = fold_of(&[
        r#"{"nodes":[{"id":281474976710655,"new":[]},{"id":1000,"new":[]},{"id":1001,"new":[]}]}"#,
    ]);
    let mut tx = Transaction::writing(fold.graph().clone());
    assert_eq!(tx.create_node(&[], []).map(NodeId::number), Ok(1002));
    let graph = tx.finish().expect("nothing broken").into_graph();
    assert_eq!(graph.dump().count(), 4);
}

#[test]
fn an_id_far_ahead_is_not_given_again_when_it_is_gone() {
    let (fold, _) = fold_of(&[
        r#"{"nodes":[{"id":70000000,"new":[]},{"id":3,"new":[]}]}"#,
        r#"{"rels":[{"id":90000000,"new":"T","from":3,"to":70000000}]}"#,
        r#"{"rels":[{"id":90000000,"gone":true}],"nodes":[{"id":70000000,"gone":true}]}"#,
    ]);
    let restored = GraphFold::decode(&mut &encoded(&fold)[..]).expect("a snapshot");
    for fold in [fold, restored] {
        let mut tx = Transaction::writing(fold.graph().clone());
        let node = tx.create_node(&[], []).expect("an id");
        assert_eq!(node.number(), 70_000_001);
        let kind = tx.name("T");
        let relationship = tx.create_relationship(kind, node, node, []).expect("an id");
        assert_eq!(relationship.number(), 90_000_001);
    }
}

#[test]
fn an_event_that_is_in_the_version_is_passed() {
    let mut fold = GraphFold::new();
    let event = br#"{"nodes":[{"id":9,"new":[]}]}"#;
    assert!(matches!(fold.apply(5, GRAPH_CHANGED, event), FoldStep::Applied(_)));
    assert!(matches!(fold.apply(5, GRAPH_CHANGED, event), FoldStep::Passed));
    assert!(matches!(fold.apply(6, "Other", event), FoldStep::Passed));
    assert_eq!(fold.graph().position(), 5);
}

#[test]
fn a_constraint_of_events_is_judged() {
    let mut fold = GraphFold::new();
    let schema = |kind: &str, name: &str| {
        format!(
            r#"{{"create":[{{"name":"{name}","kind":"{kind}","on":"node","labels":["A"],"keys":["k"]}}]}}"#
        )
    };
    let nodes =
        r#"{"nodes":[{"id":1,"new":["A"],"set":{"k":1}},{"id":2,"new":["A"],"set":{"k":1.0}}]}"#;
    fold.apply(1, GRAPH_CHANGED, nodes.as_bytes());
    let unique = schema("unique", "one");
    assert!(matches!(fold.apply(2, GRAPH_SCHEMA_CHANGED, unique.as_bytes()), FoldStep::Void(_)));
    fold.apply(3, GRAPH_CHANGED, br#"{"nodes":[{"id":2,"set":{"k":2}}]}"#);
    for kind in ["unique", "exists", "key", "range"] {
        let event = schema(kind, kind);
        let step = fold.apply(fold.graph().position() + 1, GRAPH_SCHEMA_CHANGED, event.as_bytes());
        assert!(matches!(step, FoldStep::Applied(_)), "{step:?}");
    }
    for broken in [
        r#"{"nodes":[{"id":2,"set":{"k":1}}]}"#,
        r#"{"nodes":[{"id":2,"unset":["k"]}]}"#,
        r#"{"nodes":[{"id":3,"new":["A"]}]}"#,
    ] {
        let step = fold.apply(fold.graph().position() + 1, GRAPH_CHANGED, broken.as_bytes());
        assert!(matches!(step, FoldStep::Void(_)), "{step:?}");
        assert_eq!(fold.graph().audit(), Ok(()));
    }
    let drop = br#"{"drop":["unique","exists","key"]}"#;
    assert!(matches!(fold.apply(20, GRAPH_SCHEMA_CHANGED, drop), FoldStep::Applied(_)));
    assert!(matches!(fold.apply(21, GRAPH_SCHEMA_CHANGED, drop), FoldStep::Void(_)));
    assert_eq!(fold.graph().audit(), Ok(()));
}

/// Commits the transaction and folds its events.
fn committed(tx: Transaction, head: &Graph) -> (Graph, GraphFold, usize) {
    let prepared = tx.finish().expect("nothing broken").prepare();
    let events = prepared.events(1).expect("not too large");
    let mut fold = GraphFold::new();
    for (event, position) in events.iter().zip(1..) {
        assert!(event.as_ref().check().is_ok());
        assert!(event.tags.len() <= 60, "{}", event.tags.len());
        let step = fold.apply(position, &event.event_type, &event.data);
        assert_eq!(matches!(step, FoldStep::Applied(_)), position as usize == events.len());
    }
    let Verdict::Committed(commit) = prepared.decide(head, &[]) else { panic!("alone") };
    (commit.graph, fold, events.len())
}

#[test]
fn a_large_transaction_is_told_in_parts() {
    let head = Graph::new();
    let mut tx = Transaction::writing(head.clone());
    let text: Value = "x\"".repeat(100_000).as_str().into();
    let keys: Vec<_> = (0..20).map(|number| tx.name(&format!("k{number}"))).collect();
    tx.create_node(&[], keys.iter().map(|key| (*key, text.clone()))).unwrap();
    for number in 0..150 {
        let labels = [tx.name(&format!("L{number}")), tx.name(&format!("M{number}"))];
        tx.create_node(&labels, []).unwrap();
    }
    let (graph, fold, parts) = committed(tx, &head);
    assert!(parts > 10, "{parts}");
    assert!(graph.dump().eq(fold.graph().dump()));
    assert_eq!(fold.graph().audit(), Ok(()));
}

#[test]
fn sixty_labels_for_sixty_others_are_told_in_two_parts() {
    let labels = |tx: &Transaction, from: usize| -> Vec<_> {
        (from..from + 60).map(|number| tx.name(&format!("L{number}"))).collect()
    };
    let mut tx = Transaction::writing(Graph::new());
    let first = labels(&tx, 0);
    let id = tx.create_node(&first, []).unwrap();
    let graph = tx.finish().expect("nothing broken").into_graph();
    let mut tx = Transaction::writing(graph.clone());
    tx.remove_labels(id, &labels(&tx, 0)).unwrap();
    tx.add_labels(id, &labels(&tx, 60)).unwrap();
    let events = tx.finish().expect("nothing broken").prepare().events(1).expect("two");
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.tags.len() == 60));
    assert!(events[0].tags.contains(&format!("{LABEL_TAG}L0")));
    assert!(events[1].tags.contains(&format!("{LABEL_TAG}L60")));
}

#[test]
fn what_no_event_can_hold_is_refused() {
    let mut tx = Transaction::writing(Graph::new());
    let key = tx.name("k");
    tx.create_node(&[], [(key, "x".repeat(1 << 20).as_str().into())]).unwrap();
    let refused = tx.finish().expect("nothing broken").prepare().events(1);
    assert!(matches!(refused, Err(Violation::PropertyTooLarge { .. })));
    let mut tx = Transaction::writing(Graph::new());
    for _ in 0..20 {
        tx.create_node(&[], [(key, "x".repeat(900_000).as_str().into())]).unwrap();
    }
    let refused = tx.finish().expect("nothing broken").prepare().events(1);
    assert!(matches!(refused, Err(Violation::TransactionTooLarge { .. })));
}

/// JSON that resembles an event.
fn nearly_an_event() -> impl Strategy<Value = String> {
    let id = prop_oneof![4 => (0u64..4).prop_map(|id| id.to_string()), 1 => Just("-1".to_owned()), 1 => Just("281474976710655".to_owned())];
    let set = prop_oneof![
        Just(String::new()),
        any_value().prop_map(|value| {
            let mut json = r#","set":{"k":"#.to_owned();
            crate::event::put_json(&mut json, &value);
            json + "}"
        }),
        Just(r#","set":{"j":[1,2],"":3}"#.to_owned()),
        Just(r#","unset":["k"]"#.to_owned()),
        Just(r#","gone":true"#.to_owned()),
    ];
    let node = (
        id.clone(),
        prop::sample::select(vec![
            "",
            r#","new":["A"]"#,
            r#","new":[]"#,
            r#","label":["B","C"]"#,
            r#","unlabel":["A"]"#,
        ]),
        set.clone(),
    )
        .prop_map(|(id, kind, set)| format!(r#"{{"id":{id}{kind}{set}}}"#));
    let one = (id.clone(), prop::option::of((id.clone(), id)), set).prop_map(|(id, ends, set)| {
        let head = ends
            .map_or(String::new(), |(from, to)| format!(r#","new":"R","from":{from},"to":{to}"#));
        format!(r#"{{"id":{id}{head}{set}}}"#)
    });
    let part = prop::sample::select(vec![
        "",
        "",
        "",
        r#""tx":"a","part":1,"of":2,"#,
        r#""tx":"a","part":2,"of":2,"#,
    ]);
    (part, prop::collection::vec(node, 0..4), prop::collection::vec(one, 0..3)).prop_map(
        |(part, nodes, ones)| {
            format!(r#"{{{part}"nodes":[{}],"rels":[{}]}}"#, nodes.join(","), ones.join(","))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn whatever_is_told_is_folded_the_same_way(
        events in prop::collection::vec(nearly_an_event(), 1..12),
        cut in 0..12usize,
        index_at in 0..12usize,
    ) {
        let index = r#"{"create":[{"name":"i","kind":"unique","on":"node","labels":["A"],"keys":["k"]}]}"#;
        let mut all: Vec<(&str, &str)> = events.iter().map(|data| (GRAPH_CHANGED, &**data)).collect();
        all.insert(index_at.min(all.len()), (GRAPH_SCHEMA_CHANGED, index));
        let (mut one, mut other) = (GraphFold::new(), GraphFold::new());
        for (at, (event_type, data)) in all.iter().enumerate() {
            let before = dump(&one);
            let step = one.apply(at as u64 + 1, event_type, data.as_bytes());
            if !matches!(step, FoldStep::Applied(_)) {
                prop_assert_eq!(before, dump(&one));
            }
            if at == cut {
                other = GraphFold::decode(&mut &encoded(&other)[..]).expect("a snapshot");
            }
            other.apply(at as u64 + 1, event_type, data.as_bytes());
            prop_assert_eq!(one.graph().audit(), Ok(()));
        }
        prop_assert_eq!(dump(&one), dump(&other));
        prop_assert_eq!(encoded(&one), encoded(&other));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), json in "[\\[\\]{}\",:a-z0-9.eE-]{0,80}") {
        let mut fold = GraphFold::new();
        fold.apply(1, GRAPH_CHANGED, &bytes);
        fold.apply(2, GRAPH_SCHEMA_CHANGED, &bytes);
        fold.apply(3, GRAPH_CHANGED, json.as_bytes());
        prop_assert_eq!(fold.graph().node_count(), 0);
        let _ = GraphFold::decode(&mut &bytes[..]);
    }

    #[test]
    fn a_damaged_snapshot_is_refused_or_a_graph(
        events in prop::collection::vec(nearly_an_event(), 1..6),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut fold = GraphFold::new();
        for (data, position) in events.iter().zip(1..) {
            fold.apply(position, GRAPH_CHANGED, data.as_bytes());
        }
        let mut bytes = encoded(&fold);
        let cut = at.index(bytes.len());
        prop_assert!(GraphFold::decode(&mut &bytes[..cut]).is_err());
        bytes[cut] = byte;
        if let Ok(fold) = GraphFold::decode(&mut &bytes[..]) {
            let graph = fold.graph();
            let _ = (graph.dump().count(), graph.audit(), graph.labels_in_use());
            let tx = Transaction::reading(graph.clone());
            for id in tx.scan_nodes().collect(&tx) {
                let _ = tx.adjacent(id, crate::Direction::Both, &[], None).collect(&tx);
            }
        }
    }
}
