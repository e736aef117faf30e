//! Indexes of vectors and of words are part of the schema, as events and in snapshots.

use super::history::{commit, dump, encoded};
use crate::event::GRAPH_SCHEMA_CHANGED;
use crate::{
    FoldStep, Graph, GraphError, GraphFold, SchemaDefinition, SchemaKind, SchemaSubject,
    Similarity, Transaction, VectorSettings,
};

fn vectors(tx: &Transaction, name: &str, dimensions: u16) -> SchemaDefinition {
    let settings = VectorSettings { dimensions, similarity: Similarity::Euclidean };
    SchemaDefinition {
        name: name.into(),
        kind: SchemaKind::Vector(settings),
        subject: SchemaSubject::Type(tx.name("R")),
        others: Vec::new(),
        keys: vec![tx.name("v")],
    }
}

fn words(tx: &Transaction, name: &str) -> SchemaDefinition {
    SchemaDefinition {
        name: name.into(),
        kind: SchemaKind::Fulltext,
        subject: SchemaSubject::Label(tx.name("A")),
        others: vec![tx.name("B"), tx.name("C")],
        keys: vec![tx.name("a"), tx.name("b")],
    }
}

#[test]
fn they_are_kept() {
    let (mut head, mut fold) = (Graph::new(), GraphFold::new());
    let mut tx = Transaction::writing(head.clone());
    for item in [vectors(&tx, "v", 3), words(&tx, "w")] {
        tx.create_schema_item(item).expect("a new one");
    }
    assert_eq!((tx.statistics().indexes_added, tx.statistics().constraints_added), (2, 0));
    commit(tx, &mut head, &mut fold);
    let mut tx = Transaction::writing(head.clone());
    let labels = ["A", "C"].map(|label| tx.name(label));
    tx.create_node(&labels, [(tx.name("a"), "text".into())]).expect("a node");
    commit(tx, &mut head, &mut fold);
    assert!(dump(&head).iter().any(|line| line.contains("fulltext") && line.contains(r#":"C""#)));
    assert_eq!(dump(&head), dump(fold.graph()));
    let bytes = encoded(&fold);
    let restored = GraphFold::decode(&mut &bytes[..]).expect("a snapshot");
    assert_eq!(dump(&head), dump(restored.graph()));
    assert_eq!(restored.graph().audit(), Ok(()));
    let mut tx = Transaction::writing(head.clone());
    tx.drop_schema_item("w").expect("there");
    commit(tx, &mut head, &mut fold);
    assert_eq!(dump(&head), dump(fold.graph()));
    assert_eq!(head.schema().count(), 1);
}

#[test]
fn those_that_make_no_sense_are_refused() {
    let mut tx = Transaction::writing(Graph::new());
    let (a, b) = (tx.name("a"), tx.name("b"));
    let mut attempt = |item: SchemaDefinition| tx.create_schema_item(item);
    let probe = Transaction::writing(Graph::new());
    let _ = (probe.name("a"), probe.name("b"));
    let two_keys = |item: SchemaDefinition| SchemaDefinition { keys: vec![a, b], ..item };
    assert_eq!(attempt(two_keys(vectors(&probe, "v", 3))), Err(GraphError::BadSchemaItem));
    let more = |item: SchemaDefinition| SchemaDefinition { others: vec![b], ..item };
    assert_eq!(attempt(more(vectors(&probe, "v", 3))), Err(GraphError::BadSchemaItem));
    assert_eq!(attempt(vectors(&probe, "v", 5_000)), Err(GraphError::BadSchemaItem));
    let range = |item: SchemaDefinition| SchemaDefinition { kind: SchemaKind::Range, ..item };
    assert_eq!(attempt(range(words(&probe, "w"))), Err(GraphError::BadSchemaItem));
    let twice = words(&probe, "w");
    let twice = SchemaDefinition { others: vec![twice.others[0], twice.others[0]], ..twice };
    assert_eq!(attempt(twice), Err(GraphError::BadSchemaItem));
}

#[test]
fn events_with_settings_that_do_not_fit_are_void() {
    let mut fold = GraphFold::new();
    let mut apply = |fields: &str| {
        let event =
            format!(r#"{{"create":[{{"name":"x","on":"node","keys":["k"],{fields}}}],"drop":[]}}"#);
        let position = fold.graph().position() + 1;
        matches!(fold.apply(position, GRAPH_SCHEMA_CHANGED, event.as_bytes()), FoldStep::Applied(_))
    };
    for void in [
        r#""kind":"vector","labels":["A"]"#,
        r#""kind":"vector","labels":["A"],"similarity":"other""#,
        r#""kind":"vector","labels":["A"],"similarity":"cosine","dimensions":70000"#,
        r#""kind":"vector","labels":["A","B"],"similarity":"cosine""#,
        r#""kind":"range","labels":["A"],"similarity":"cosine""#,
        r#""kind":"range","labels":["A","B"]"#,
        r#""kind":"fulltext","labels":[]"#,
        r#""kind":"fulltext","labels":["A"],"dimensions":3"#,
    ] {
        assert!(!apply(void), "{void}");
    }
    assert!(apply(r#""kind":"vector","labels":["A"],"similarity":"cosine""#));
}
