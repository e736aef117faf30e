//! Indexes and constraints are used and shown.

use super::graph::TestGraph;
use wellspring_cypher::context::Budget;

#[test]
fn an_index_of_several_keys_is_used_when_all_are_equal() {
    let mut graph = TestGraph::of(&[
        "UNWIND range(0, 9999) AS i CREATE (:N {a: i % 10, b: i / 10, c: i})",
        "CREATE INDEX FOR (n:N) ON (n.b, n.a)",
    ]);
    graph.parameter("b", 77);
    for (text, expected) in [
        ("MATCH (n:N {a: 3, b: 77}) RETURN n.c", "773"),
        ("MATCH (n:N {a: 3.0, b: $b, c: 773}) RETURN n.c", "773"),
        ("MATCH (n:N) WHERE n.b = $b AND n.a = 3 RETURN n.c", "773"),
        ("UNWIND [77] AS b MATCH (n:N {b: b, a: 3}) RETURN n.c", "773"),
        ("MERGE (n:N {a: 3, b: 77}) RETURN n.c", "773"),
        ("MATCH (n:N {a: 3, b: 77, c: 774}) RETURN count(n)", "0"),
        ("MATCH (n:N {a: 3, b: null}) RETURN count(n)", "0"),
        ("MATCH (n:N {a: 3, b: 1000}) RETURN count(n)", "0"),
    ] {
        let most =
            || Budget::new(if text.contains("null") { 100_000 } else { 300 }, u64::MAX, || None);
        let outcome =
            graph.attempt_within(text, most()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(outcome.rows, [[expected]], "{text}");
    }
    // Not all keys are given, so the nodes are scanned.
    assert_eq!(graph.column("MATCH (n:N {b: 77}) RETURN count(n)"), ["10"]);
}

#[test]
fn an_index_of_relationships_is_used_when_they_are_what_is_known() {
    let mut graph = TestGraph::of(&[
        "UNWIND range(0, 4999) AS i CREATE ({i: i})-[:T {k: i}]->({j: i})",
        "CREATE INDEX FOR ()-[r:T]-() ON (r.k)",
    ]);
    graph.parameter("k", 77);
    for text in [
        "MATCH (a)-[:T {k: $k}]->(b) RETURN a.i",
        "MATCH (a)-[r:T]->() WHERE r.k = 77.0 RETURN a.i",
        "MATCH ()<-[r:T {k: 77}]-(a {i: 77}) RETURN a.i",
        "UNWIND [77] AS k MATCH (a)-[r:T {k: k}]->(b) RETURN a.i",
    ] {
        let most = Budget::new(300, u64::MAX, || None);
        let outcome =
            graph.attempt_within(text, most).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(outcome.rows, [["77"]], "{text}");
    }
    for text in [
        "MATCH (a)-[:T {k: null}]->() RETURN count(a)",
        "MATCH (a)-[:T {k: 77, l: 1}]->() RETURN count(a)",
        "MATCH (a)-[r:T]->() WHERE r.k = {a: 1} RETURN count(a)",
    ] {
        assert_eq!(graph.column(text), ["0"], "{text}");
    }
    assert_eq!(graph.column("MATCH (a)-[:T {k: 77}]-(b) RETURN count(a)"), ["2"]);
}

#[test]
fn indexes_and_constraints_are_shown() {
    let mut graph = TestGraph::of(&[
        "CREATE INDEX i FOR (n:N) ON (n.b, n.a)",
        "CREATE INDEX j FOR ()-[r:T]-() ON (r.k)",
        "CREATE CONSTRAINT u FOR (n:N) REQUIRE n.a IS UNIQUE",
        "CREATE CONSTRAINT x FOR ()-[r:T]-() REQUIRE r.k IS NOT NULL",
    ]);
    let all = graph.run("SHOW INDEXES");
    let rows = [
        ["i", "ONLINE", "100.0", "RANGE", "NODE", "[N]", "[b,a]", "range-1.0", "null"],
        ["j", "ONLINE", "100.0", "RANGE", "RELATIONSHIP", "[T]", "[k]", "range-1.0", "null"],
        ["u", "ONLINE", "100.0", "RANGE", "NODE", "[N]", "[a]", "range-1.0", "u"],
    ];
    let shown: Vec<&[String]> = all.rows.iter().map(|row| &row[1..10]).collect();
    assert_eq!(shown, rows);
    let brief: Vec<Vec<String>> = graph.run("SHOW ALL INDEXES YIELD *;").rows;
    assert!(brief.iter().zip(&all.rows).all(|(row, brief)| row[..12] == brief[..]));
    let some = graph.run("SHOW CONSTRAINTS YIELD name AS n, type WHERE type <> 'UNIQUENESS'");
    assert_eq!(some.columns, ["n", "type"]);
    assert_eq!(some.rows, [["x", "RELATIONSHIP_PROPERTY_EXISTENCE"]]);
    let some =
        graph.run("SHOW INDEXES YIELD name, labelsOrTypes AS l RETURN l, count(*) AS c ORDER BY c");
    assert_eq!(some.rows, [["[T]", "1"], ["[N]", "2"]]);
    assert_eq!(graph.run("SHOW INDEX WHERE owningConstraint IS NULL").rows.len(), 2);
    assert_eq!(graph.column("SHOW CONSTRAINTS YIELD ownedIndex"), ["u", "null"]);
    graph.run("EXPLAIN SHOW INDEXES");
    for wrong in ["SHOW INDEXES YIELD nam", "SHOW INDEXES LIMIT 1", "SHOW SLOW INDEXES"] {
        let error = graph.attempt(wrong).unwrap_err();
        assert!(error.place.is_some(), "{wrong}: {error}");
    }
}

#[test]
fn what_breaks_a_constraint_is_told() {
    let mut graph = TestGraph::of(&[
        "CREATE CONSTRAINT u FOR (n:N) REQUIRE (n.a, n.b) IS UNIQUE",
        "CREATE (:N {a: 'x', b: 2.5})",
    ]);
    let error = graph.attempt("CREATE (:N {a: 'x', b: 2.5, c: 1})").unwrap_err();
    let what = "Node(0) already exists with label `N` and properties `a` = 'x', `b` = 2.5: node 1 would violate constraint 'u'";
    assert_eq!(error.message, what);
}
