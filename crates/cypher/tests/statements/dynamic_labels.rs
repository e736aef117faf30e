//! Labels and types from expressions.

use crate::graph::TestGraph;
use wellspring_cypher::value::Value;

fn strings(texts: &[&str]) -> Value {
    Value::list(texts.iter().map(Value::string).collect())
}

#[test]
fn labels_are_set_and_removed() {
    let mut graph = TestGraph::of(&["CREATE (:A {n: 1}), (:A {n: 2})"]);
    graph.parameter("one", "B c").parameter("some", strings(&["C", "D", "C"]));
    graph.run("MATCH (n {n: 1}) SET n:$($one), n.m = 5, n:X:$($some)");
    let labels = "MATCH (n) RETURN labels(n) ORDER BY n.n";
    assert_eq!(graph.column(labels), ["[A,B c,X,C,D]", "[A]"]);
    let removed = graph.run("MATCH (n {n: 1}) REMOVE n.m, n:$($some), n:X:$('A') RETURN n.m");
    assert_eq!(removed.rows, [["null"]]);
    assert_eq!(removed.statistics.labels_removed, 4);
    assert_eq!(graph.column(labels), ["[B c]", "[A]"]);
    graph
        .run("UNWIND [{t: 'E'}] AS row MERGE (n:F) ON CREATE SET n:$(row.t) ON MATCH SET n:$('G')");
    graph
        .run("UNWIND [{t: 'E'}] AS row MERGE (n:F) ON CREATE SET n:$(row.t) ON MATCH SET n:$('G')");
    assert_eq!(graph.column("MATCH (n:F) RETURN labels(n)"), ["[F,E,G]"]);
    graph.run(
        "MATCH (n:F) FOREACH (l IN ['H', 'I'] | SET n:$(l)) FOREACH (l IN ['E'] | REMOVE n:$(l))",
    );
    assert_eq!(graph.column("MATCH (n:F) RETURN labels(n)"), ["[F,G,H,I]"]);
    graph.run("OPTIONAL MATCH (n:None) SET n:$('Z')");
    graph.run("MATCH (n:F) SET n:$([])");
    assert_eq!(graph.column("MATCH (n:Z) RETURN n").len(), 0);
    for wrong in ["null", "5", "['a', 5]", "''", "[null]"] {
        assert!(graph.attempt(&format!("MATCH (n:F) SET n:$({wrong})")).is_err(), "{wrong}");
    }
    assert!(graph.attempt("CREATE ()-[r:R]->() SET r:$('A')").is_err());
}

#[test]
fn nodes_and_relationships_are_created() {
    let mut graph = TestGraph::new();
    graph.parameter("type", "LIKES");
    let created = graph.run(
        "UNWIND ['B', 'C'] AS l CREATE (a:A:$(l) {k: l})-[r:$($type) {w: 1}]->(:$([l, 'D'])) \
         RETURN labels(a), type(r)",
    );
    assert_eq!(created.rows, [["[A,B]", "LIKES"], ["[A,C]", "LIKES"]]);
    assert_eq!(graph.column("MATCH (n:D) RETURN labels(n)"), ["[B,D]", "[D,C]"]);
    for wrong in
        ["CREATE ()-[:$(['A', 'B'])]->()", "CREATE ()-[:$(null)]->()", "CREATE ()-[:$([])]->()"]
    {
        assert!(graph.attempt(wrong).is_err(), "{wrong}");
    }
    for wrong in [
        "MATCH (n) CREATE (n:$('X'))",
        "CREATE (n:$any(['X']))",
        "CREATE ()-[:A|$('B')]->()",
        "CREATE (n:A|$('B'))",
        "CREATE (n:$(n.k))",
        "CREATE ()-[:$('A')*2]->()",
    ] {
        assert!(graph.attempt(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn patterns_are_merged() {
    let mut graph = TestGraph::new();
    for _ in 0..2 {
        graph.run("UNWIND ['A', 'B', 'A'] AS l MERGE (n:N:$(l) {k: 1})");
        graph.run("MATCH (a:A), (b:B) MERGE (a)-[:$('T')]->(b) MERGE (a)-[:$('U')]->(b)");
    }
    assert_eq!(graph.column("MATCH (n) RETURN labels(n)"), ["[N,A]", "[N,B]"]);
    assert_eq!(graph.column("MATCH ()-[r]->() RETURN type(r)"), ["T", "U"]);
    assert!(graph.attempt("MERGE (n:$(null))").is_err());
}

#[test]
fn patterns_are_matched() {
    let mut graph = TestGraph::of(&[
        "CREATE (a:A {n: 1})-[:R]->(b:A:B {n: 2})-[:S]->(c:C {n: 3}), (c)-[:T]->(a)",
    ]);
    graph.parameter("labels", strings(&["A", "B"]));
    let mut numbers = |text: &str| graph.column(text).join(" ");
    assert_eq!(numbers("MATCH (n:$('A')) RETURN n.n ORDER BY n.n"), "1 2");
    assert_eq!(numbers("MATCH (n:$($labels)) RETURN n.n"), "2");
    assert_eq!(numbers("MATCH (n:$all($labels)) RETURN n.n"), "2");
    assert_eq!(numbers("MATCH (n:$any($labels + 'C')) RETURN n.n ORDER BY n.n"), "1 2 3");
    assert_eq!(numbers("MATCH (n:A&!$('B')) RETURN n.n"), "1");
    assert_eq!(numbers("MATCH (n:C|$('B')) RETURN n.n ORDER BY n.n"), "2 3");
    assert_eq!(numbers("MATCH (n:$('None')) RETURN n.n"), "");
    assert_eq!(numbers("MATCH (n:$(null)) RETURN n.n"), "");
    assert_eq!(numbers("MATCH (n:$([])) RETURN count(n)"), "3");
    assert_eq!(numbers("MATCH (n:$any([])) RETURN count(n)"), "0");
    assert_eq!(numbers("MATCH (n)-[:$('R')]->(m) RETURN m.n"), "2");
    assert_eq!(numbers("MATCH (n)-[:$any(['R', 'T'])]->(m) RETURN m.n ORDER BY m.n"), "1 2");
    assert_eq!(numbers("MATCH (n)-[:$(['R', 'T'])]->(m) RETURN m.n"), "");
    assert_eq!(numbers("MATCH (n)-[r:R|$('S')]->(m) RETURN m.n ORDER BY m.n"), "2 3");
    assert_eq!(numbers("MATCH (n) WHERE n:$('B') RETURN n.n"), "2");
    assert_eq!(numbers("MATCH (n) RETURN n:$any(['B', 'C']) ORDER BY n.n"), "false true true");
    assert_eq!(numbers("UNWIND ['A', 'C'] AS l MATCH (n:$(l)) RETURN count(n)"), "3");
    assert_eq!(numbers("MATCH (n {n: 1}), (m:$(labels(n))) RETURN m.n ORDER BY m.n"), "1 2");
    assert_eq!(numbers("OPTIONAL MATCH (n:None) RETURN n:$('A')"), "null");
    assert!(graph.attempt("MATCH (n:$(1)) RETURN n").is_err());
}
