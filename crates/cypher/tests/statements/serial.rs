//! Concurrent statements: if the second commits after the first, the result is as if it had begun
//! after the first. So every read of a statement must be recorded, whatever plan is used.

use crate::graph::{JudgedStatement, begin, finish, rows_of};
use wellspring_graph::{Graph, Verdict};

const BASE: [&str; 3] = [
    "CREATE (a:P {k: 1, name: 'a'}), (b:P {k: 2, name: 'b'}), (c:Q {k: 1, name: 'c'}), (d {name: 'd'}),
        (a)-[:R {w: 1}]->(b), (b)-[:R {w: 2}]->(c), (a)-[:S]->(c), (c)-[:S {w: 1}]->(c)",
    "CREATE (:Counter {n: 0, name: 'n'}), (:Lonely {name: 'l'})",
    "MATCH (n:P {name: 'a'}) SET n:Q2",
];

/// Each writes something that depends on its reads, so that a commit checks them.
const STATEMENTS: [&str; 54] = [
    "CREATE (:P {k: 1, name: 'new'})",
    "CREATE (:P {k: 3, name: 'new'})",
    "CREATE (:Q {k: 3, name: 'new'})",
    "CREATE (:New {name: 'new'})",
    "CREATE (:X {name: 'x'})-[:R {w: 3}]->(:X {name: 'y'})",
    "MATCH (n:P {k: 1}) SET n.k = 2 RETURN n.name",
    "MATCH (n:P {k: 2}) SET n.k = 1 RETURN n.name",
    "MATCH (n:P) WHERE n.k > 1 SET n.seen = true RETURN n.name",
    "MATCH (n) WHERE n.k = 1 SET n.one = true RETURN n.name",
    "MATCH (n:P) SET n.count = 1 RETURN count(n)",
    "MATCH (n:P) WITH count(*) AS c CREATE (:Result {c: c, name: 'result'}) RETURN c",
    "MATCH (n) WITH count(*) AS c CREATE (:Result {c: c, name: 'result'}) RETURN c",
    "MATCH ()-[r:R]->() WITH count(*) AS c CREATE (:Result {c: c, name: 'result'}) RETURN c",
    "MATCH ()-[r]->() WITH count(r) AS c CREATE (:Result {c: c, name: 'result'}) RETURN c",
    "MATCH (:P)-[r:R]->() WITH count(*) AS c CREATE (:Result {c: c, name: 'result'}) RETURN c",
    "MATCH (n:Counter) SET n.n = n.n + 1 RETURN n.n",
    "MATCH (n:Counter) WITH n.n AS c CREATE (:Result {c: c, name: 'result'}) RETURN c",
    "MERGE (n:P {k: 3}) ON CREATE SET n.name = 'merged' ON MATCH SET n.matched = true RETURN n.name",
    "MERGE (n:P {k: 1}) ON CREATE SET n.name = 'merged' ON MATCH SET n.matched = true RETURN n.name",
    "MERGE (n:New {name: 'new'}) ON MATCH SET n.matched = true RETURN n.name",
    "MATCH (a:P {k: 1}), (b:P {k: 2}) MERGE (a)-[r:R]->(b) ON MATCH SET r.matched = true RETURN r.w",
    "MATCH (a:P {k: 1}), (b:P {k: 2}) MERGE (a)-[r:T]->(b) ON CREATE SET r.new = true RETURN r.new",
    "MATCH (a:P {k: 1}), (b:P {k: 2}) MERGE (a)-[r:T]-(b) ON CREATE SET r.new = true RETURN r.new",
    "MATCH (a {name: 'a'}), (b {name: 'b'}) CREATE (a)-[:T {new: true}]->(b)",
    "MATCH (a {name: 'a'}), (d {name: 'd'}) CREATE (d)-[:R {w: 7}]->(a)",
    "MATCH (a {name: 'a'})-[r:R]->(b) SET r.w = r.w + 1 RETURN r.w, b.name",
    "MATCH (a {name: 'a'})-[r]-(b) SET a.degree = 1 RETURN type(r), b.name",
    "MATCH (a:P)-[:R]->(b)-[:R]->(c) SET a.path = c.name RETURN a.name, c.name",
    "MATCH (a {name: 'a'})-[:R*1..3]->(b) SET b.reached = true RETURN b.name",
    "MATCH (a {name: 'a'}) OPTIONAL MATCH (a)-[:T]->(b) SET a.other = b.name RETURN b.name",
    "MATCH (a:P) WHERE EXISTS { (a)-[:S]->() } SET a.has = true RETURN a.name",
    "MATCH (a:P) WHERE NOT (a)-[:T]->() SET a.lacks = true RETURN a.name",
    "MATCH (a:P) SET a.count = COUNT { (a)-->() } RETURN a.name, a.count",
    "MATCH (a:P) SET a.all = size([(a)-->(b) | b.name]) RETURN a.name, a.all",
    "MATCH (n:Lonely) SET n:P RETURN n.name",
    "MATCH (n:Lonely) DELETE n",
    "MATCH (n {name: 'b'}) DETACH DELETE n",
    "MATCH (n {name: 'd'}) DELETE n",
    "MATCH (n {name: 'd'}) SET n.k = 1, n:P RETURN labels(n)",
    "MATCH (n:P {k: 1}) REMOVE n:P RETURN labels(n)",
    "MATCH (n:P) REMOVE n.k RETURN n.name",
    "MATCH (n {name: 'c'}) SET n = {name: 'c', k: 5} RETURN n.k",
    "MATCH (n {name: 'c'}) SET n += {k: 1, j: 2} RETURN properties(n)",
    "MATCH (n:Q2) SET n.labels = size(labels(n)) RETURN n.labels",
    "MATCH ()-[r:S]->() DELETE r",
    "MATCH ()-[r {w: 1}]->() SET r.w = 2 RETURN type(r)",
    "MATCH (a)-[r:S]->(a) SET a.loop = true RETURN a.name",
    "UNWIND [1, 2, 3] AS k MATCH (n:P {k: k}) SET n.found = k RETURN n.name",
    "MATCH (n:P) WHERE n.k IN [2, 3] SET n.in = true RETURN n.name",
    "MATCH (n) WHERE id(n) = 0 SET n.zero = true RETURN n.k",
    "MATCH (n:P) WITH n ORDER BY n.k DESC LIMIT 1 SET n.last = true RETURN n.name",
    "MATCH p = shortestPath((a {name: 'a'})-[:R*]->(c {name: 'c'})) SET a.hops = length(p) RETURN length(p)",
    "MATCH (n:Counter) FOREACH (i IN range(1, 3) | CREATE (:Made {i: i + n.n, name: 'made'}))",
    "MATCH (n:P) WITH max(n.k) AS k CREATE (:P {k: k + 1, name: 'next'}) RETURN k",
];

/// The graph as rows without ids.
fn shape(graph: &Graph) -> [Vec<String>; 2] {
    let texts = [
        "MATCH (n) RETURN labels(n), properties(n)",
        "MATCH (a)-[r]->(b) RETURN properties(a), type(r), properties(r), properties(b)",
    ];
    texts.map(|text| rows_of(graph, text))
}

fn base(is_indexed: bool) -> Graph {
    let mut graph = Graph::new();
    let index: &[&str] = if is_indexed { &["CREATE INDEX p FOR (n:P) ON (n.k)"] } else { &[] };
    for text in BASE.iter().chain(index) {
        graph = finish(&graph, begin(&graph, text)).expect("the base");
    }
    graph
}

/// The number of pairs that committed, after comparing the second with itself run after the first.
fn compare_all(is_indexed: bool) -> usize {
    let base = base(is_indexed);
    let mut committed = 0;
    for first in STATEMENTS {
        for second in STATEMENTS {
            let (one, two) = (begin(&base, first), begin(&base, second));
            let (Ok(JudgedStatement { prepared: one, .. }), Ok(two)) = (one, two) else { continue };
            let Verdict::Committed(commit) = one.decide(&base, &[]) else { continue };
            let head = commit.graph;
            let Verdict::Committed(both) = two.prepared.decide(&head, &[&commit.changes]) else {
                continue;
            };
            committed += 1;
            let again = begin(&head, second)
                .unwrap_or_else(|error| panic!("{second}\nfails after\n{first}\n{error}"));
            assert_eq!(two.rows, again.rows, "{second}\ntells something else after\n{first}");
            let serial = finish(&head, Ok(again)).expect("it has run");
            assert_eq!(
                shape(&both.graph),
                shape(&serial),
                "{second}\ndoes something else after\n{first}"
            );
        }
    }
    committed
}

#[test]
fn what_statements_read_is_noted() {
    // Not all pairs conflict; otherwise this would show nothing.
    assert!(compare_all(false) > 700);
}

#[test]
fn what_statements_read_by_an_index_is_noted() {
    assert!(compare_all(true) > 700);
}
