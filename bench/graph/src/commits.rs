//! The life of a transaction without log and network, the fold, and the snapshot.

use crate::{measure, resident};
use wellspring_graph::{FoldStep, Graph, GraphFold, Transaction, Value, Verdict};

fn create(head: &Graph, number: u64) -> Transaction {
    let mut tx = Transaction::writing(head.clone());
    let properties = [
        (tx.name("id"), Value::Integer(number as i64)),
        (tx.name("timestamp"), Value::Integer(1_795_224_656_517_796_090 + number as i64)),
    ];
    tx.create_node(&[tx.name("TestNode")], properties).expect("a node");
    tx
}

/// `CREATE (n:TestNode {id, timestamp})`, each a transaction of its own.
pub(crate) fn all(graph: &Graph) {
    let count = 200_000;
    let (mut head, mut events) = (graph.clone(), Vec::new());
    let mut kept = head.clone();
    measure("CREATE: execute, prepare, encode, decide, a version each", count, || {
        for number in 0..count {
            let prepared = create(&head, number).finish().expect("nothing broken").prepare();
            events.extend(prepared.events(0).expect("small"));
            let Verdict::Committed(commit) = prepared.decide(&head, &[]) else { unreachable!() };
            kept = std::mem::replace(&mut head, commit.graph);
        }
    });
    drop(kept);
    for every in [1, 1_000] {
        let mut fold = GraphFold::new();
        let mut version = fold.clone();
        measure(&format!("fold of these events, a version every {every}"), count, || {
            for (event, position) in events.iter().zip(1..) {
                let step = fold.apply(position, &event.event_type, &event.data);
                assert!(matches!(step, FoldStep::Applied(_)));
                if position % every == 0 {
                    version = fold.clone();
                }
            }
        });
        assert_eq!(version.graph().node_count(), count);
    }
}

/// A snapshot of everything, written and read.
pub(crate) fn snapshot(graph: Graph) {
    let entities = graph.node_count() + graph.relationship_count();
    let fold = GraphFold::from(graph);
    let mut bytes = Vec::new();
    measure("snapshot written, of an entity", entities, || {
        fold.encode(&mut bytes).expect("memory takes it");
    });
    println!("  bytes: {} MiB", bytes.len() >> 20);
    drop(fold);
    let before = resident();
    let fold = measure("snapshot read, of an entity", entities, || {
        GraphFold::decode(&mut &bytes[..]).expect("a snapshot")
    });
    println!("  memory grown by: {:.0} MiB", resident() - before);
    assert_eq!(fold.graph().node_count() + fold.graph().relationship_count(), entities);
}
