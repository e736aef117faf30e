//! The cost of statements; run manually in release mode with `--ignored --nocapture`.

use std::time::Instant;
use wellspring_cypher::context::{Budget, Parameters, StatementTime};
use wellspring_cypher::value::Value;
use wellspring_cypher::{BuiltIn, Environment, Flow, NoServer, PlanCache, run};
use wellspring_graph::{Graph, Transaction, Value as Property};

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn now() -> Instant {
    Instant::now()
}

/// Runs a statement repeatedly on the graph, each time in a separate transaction that is kept or
/// dropped.
fn measure(name: &str, graph: &mut Graph, text: &str, times: u32, keep: bool) {
    let cache = PlanCache::new(100, 1 << 20);
    let mut parameters = Parameters::new();
    let begin = now();
    let mut count = 0_u64;
    for number in 0..times {
        let plan = cache.get(text, &BuiltIn).expect("a statement");
        parameters.insert("id".into(), Value::Integer(i64::from(number)));
        parameters.insert("ts".into(), Value::Integer(1_795_224_656_517_796_090));
        let time = StatementTime { seconds: 0, nanoseconds: 0 };
        let environment = Environment {
            parameters: &parameters,
            database: "x",
            time,
            seed: 1,
            server: &NoServer,
        };
        let mut transaction = match plan.access() {
            wellspring_cypher::Access::Read => Transaction::reading(graph.clone()),
            _ => Transaction::writing(graph.clone()),
        };
        let mut budget = Budget::new(u64::MAX, u64::MAX, || None);
        run(&plan, &mut transaction, &environment, &mut budget, &mut |_, _, _| {
            count += 1;
            Ok(Flow::Continue)
        })
        .expect("a result");
        if keep {
            *graph = transaction.finish().expect("no violation").into_graph();
        }
    }
    let each = begin.elapsed().as_secs_f64() * 1e9 / f64::from(times);
    println!("{name:<60} {each:>12.0} ns, {count} rows");
}

/// The store alone, with the same work as the first statement of the table.
fn measure_store(graph: &mut Graph, times: u32) {
    let begin = now();
    for number in 0..times {
        let mut transaction = Transaction::writing(graph.clone());
        let (label, id, ts) =
            (transaction.name("L"), transaction.name("id"), transaction.name("ts"));
        let properties = [
            (id, Property::Integer(i64::from(number))),
            (ts, Property::Integer(1_795_224_656_517_796_090)),
        ];
        let node = transaction.create_node(&[label], properties).expect("a node");
        let _ = transaction.node_property(node, id);
        *graph = transaction.finish().expect("no violation").into_graph();
    }
    let each = begin.elapsed().as_secs_f64() * 1e9 / f64::from(times);
    println!("{:<60} {each:>12.0} ns", "the store alone: create a node, read a property");
}

#[test]
#[ignore = "a measurement"]
fn costs() {
    let mut graph = Graph::new();
    measure_store(&mut graph, 100_000);
    let mut graph = Graph::new();
    measure(
        "CREATE (n:L {id, ts}) RETURN n.id",
        &mut graph,
        "CREATE (n:L {id: $id, ts: $ts}) RETURN n.id",
        100_000,
        true,
    );
    measure("RETURN 1", &mut graph, "RETURN 1", 100_000, false);
    measure("count all of a label", &mut graph, "MATCH (n:L) RETURN count(n)", 100_000, false);
    measure(
        "count distinct over 100,000",
        &mut graph,
        "MATCH (n:L) RETURN count(DISTINCT n.id)",
        10,
        false,
    );
    measure(
        "scan 100,000 with a predicate",
        &mut graph,
        "MATCH (n:L) WHERE n.id > 99990 RETURN n.id",
        10,
        false,
    );
    measure(
        "sort 100,000, first 10",
        &mut graph,
        "MATCH (n:L) RETURN n.id ORDER BY n.id DESC LIMIT 10",
        10,
        false,
    );
    measure("index", &mut graph, "CREATE INDEX FOR (n:L) ON (n.id)", 1, true);
    measure("seek", &mut graph, "MATCH (n:L {id: $id}) RETURN n.ts", 100_000, false);
    measure(
        "SET by seek",
        &mut graph,
        "MATCH (n:L {id: $id}) SET n.c = coalesce(n.c, 0) + 1",
        100_000,
        true,
    );
    measure(
        "MERGE of what is there",
        &mut graph,
        "MERGE (n:L {id: $id}) ON MATCH SET n.seen = true",
        100_000,
        true,
    );
    let edges = "MATCH (a:L {id: $id}), (b:L {id: ($id * 7919 + 13) % 100000}) CREATE (a)-[:K {w: $id}]->(b)";
    measure("CREATE a relationship by two seeks", &mut graph, edges, 100_000, true);
    let hops = "MATCH (a:L {id: $id})-[:K]-(b)-[:K]-(c)-[:K]-(d) RETURN count(*)";
    measure("three hops", &mut graph, hops, 10_000, false);
    let all = "MATCH (a:L)-[:K]->(b) RETURN count(*)";
    measure("100,000 relationships", &mut graph, all, 10, false);
}

#[test]
#[ignore = "a measurement"]
fn costs_of_joins() {
    for count in [20_000, 60_000] {
        let mut graph = Graph::new();
        let create = format!("UNWIND range(1, {count}) AS i CREATE (:Big {{i: i}})");
        measure(&create, &mut graph, &create, 1, true);
        for text in [
            "MATCH (a:Big), (b:Big) WHERE b.i <= 500 AND a.i = b.i + 1 RETURN count(*)",
            "MATCH (a:Big), (b:Big) WHERE a.i = b.i RETURN count(*)",
            "UNWIND range(1, 20000) AS i MATCH (b:Big {i: i}) RETURN count(b)",
            "MATCH (b:Big) WHERE b.i IN range(1000000, 1008000) RETURN count(b)",
            "MATCH (b:Big) WHERE NOT b.i IN range(1000000, 1008000) RETURN count(b)",
        ] {
            measure(text, &mut graph, text, 1, false);
        }
    }
    let mut graph = Graph::new();
    for text in [
        "UNWIND range(0, 40) AS i CREATE (:J {i: i})",
        "MATCH (a:J),(b:J) WHERE b.i = a.i + 1 CREATE (a)-[:R]->(:M)-[:R]->(b), (a)-[:R]->(:M)-[:R]->(b)",
    ] {
        measure(text, &mut graph, text, 1, true);
    }
    let text = "MATCH (:J {i: 0})-[:R*1..80]->(q) RETURN count(DISTINCT q)";
    measure(text, &mut graph, text, 1, false);
    let text = "UNWIND range(1, 3000000) AS i RETURN count(i)";
    measure(text, &mut graph, text, 1, false);
}
