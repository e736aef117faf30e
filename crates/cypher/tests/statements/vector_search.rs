//! Indexes of vectors.

use crate::graph::TestGraph;
use wellspring_cypher::context::Budget;
use wellspring_cypher::value::Value;

fn graph() -> TestGraph {
    let mut graph = TestGraph::new();
    graph.parameter("d", Value::Integer(2));
    graph.run(
        "CREATE VECTOR INDEX near IF NOT EXISTS FOR (m:`A`) ON m.`v` OPTIONS { indexConfig: \
         {`vector.dimensions`: toInteger($d), `vector.similarity_function`: 'cosine'}}",
    );
    graph.run("CREATE VECTOR INDEX FOR ()-[r:R]-() ON (r.v) OPTIONS {indexConfig: {`vector.similarity_function`: 'euclidean'}}");
    graph.run(
        "CREATE (a:A {n: 1, v: [1, 0.0]}), (b:A:B {n: 2, v: [0.0, 2.0]}), (c:A {n: 3, v: [1.0, 1.0]}), \
         (:A {n: 4}), (:A {n: 5, v: [1.0]}), (:A {n: 6, v: 'x'}), (:A {n: 7, v: [0, 0]}), \
         (:B {n: 8, v: [1.0, 0.0]}), (a)-[:R {v: [1, 2, 3]}]->(b), (b)-[:R {v: [1, 2, 5]}]->(c)",
    );
    graph
}

#[test]
fn the_nearest_are_found() {
    let mut graph = graph();
    let nearest = |graph: &mut TestGraph, count: usize| {
        let rows = graph.run(&format!(
            "CALL db.index.vector.queryNodes('near', {count}, [3, 0]) YIELD node, score \
             RETURN node.n, round(score, 2)"
        ));
        rows.rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(nearest(&mut graph, 2), ["1 1.0", "3 0.85"]);
    assert_eq!(nearest(&mut graph, 10), ["1 1.0", "3 0.85", "2 0.5"]);
    let name =
        graph.column("SHOW VECTOR INDEXES YIELD name, entityType WHERE entityType <> 'NODE'");
    let rows = graph.run(&format!(
        "CALL db.index.vector.queryRelationships('{}', 5, [1, 2, 3]) YIELD relationship AS r, score \
         RETURN r.v, score",
        name[0]
    ));
    assert_eq!(rows.rows, [["[1,2,3]", "1.0"], ["[1,2,5]", "0.2"]]);
    // What the transaction writes is found at once.
    let rows = graph.run(
        "CREATE (:A {n: 9, v: [3, 0]}) WITH 1 AS x \
         CALL db.index.vector.queryNodes('near', 2, [3, 0]) YIELD node RETURN node.n ORDER BY node.n",
    );
    assert_eq!(rows.rows, [["1"], ["9"]]);
}

#[test]
fn many_are_compared_within_the_budget() {
    let mut graph = graph();
    graph.run("UNWIND range(1, 2000) AS i CREATE (:A {n: 100 + i, v: [i, 2000 - i]})");
    let text = "CALL db.index.vector.queryNodes('near', 3, [2000, 0]) YIELD node RETURN node.n";
    assert_eq!(graph.column(text), ["1", "2100", "2099"]);
    let budget = Budget::new(2_000, 1 << 20, || None);
    assert!(graph.attempt_within(text, budget).is_err());
}

#[test]
fn searches_that_do_not_fit_are_refused() {
    let mut graph = graph();
    graph.run("CREATE INDEX range FOR (n:A) ON (n.v)");
    for wrong in [
        "'near', 0, [1, 2]",
        "'near', 5, [1, 2, 3]",
        "'near', 5, []",
        "'near', 5, ['x', 'y']",
        "'far', 5, [1, 2]",
        "'range', 5, [1, 2]",
    ] {
        let text = format!("CALL db.index.vector.queryNodes({wrong})");
        assert!(graph.attempt(&text).is_err(), "{text}");
    }
    let error = graph.attempt("CALL db.index.vector.queryRelationships('near', 5, [1, 2])");
    assert!(error.is_err());
    for wrong in [
        "CREATE VECTOR INDEX FOR (n:C) ON (n.v, n.w)",
        "CREATE VECTOR INDEX FOR (n:C) ON (n.v) OPTIONS {indexConfig: {`vector.dimensions`: 0}}",
        "CREATE VECTOR INDEX FOR (n:C) ON (n.v) OPTIONS {indexConfig: {`vector.dimensions`: 9999}}",
        "CREATE VECTOR INDEX FOR (n:C) ON (n.v) OPTIONS {indexConfig: {`vector.similarity_function`: 'x'}}",
        "CREATE VECTOR INDEX other FOR (n:A) ON (n.v)",
        "CREATE VECTOR INDEX $missing FOR (n:C) ON (n.v)",
    ] {
        assert!(graph.attempt(wrong).is_err(), "{wrong}");
    }
    // An equality is not looked up in it.
    assert_eq!(graph.column("MATCH (n:A {v: [1, 1]}) RETURN n.n"), ["3"]);
}

#[test]
fn they_are_shown_and_dropped() {
    let mut graph = graph();
    let shown = graph.run(
        "SHOW VECTOR INDEXES YIELD name, type, labelsOrTypes, properties, options, createStatement \
         WHERE name = 'near' RETURN name, type, labelsOrTypes, properties, \
         options.indexConfig['vector.dimensions'], \
         options.indexConfig['vector.similarity_function'], createStatement",
    );
    let statement = "CREATE VECTOR INDEX `near` FOR (n:`A`) ON (n.`v`) OPTIONS {indexConfig: \
                     {`vector.similarity_function`: 'COSINE', `vector.dimensions`: 2}}";
    assert_eq!(shown.rows, [["near", "VECTOR", "[A]", "[v]", "2", "COSINE", statement]]);
    graph.parameter("name", "near");
    assert_eq!(graph.run("DROP INDEX $name").statistics.indexes_removed, 1);
    graph.run(statement);
    graph.run("DROP INDEX near IF EXISTS");
    graph.run("DROP INDEX near IF EXISTS");
    assert!(graph.attempt("CALL db.index.vector.queryNodes('near', 1, [1, 2])").is_err());
}
