//! For any history: versions never change, and events describe exactly what happened.

use super::model::Model;
use super::step::{KEYS, LABELS, Step, TYPES, any_step};
use crate::{
    CommittedChanges, Direction, EntityScan, FoldStep, Graph, GraphFold, Name, SchemaDefinition,
    SchemaKind, SchemaSubject, Transaction, Value, Verdict,
};
use proptest::prelude::*;
use std::sync::Arc;

/// Commits a transaction on top of `head` and folds its events.
pub(super) fn commit(
    tx: Transaction,
    head: &mut Graph,
    fold: &mut GraphFold,
) -> Option<CommittedChanges> {
    let prepared = tx.finish().expect("nothing broken").prepare();
    let events = prepared.events(7).expect("small enough");
    let position = head.position() + 1;
    match prepared.decide(head, &[]) {
        Verdict::Committed(commit) => {
            *head = commit.graph;
            head.set_position(position);
            let event = &events[0];
            assert!(event.as_ref().check().is_ok());
            let step = fold.apply(position, &event.event_type, &event.data);
            assert!(matches!(step, FoldStep::Applied(_)), "{step:?}");
            Some((*commit.changes).clone())
        }
        Verdict::Unchanged => {
            assert!(events.is_empty());
            None
        }
        verdict => panic!("{verdict:?}"),
    }
}

pub(super) fn encoded(fold: &GraphFold) -> Vec<u8> {
    let mut bytes = Vec::new();
    fold.encode(&mut bytes).expect("memory takes it");
    bytes
}

/// All that a client can see, in the order in which it sees it.
pub(super) fn raw(graph: &Graph) -> Vec<String> {
    let tx = Transaction::reading(graph.clone());
    let texts = |names: Vec<Name>| names.into_iter().map(|name| graph.text(name)).collect();
    let mut lines = vec![format!("{:?}", graph.names().texts().collect::<Vec<_>>())];
    let properties = |all: Vec<(Name, Value)>| -> Vec<(Arc<str>, Value)> {
        all.into_iter().map(|(key, value)| (graph.text(key), value)).collect()
    };
    for id in graph.node_ids() {
        let labels: Vec<Arc<str>> = texts(graph.labels(id).unwrap_or_default());
        let keys = properties(graph.node_properties(id).unwrap_or_default());
        let adjacent = tx.adjacent(id, Direction::Both, &[], None).collect(&tx);
        let adjacent: Vec<_> = adjacent.into_iter().map(|it| (it.relationship, it.other)).collect();
        lines.push(format!("{id:?} {labels:?} {keys:?} {adjacent:?}"));
    }
    for id in graph.relationship_ids() {
        let keys = properties(graph.relationship_properties(id).unwrap_or_default());
        lines.push(format!("{id:?} {keys:?}"));
    }
    lines.extend(graph.schema_lines());
    lines
}

pub(super) fn dump(graph: &Graph) -> Vec<String> {
    graph.dump().collect()
}

/// Creates an index for each kind of subject.
pub(super) fn create_indexes(head: &mut Graph, fold: &mut GraphFold) {
    let mut tx = Transaction::writing(head.clone());
    let keys = vec![tx.name(KEYS[0])];
    let subjects = [
        ("nodes", SchemaSubject::Label(tx.name(LABELS[0]))),
        ("relationships", SchemaSubject::Type(tx.name(TYPES[0]))),
    ];
    for (name, subject) in subjects {
        let (name, kind, keys) = (name.into(), SchemaKind::Range, keys.clone());
        tx.create_schema_item(SchemaDefinition { name, kind, subject, others: Vec::new(), keys })
            .expect("a new one");
    }
    commit(tx, head, fold);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn any_history(
        transactions in prop::collection::vec(prop::collection::vec(any_step(), 1..8), 1..12),
        index_after in 0..12usize,
        discarded in any::<bool>(),
    ) {
        let (mut head, mut fold, mut model) = (Graph::new(), GraphFold::new(), Model::default());
        let mut versions = Vec::new();
        for (round, steps) in transactions.iter().enumerate() {
            if round == index_after {
                create_indexes(&mut head, &mut fold);
            }
            if discarded {
                let mut tx = Transaction::writing(head.clone());
                let names = ["S", "C", "B", "j", "other"].map(|text| tx.name(text));
                tx.create_node(&names, [(names[0], 1.into())]).expect("a node");
            }
            let mut tx = Transaction::writing(head.clone());
            for step in steps {
                Step::take(step, &mut tx, &mut model).expect("a step that can be taken");
            }
            commit(tx, &mut head, &mut fold);
            versions.push((head.clone(), model.clone()));
        }
        for (graph, model) in &versions {
            let mut lines = dump(graph);
            lines.retain(|line| !line.starts_with("schema"));
            prop_assert_eq!(lines, model.dump());
            prop_assert_eq!(graph.audit(), Ok(()));
        }
        prop_assert_eq!(dump(&head), dump(fold.graph()));
        prop_assert_eq!(raw(&head), raw(fold.graph()));
        prop_assert_eq!(fold.graph().audit(), Ok(()));
        let bytes = encoded(&fold);
        let restored = GraphFold::decode(&mut &bytes[..]).expect("a snapshot");
        prop_assert_eq!(dump(&head), dump(restored.graph()));
        prop_assert_eq!(raw(&head), raw(restored.graph()));
        prop_assert_eq!(restored.graph().audit(), Ok(()));
        prop_assert_eq!(restored.graph().position(), fold.graph().position());
        prop_assert_eq!(encoded(&restored), bytes);
    }
}

/// Creates a unique constraint that will soon be violated.
pub(super) fn create_unique(head: &mut Graph) {
    let mut tx = Transaction::writing(head.clone());
    let definition = SchemaDefinition {
        name: "one".into(),
        kind: SchemaKind::Unique,
        subject: SchemaSubject::Label(tx.name(LABELS[0])),
        others: Vec::new(),
        keys: vec![tx.name(KEYS[0])],
    };
    tx.create_schema_item(definition).expect("a new one");
    commit(tx, head, &mut GraphFold::new());
}
