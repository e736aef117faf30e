//! Writing: in bulk, and with a version kept after each write.

use crate::measure;
use crate::random::Random;
use wellspring_graph::{
    Graph, NodeId, SchemaDefinition, SchemaKind, SchemaSubject, Transaction, Value,
};

/// Writes of a transaction in bulk.
const BATCH: u64 = 10_000;

pub(crate) fn node(number: u64) -> NodeId {
    NodeId::new(number).expect("an id of 48 bits")
}

fn done(tx: Transaction) -> Graph {
    tx.finish().expect("nothing broken").into_graph()
}

/// That many nodes `(:Person {id, name, score})`, with an index over `score`.
pub(crate) fn nodes(mut graph: Graph, count: u64, random: &mut Random) -> Graph {
    let mut tx = Transaction::writing(graph);
    let subject = SchemaSubject::Label(tx.name("Person"));
    let keys = vec![tx.name("score")];
    let (name, kind) = ("score".into(), SchemaKind::Range);
    let definition = SchemaDefinition { name, kind, subject, others: Vec::new(), keys };
    tx.create_schema_item(definition).expect("a new one");
    graph = done(tx);
    for start in (0..count).step_by(BATCH as usize) {
        let mut tx = Transaction::writing(graph);
        let (label, id) = (tx.name("Person"), tx.name("id"));
        let (name, score) = (tx.name("name"), tx.name("score"));
        for number in start..(start + BATCH).min(count) {
            let text = format!("person {number}");
            let properties = [
                (id, Value::Integer(number as i64)),
                (name, text.as_str().into()),
                (score, Value::Integer((random.next() >> 1) as i64)),
            ];
            tx.create_node(&[label], properties).expect("a node");
        }
        graph = done(tx);
    }
    graph
}

/// That many relationships `[:KNOWS {since}]` between random nodes.
pub(crate) fn relationships(
    mut graph: Graph,
    count: u64,
    nodes: u64,
    random: &mut Random,
) -> Graph {
    for start in (0..count).step_by(BATCH as usize) {
        let mut tx = Transaction::writing(graph);
        let (knows, since) = (tx.name("KNOWS"), tx.name("since"));
        for number in start..(start + BATCH).min(count) {
            let (from, to) = (node(random.below(nodes)), node(random.below(nodes)));
            let properties = [(since, Value::Integer(number as i64 % 3_000))];
            tx.create_relationship(knows, from, to, properties).expect("a relationship");
        }
        graph = done(tx);
    }
    graph
}

/// Single writes with a version kept after each, or after every hundred.
pub(crate) fn versions(graph: &Graph, nodes: u64, random: &mut Random) {
    let count = 100_000;
    let run = |what: &str, every: u64, write: &mut dyn FnMut(&mut Transaction)| {
        let mut head = graph.clone();
        measure(what, count, || {
            let mut kept = head.clone();
            for _ in 0..count / every {
                let mut tx = Transaction::writing(head);
                (0..every).for_each(|_| write(&mut tx));
                head = done(tx);
                kept = head.clone();
            }
            kept
        });
    };
    let mut number = 0i64;
    let mut create = |label: &'static str, score: &mut dyn FnMut() -> i64, tx: &mut Transaction| {
        number += 1;
        let properties =
            [(tx.name("id"), Value::Integer(number)), (tx.name("score"), Value::Integer(score()))];
        tx.create_node(&[tx.name(label)], properties).expect("a node");
    };
    run("CREATE a node, a version each", 1, &mut |tx| create("Other", &mut || 7, tx));
    run("CREATE a node, a version every 100", 100, &mut |tx| create("Other", &mut || 7, tx));
    run("CREATE a node with a random index, a version each", 1, &mut |tx| {
        create("Person", &mut || (random.next() >> 1) as i64, tx);
    });
    run("CREATE a relationship, random ends, a version each", 1, &mut |tx| {
        let (from, to) = (node(random.below(nodes)), node(random.below(nodes)));
        tx.create_relationship(tx.name("KNOWS"), from, to, []).expect("a relationship");
    });
    run("SET on a random node, a version each", 1, &mut |tx| {
        let (id, key) = (node(random.below(nodes)), tx.name("id"));
        tx.set_node_property(id, key, Some(Value::Integer(7))).expect("a node");
    });
    run("CREATE a relationship at one node, a version every 100", 100, &mut |tx| {
        let (from, to) = (node(0), node(random.below(nodes)));
        tx.create_relationship(tx.name("KNOWS"), from, to, []).expect("a relationship");
    });
}
