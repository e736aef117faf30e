//! Arbitrary bytes as graph events, a line each, and as a snapshot: folded or void, read or
//! refused, never a panic; what is kept beside the nodes and relationships agrees with them, and a
//! snapshot of it says the same.
use wellspring_graph::event::{GRAPH_CHANGED, GRAPH_SCHEMA_CHANGED};
use wellspring_graph::{Direction, EntityScan, GraphFold, Transaction};

pub fn run(bytes: &[u8]) {
    let mut fold = GraphFold::new();
    for (line, position) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        let is_schema = line.starts_with(b"{\"create\"") || line.starts_with(b"{\"drop\"");
        let event_type = if is_schema { GRAPH_SCHEMA_CHANGED } else { GRAPH_CHANGED };
        fold.apply(position, event_type, line);
    }
    assert_eq!(fold.graph().audit(), Ok(()));
    let mut snapshot = Vec::new();
    fold.encode(&mut snapshot).expect("memory takes it");
    let again = GraphFold::decode(&mut &snapshot[..]).expect("it was just written");
    assert!(again.graph().dump().eq(fold.graph().dump()));
    let Ok(other) = GraphFold::decode(&mut &*bytes) else { return };
    let tx = Transaction::reading(other.graph().clone());
    for id in tx.scan_nodes().collect(&tx) {
        let _ = tx.adjacent(id, Direction::Both, &[], None).collect(&tx);
    }
    let _ = (other.graph().audit(), other.graph().dump().count());
}
