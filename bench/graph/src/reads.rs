//! Reading.

use crate::measure;
use crate::random::Random;
use crate::writes::node;
use std::hint::black_box;
use wellspring_graph::{Direction, EntityScan, Graph, Name, NodeId, Transaction, Value};

/// Paths of that many hops.
fn paths(tx: &Transaction, from: NodeId, knows: Name, hops: u32) -> u64 {
    if hops == 0 {
        return 1;
    }
    let met = tx.adjacent(from, Direction::Outgoing, &[knows], None).collect(tx);
    met.iter().map(|met| paths(tx, met.other, knows, hops - 1)).sum()
}

pub(crate) fn all(graph: &Graph, nodes: u64, random: &mut Random) {
    let count = 1_000_000;
    measure("version (clone and drop)", count, || {
        (0..count).for_each(|_| drop(black_box(graph.clone())));
    });
    let tx = Transaction::reading(graph.clone());
    let (name, score) = (tx.name("name"), tx.name("score"));
    measure("property of a random node", count, || {
        for _ in 0..count {
            black_box(tx.node_property(node(random.below(nodes)), name)).expect("a node");
        }
    });
    let known: Vec<Value> = (0..100_000)
        .map(|_| tx.node_property(node(random.below(nodes)), score).expect("a node"))
        .map(|value| value.expect("a score"))
        .collect();
    let person = tx.name("Person");
    measure("seek by index", known.len() as u64, || {
        let found =
            known.iter().map(|value| tx.seek_nodes(person, score, value).collect(&tx).len());
        assert_eq!(found.sum::<usize>(), known.len());
    });
    let (knows, starts) = (tx.name("KNOWS"), 10_000);
    let found = measure("3 hops from a random node", starts, || {
        (0..starts).map(|_| paths(&tx, node(random.below(nodes)), knows, 3)).sum::<u64>()
    });
    println!("  paths of each: {}", found / starts);
    measure("node of a scan with a predicate", nodes, || {
        let (mut scan, mut ids, mut matching) = (tx.scan_label(person), Vec::new(), 0);
        loop {
            let progress = scan.fill(&tx, &mut ids);
            for id in ids.drain(..) {
                let value = tx.node_property(id, score);
                matching += u64::from(matches!(value, Ok(Some(Value::Integer(0..=1_000)))));
            }
            if progress.is_finished {
                break black_box(matching);
            }
        }
    });
}
