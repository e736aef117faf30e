//! Full-text indexes.

use crate::graph::TestGraph;
use wellspring_cypher::context::Budget;

fn graph() -> TestGraph {
    TestGraph::of(&[
        "CREATE FULLTEXT INDEX found IF NOT EXISTS FOR (n:Person|Place) ON EACH [n.name, n.about]",
        "CREATE FULLTEXT INDEX edges FOR ()-[e:KNOWS]-() ON EACH [e.fact, e.group_id]",
        "CREATE (a:Person {n: 1, name: 'Ada Lovelace', about: 'wrote the first program'}), \
         (b:Person:Place {n: 2, name: 'Lovelace', about: ['a crater', 'on the moon']}), \
         (c:Place {n: 3, name: 'London', about: 5}), (:Other {n: 4, name: 'Ada'}), (:Person {n: 5}), \
         (a)-[:KNOWS {fact: 'Ada lives in London', group_id: 'g-1'}]->(c), \
         (b)-[:KNOWS {fact: 'Ada was here', group_id: 'g-2'}]->(c)",
    ])
}

fn found(graph: &mut TestGraph, question: &str) -> String {
    graph.parameter("q", question);
    let text = "CALL db.index.fulltext.queryNodes('found', $q) YIELD node, score RETURN node.n";
    graph.column(text).join(" ")
}

#[test]
fn nodes_are_found_by_their_words() {
    let mut graph = graph();
    for (question, numbers) in [
        ("ada", "1"),
        ("lovelace", "1 2"),
        ("LOVELACE AND program", "1"),
        ("name:moon", ""),
        ("about:moon", "2"),
        ("\"first program\"", "1"),
        ("\"crater on\"", ""),
        ("lond*", "3"),
        ("lodnon~", "3"),
        ("london OR crater", "3 2"),
        ("nothing", ""),
        ("", ""),
    ] {
        assert_eq!(found(&mut graph, question), numbers, "{question}");
    }
    graph.run("MATCH (n {n: 3}) SET n.name = 'Ada'");
    assert_eq!(found(&mut graph, "ada"), "3 1");
    // What the transaction writes is found at once, each node once.
    let written = "CREATE (:Person:Place {n: 6, name: 'Zoe'}) WITH 1 AS x \
         CALL db.index.fulltext.queryNodes('found', 'zoe') YIELD node RETURN node.n";
    assert_eq!(graph.column(written), ["6"]);
}

#[test]
fn relationships_are_found_as_graphiti_asks() {
    let mut graph = graph();
    let asked = "CALL db.index.fulltext.queryRelationships('edges', $query, {limit: 10}) \
         YIELD relationship AS rel, score \
         MATCH (n)-[e:KNOWS]->(m) WHERE e.fact = rel.fact RETURN e.fact, score > 0";
    graph.parameter("query", "group_id:\"g-1\" AND (ada here)");
    assert_eq!(graph.run(asked).rows, [["Ada lives in London", "true"]]);
    graph.parameter("query", "group_id:\"g-1\" OR group_id:\"g-2\" AND (here)");
    assert_eq!(graph.run(asked).rows, [["Ada was here", "true"]]);
}

#[test]
fn a_window_of_the_answers_is_returned() {
    let mut graph = graph();
    graph.run("UNWIND range(10, 30) AS n CREATE (:Place {n: n, name: 'same'})");
    let mut window = |options: &str| {
        let text = format!(
            "CALL db.index.fulltext.queryNodes('found', 'same', {options}) YIELD node RETURN node.n"
        );
        graph.column(&text).join(" ")
    };
    assert_eq!(window("{limit: 2}"), "10 11");
    assert_eq!(window("{skip: 19}"), "29 30");
    assert_eq!(window("{skip: 5, limit: 1, analyzer: 'english'}"), "15");
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut graph = graph();
    for wrong in [
        "queryNodes('none', 'a')",
        "queryNodes('edges', 'a')",
        "queryNodes('found', '(a')",
        "queryNodes('found', 5)",
        "queryNodes('found', 'a', {limit: -1})",
        "queryNodes('found', 'a', 5)",
        "queryRelationships('found', 'a')",
    ] {
        let text = format!("CALL db.index.fulltext.{wrong}");
        let error = graph.attempt(&text).unwrap_err();
        assert!(error.code().starts_with("Neo.ClientError."), "{text}: {error}");
    }
    let budget = Budget::new(20, 1 << 20, || None);
    let text = "CALL db.index.fulltext.queryNodes('found', 'ada')";
    assert!(graph.attempt_within(text, budget).is_err());
    assert_eq!(
        graph.column("SHOW FULLTEXT INDEXES YIELD createStatement")[0],
        "CREATE FULLTEXT INDEX `edges` FOR ()-[r:`KNOWS`]-() ON EACH [r.`fact`, r.`group_id`]"
    );
    assert_eq!(
        graph.column(
            "SHOW INDEXES YIELD name, labelsOrTypes, type WHERE name = 'found' RETURN labelsOrTypes"
        ),
        ["[Person,Place]"]
    );
}
