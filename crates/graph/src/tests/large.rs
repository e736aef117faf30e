//! Entities with very many properties: their number is limited, and the work grows linearly.

use crate::event::GRAPH_CHANGED;
use crate::limits::MAX_PROPERTIES;
use crate::value::Value;
use crate::{FoldStep, Graph, GraphError, GraphFold, Name, NodeId, Transaction};
use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn now() -> Instant {
    Instant::now()
}

/// `{"k1":1,…}` from the last key to the first, so their names are out of order when read again.
fn set_of(count: usize) -> String {
    let entries: Vec<String> = (0..count).rev().map(|key| format!("\"k{key}\":1")).collect();
    format!("{{{}}}", entries.join(","))
}

fn apply(fold: &mut GraphFold, data: &str) -> FoldStep {
    fold.apply(fold.graph().position() + 1, GRAPH_CHANGED, data.as_bytes())
}

/// Run alone by `tests/runner`: they measure time.
mod timed {
    use super::*;

    #[test]
    fn an_event_of_very_many_keys_is_judged_in_no_time() {
        let mut fold = GraphFold::new();
        let known: Vec<String> = (0..47_000).map(|key| format!("\"k{key}\"")).collect();
        apply(&mut fold, r#"{"nodes":[{"id":1,"new":[]}]}"#);
        let unset: Vec<String> = (47_000..94_000).map(|key| format!("\"k{key}\"")).collect();
        let begin = now();
        // Reversed, so each is inserted before all others.
        apply(&mut fold, &format!(r#"{{"nodes":[{{"id":1,"unset":[{}]}}]}}"#, known.join(",")));
        for event in [
            format!(
                r#"{{"nodes":[{{"id":1,"set":{},"unset":[{}]}}]}}"#,
                set_of(47_000),
                unset.join(",")
            ),
            format!(r#"{{"nodes":[{{"id":2,"new":[],"set":{}}}]}}"#, set_of(47_000)),
        ] {
            assert!(matches!(apply(&mut fold, &event), FoldStep::Void(_)));
        }
        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
        assert_eq!(fold.graph().dump().collect::<Vec<_>>(), ["node 1"]);
    }
}

#[test]
fn an_event_may_bring_as_many_properties_as_an_entity_has_room_for() {
    let mut fold = GraphFold::new();
    let full = set_of(MAX_PROPERTIES);
    let event = format!(
        r#"{{"nodes":[{{"id":1,"new":[],"set":{full}}}],"rels":[{{"id":1,"new":"R","from":1,"to":1,"set":{full}}}]}}"#
    );
    assert!(matches!(apply(&mut fold, &event), FoldStep::Applied(_)));
    for more in ["nodes", "rels"] {
        let one_more = format!(r#"{{"{more}":[{{"id":1,"set":{{"j":1}}}}]}}"#);
        assert!(matches!(apply(&mut fold, &one_more), FoldStep::Void(_)));
        let exchange = format!(r#"{{"{more}":[{{"id":1,"set":{{"j":1}},"unset":["k0"]}}]}}"#);
        assert!(matches!(apply(&mut fold, &exchange), FoldStep::Applied(_)));
    }
    assert_eq!(fold.graph().audit(), Ok(()));
}

fn keys(tx: &Transaction, prefix: &str, count: usize) -> Vec<(Name, Value)> {
    (0..count).map(|key| (tx.name(&format!("{prefix}{key}")), Value::Integer(1))).collect()
}

#[test]
fn an_entity_has_an_end_of_properties() {
    let mut tx = Transaction::writing(Graph::new());
    let [full, mut other] = ["a", "b"].map(|prefix| keys(&tx, prefix, MAX_PROPERTIES));
    other.reverse();
    let node = tx.create_node(&[], full.clone()).expect("room");
    let begin = now();
    for properties in [other.clone(), full.clone(), other] {
        tx.replace_node_properties(node, properties).expect("room");
    }
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert_eq!(tx.node_properties(node).map(|all| all.len()), Ok(MAX_PROPERTIES));
    let key = tx.name("one more");
    let refused = Err(GraphError::TooManyProperties);
    assert_eq!(tx.set_node_property(node, key, Some(1.into())), refused);
    let more = || full.iter().cloned().chain([(key, Value::Integer(1))]);
    assert_eq!(tx.create_node(&[], more()).map(NodeId::number), Err(GraphError::TooManyProperties));
    assert_eq!(tx.replace_node_properties(node, more().collect()), refused);
    let kind = tx.name("R");
    let relationship = tx.create_relationship(kind, node, node, full.clone()).expect("room");
    assert_eq!(tx.set_relationship_property(relationship, key, Some(1.into())), refused);
}
