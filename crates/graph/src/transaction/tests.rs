//! Visibility of a transaction's own effects.

use super::*;
use crate::{Entity, SchemaKind, SchemaSubject, Value};

fn commit(transaction: Transaction) -> Graph {
    transaction.finish().expect("nothing broken").into_graph()
}

#[test]
fn a_node_is_found_by_all_that_it_has() {
    let mut tx = Transaction::writing(Graph::new());
    let (person, name) = (tx.name("Person"), tx.name("name"));
    let ann = tx.create_node(&[person], [(name, "Ann".into())]).unwrap();
    let bob = tx.create_node(&[person], [(name, "Bob".into())]).unwrap();
    let knows = tx.name("KNOWS");
    let one = tx.create_relationship(knows, ann, bob, []).unwrap();
    assert_eq!(tx.statistics().nodes_created, 2);
    let tx = Transaction::reading(commit(tx));
    let (person, name, knows) = (tx.name("Person"), tx.name("name"), tx.name("KNOWS"));
    assert_eq!(tx.scan_label(person).collect(&tx), [ann, bob]);
    assert_eq!(tx.scan_nodes().collect(&tx), [ann, bob]);
    assert_eq!(tx.seek_nodes(person, name, &"Bob".into()).collect(&tx), [bob]);
    assert_eq!(tx.node_property(bob, name), Ok(Some("Bob".into())));
    assert_eq!((tx.label_count(person), tx.type_count(knows)), (2, 1));
    let met = tx.adjacent(bob, Direction::Both, &[knows], None).collect(&tx);
    assert_eq!(met.len(), 1);
    assert_eq!((met[0].relationship, met[0].other, met[0].is_outgoing), (one, ann, false));
    assert!(tx.adjacent(bob, Direction::Outgoing, &[], None).collect(&tx).is_empty());
    assert_eq!(tx.adjacent(bob, Direction::Incoming, &[], Some(ann)).collect(&tx).len(), 1);
    assert!(tx.adjacent(bob, Direction::Incoming, &[], Some(bob)).collect(&tx).is_empty());
    assert_eq!(tx.scan_type(knows).collect(&tx), [one]);
    assert_eq!(tx.name("Nobody"), Name::UNKNOWN);
    assert!(tx.scan_label(Name::UNKNOWN).collect(&tx).is_empty());
    assert_eq!(*tx.labels_in_use(), ["Person".into()]);
}

#[test]
fn what_a_transaction_holds_grows_with_what_it_wrote_and_read() {
    let mut tx = Transaction::writing(Graph::new());
    let (label, key) = (tx.name("L"), tx.name("k"));
    let empty = tx.held_bytes();
    assert!(empty < 4 << 10, "{empty}");
    for number in 0..1_000 {
        tx.create_node(&[label], [(key, number.into())]).unwrap();
    }
    let created = tx.held_bytes();
    assert!((64_000..400_000).contains(&created), "{created}");
    let mut tx = Transaction::writing(commit(tx));
    let (label, key) = (tx.name("L"), tx.name("k"));
    let nodes = tx.scan_label(label).collect(&tx);
    let read = tx.held_bytes();
    for node in nodes {
        tx.set_node_property(node, key, Some(7.into())).unwrap();
    }
    // A page with several changed rows is copied once.
    let changed = tx.held_bytes() - read;
    assert!((64_000..300_000).contains(&changed), "{changed}");
    assert_eq!(tx.held_bytes(), tx.small_copy().map_or(read + changed, |copy| copy.held_bytes()));
}

/// A graph of nodes with a property for each of 20 keys, and this many indexes on it.
fn indexed(nodes: i64, indexes: usize) -> (Graph, Name, Vec<Name>) {
    let mut tx = Transaction::writing(Graph::new());
    let label = tx.name("L");
    let keys: Vec<Name> = (0..20).map(|key| tx.name(&format!("k{key}"))).collect();
    for number in 0..nodes {
        tx.create_node(&[label], keys.iter().map(|key| (*key, number.into()))).unwrap();
    }
    let mut graph = commit(tx);
    let known = |text: &str| graph.find_name(text).expect("it is used");
    let (label, keys) =
        (known("L"), (0..20).map(|key| known(&format!("k{key}"))).collect::<Vec<_>>());
    for key in &keys[..indexes] {
        let mut tx = Transaction::writing(graph);
        let definition = SchemaDefinition {
            name: tx.text(*key),
            kind: SchemaKind::Range,
            subject: SchemaSubject::Label(label),
            others: Vec::new(),
            keys: vec![*key],
        };
        tx.create_schema_item(definition).unwrap();
        graph = commit(tx);
    }
    (graph, label, keys)
}

#[test]
fn what_a_transaction_holds_counts_the_pages_of_indexes() {
    let changed = |indexes| {
        let (graph, label, keys) = indexed(4_000, indexes);
        let mut tx = Transaction::writing(graph);
        for node in tx.scan_label(label).collect(&tx).into_iter().step_by(200) {
            let changes =
                keys.iter().map(|key| (*key, Some(Value::from(node.number() as i64 * 7919))));
            tx.change_node(node, changes).unwrap();
        }
        tx.held_bytes()
    };
    let (without, with) = (changed(0), changed(20));
    // 20 nodes in separate pages, and for each of them and each index a leaf that lost an entry.
    let (rows, leaves) = (20 * 64 * 20 * 4, 20 * 20 * 48 * 34);
    assert!((rows..5 * rows).contains(&without), "{without}");
    assert!((leaves..5 * leaves).contains(&(with - without)), "{with} {without}");
}

#[test]
fn a_loop_is_met_once_in_both_directions() {
    let mut tx = Transaction::writing(Graph::new());
    let node = tx.create_node(&[], []).unwrap();
    let likes = tx.name("LIKES");
    tx.create_relationship(likes, node, node, []).unwrap();
    for direction in [Direction::Both, Direction::Outgoing, Direction::Incoming] {
        assert_eq!(tx.adjacent(node, direction, &[], None).collect(&tx).len(), 1);
        assert_eq!(tx.adjacent(node, direction, &[likes], Some(node)).collect(&tx).len(), 1);
    }
}

#[test]
fn what_is_deleted_cannot_be_read_but_a_relationship_keeps_its_type() {
    let mut tx = Transaction::writing(Graph::new());
    let key = tx.name("k");
    let node = tx.create_node(&[], [(key, 1.into())]).unwrap();
    let kind = tx.name("T");
    let one = tx.create_relationship(kind, node, node, []).unwrap();
    tx.detach_delete_node(node).unwrap();
    tx.delete_node(node).unwrap();
    let gone = Err(GraphError::Deleted(Entity::Node(node)));
    assert_eq!(tx.node_property(node, key), gone);
    assert_eq!(tx.set_node_property(node, key, None).map(|()| None), gone);
    assert!(tx.relationship_property(one, key).is_err());
    assert_eq!(tx.relationship(one).map(|head| head.relationship_type), Ok(kind));
    assert_eq!((tx.statistics().nodes_deleted, tx.statistics().relationships_deleted), (1, 1));
    assert_eq!(commit(tx).node_count(), 0);
}

#[test]
fn a_node_with_relationships_stops_the_commit() {
    let mut tx = Transaction::writing(Graph::new());
    let node = tx.create_node(&[], []).unwrap();
    let kind = tx.name("T");
    tx.create_relationship(kind, node, node, []).unwrap();
    tx.delete_node(node).unwrap();
    assert_eq!(tx.finish().err(), Some(Violation::StillConnected(node)));
}

#[test]
fn a_base_is_not_written() {
    let mut tx = Transaction::writing(Graph::new());
    let (label, key) = (tx.name("L"), tx.name("k"));
    let node = tx.create_node(&[label], [(key, 1.into())]).unwrap();
    let graph = commit(tx);
    let mut tx = Transaction::writing(graph.clone());
    let (label, key) = (tx.name("L"), tx.name("k"));
    tx.change_node(node, [(key, Some(2.into())), (tx.name("j"), Some(true.into()))]).unwrap();
    tx.replace_node_properties(node, vec![(key, 3.into())]).unwrap();
    assert_eq!(tx.take_statistics().properties_set, 4);
    tx.remove_labels(node, &[label]).unwrap();
    assert_eq!(commit(tx).node_properties(node), Some(vec![(key, Value::Integer(3))]));
    assert_eq!(graph.node_property(node, key), Some(Value::Integer(1)));
    assert_eq!(graph.label_count(label), 1);
}

#[test]
fn constraints_are_judged_when_asked() {
    let mut tx = Transaction::writing(Graph::new());
    let (label, key) = (tx.name("L"), tx.name("k"));
    let first = tx.create_node(&[label], [(key, 1.into())]).unwrap();
    let mut tx = Transaction::writing(commit(tx));
    let (label, key) = (tx.name("L"), tx.name("k"));
    let definition = SchemaDefinition {
        name: "one".into(),
        kind: SchemaKind::Unique,
        subject: SchemaSubject::Label(label),
        others: Vec::new(),
        keys: vec![key],
    };
    tx.create_schema_item(definition.clone()).unwrap();
    assert_eq!(tx.create_schema_item(definition), Err(GraphError::Equivalent("one".into())));
    let mut tx = Transaction::writing(commit(tx));
    assert!(tx.has_index(label, key));
    let second = tx.create_node(&[label], [(key, 1.0.into())]).unwrap();
    assert_eq!(tx.seek_nodes(label, key, &1.into()).collect(&tx), [first, second]);
    let (entity, other) = (Entity::Node(second), Entity::Node(first));
    let what = "label `L` and property `k` = 1.0".into();
    let expected = Violation::Duplicate { constraint: "one".into(), entity, other, what };
    assert_eq!(tx.check(), Err(expected));
}

#[test]
fn what_cannot_be_stored_is_refused() {
    let mut tx = Transaction::writing(Graph::new());
    let key = tx.name("k");
    let nested = Value::List([Value::List([].into())].into());
    assert_eq!(tx.create_node(&[], [(key, nested)]), Err(GraphError::NotStorable));
    let bad = tx.name("");
    assert_eq!(tx.create_node(&[bad], []), Err(GraphError::NotAName));
    let many: Vec<Name> = (0..61).map(|number| tx.name(&format!("L{number}"))).collect();
    assert_eq!(tx.create_node(&many, []), Err(GraphError::TooManyLabels));
    let mut tx = Transaction::reading(Graph::new());
    assert_eq!(tx.create_node(&[], []), Err(GraphError::ReadOnly));
}

#[test]
fn versions_and_transactions_go_from_thread_to_thread() {
    fn goes<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Graph>();
    is_shared::<crate::GraphFold>();
    is_shared::<crate::CommittedChanges>();
    goes::<Transaction>();
    goes::<crate::PreparedTransaction>();
}

#[test]
fn a_node_with_many_relationships_is_deleted_bit_by_bit() {
    let mut tx = Transaction::writing(Graph::new());
    let (busy, other) = (tx.create_node(&[], []).unwrap(), tx.create_node(&[], []).unwrap());
    let kind = tx.name("T");
    for (from, to) in [(busy, other), (other, busy), (busy, busy)].repeat(200) {
        tx.create_relationship(kind, from, to, []).unwrap();
    }
    let mut calls = 1;
    while !tx.detach_some(busy).unwrap().is_finished {
        calls += 1;
    }
    assert!(calls > 4, "{calls}");
    assert_eq!((tx.node_count(), tx.relationship_count()), (1, 0));
    assert_eq!(tx.statistics().relationships_deleted, 600);
    assert_eq!(commit(tx).audit(), Ok(()));
}

#[test]
fn a_transaction_that_no_append_can_hold_ends_early() {
    let mut tx = Transaction::writing(Graph::new());
    let key = tx.name("k");
    let long: Value = "x".repeat(1 << 20).as_str().into();
    let node = tx.create_node(&[], [(key, long.clone())]).unwrap();
    for _ in 0..100 {
        tx.set_node_property(node, key, Some(long.clone())).unwrap();
    }
    let refused = (0..100).find_map(|_| tx.create_node(&[], [(key, long.clone())]).err());
    let too_large = Some(GraphError::Violation(Violation::TransactionTooLarge { bytes: 0 }));
    let discriminants =
        [refused, too_large].map(|error| error.as_ref().map(std::mem::discriminant));
    assert_eq!(discriminants[0], discriminants[1]);
}

#[test]
fn what_a_discarded_transaction_names_is_gone_with_it() {
    let mut graph = Graph::new();
    for round in 0..3 {
        let mut tx = Transaction::writing(graph.clone());
        let keys: Vec<Name> = (0..400_000).map(|key| tx.name(&format!("{round}/{key}"))).collect();
        assert!(!keys.contains(&Name::UNKNOWN));
        tx.create_node(&keys[..3], [(keys[4], 1.into())]).unwrap();
        assert!(tx.held_bytes() > 30_000_000, "{}", tx.held_bytes());
        assert!(tx.written_bytes() > 30_000_000, "{}", tx.written_bytes());
        drop(tx);
        assert_eq!(graph.names().len(), 0);
    }
    let mut tx = Transaction::writing(graph.clone());
    let all: Vec<Name> = (0..=1 << 20).map(|key| tx.name(&key.to_string())).collect();
    assert_eq!((all[(1 << 20) - 1] == Name::UNKNOWN, all[1 << 20]), (false, Name::UNKNOWN));
    assert_eq!(tx.refused_name("one more"), GraphError::OutOfNames);
    tx.create_node(&[all[7], all[5]], []).unwrap();
    graph = commit(tx);
    // Only what is used stays, in the order in which it was written down.
    assert_eq!(graph.names().texts().map(|text| &**text).collect::<Vec<_>>(), ["5", "7"]);
    let mut tx = Transaction::writing(graph);
    assert_ne!(tx.name("one more"), Name::UNKNOWN);
    let five = tx.name("5");
    assert_eq!(tx.scan_label(five).collect(&tx).len(), 1);
    tx.create_node(&[five], []).unwrap();
}
