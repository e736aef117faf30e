//! Statements of random pieces: they never panic, and they end.

use super::graph::TestGraph;
use proptest::prelude::*;
use wellspring_cypher::context::Budget;

/// Pieces of statements, chosen so that many combinations parse.
const PIECES: &[&str] = &[
    "MATCH",
    "OPTIONAL MATCH",
    "WHERE",
    "RETURN",
    "WITH",
    "UNWIND",
    "CREATE",
    "MERGE",
    "SET",
    "REMOVE",
    "DELETE",
    "DETACH DELETE",
    "ORDER BY",
    "SKIP",
    "LIMIT",
    "UNION",
    "UNION ALL",
    "DISTINCT",
    "AS",
    "CALL",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "(n)",
    "(n:A)",
    "(m:B {i: 1})",
    "(n:$(",
    ":$any(",
    "n:A:$('B')",
    "-[:$('K')]->",
    "->+",
    "->*",
    "SHOW INDEXES",
    "SHOW DATABASE x",
    "SHOW FUNCTIONS",
    "YIELD",
    "name",
    "LOAD CSV FROM",
    "apoc.meta.data()",
    "apoc.merge.node(['A'], {i: 1})",
    "db.index.fulltext.queryNodes('f', 'a')",
    "CREATE FULLTEXT INDEX f FOR (n:A|B) ON EACH [n.i]",
    "CREATE VECTOR INDEX FOR (n:A) ON (n.i) OPTIONS",
    "DROP INDEX",
    "-->",
    "<--",
    "--",
    "-[r]->",
    "-[:K*]->",
    "-[s:K*0..2]-",
    "-[:K|L]-",
    "n",
    "m",
    "r",
    "x",
    "p =",
    "n.i",
    "m.i = 1",
    "n:A",
    "1",
    "0",
    "-1",
    "2.5",
    "'a'",
    "null",
    "true",
    "$p",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "=",
    "<>",
    "<",
    ">=",
    "AND",
    "OR",
    "XOR",
    "NOT",
    "IN",
    "STARTS WITH",
    "CONTAINS",
    "IS NULL",
    "IS NOT NULL",
    ",",
    "|",
    ":",
    ".",
    "..",
    "count(*)",
    "count(n)",
    "collect(n.i)",
    "sum(x)",
    "[1, 2, 3]",
    "[x IN [1, 2] | x]",
    "[(n)-->(m) | m.i]",
    "{a: 1}",
    "range(0, 3)",
    "size(",
    "keys(n)",
    "EXISTS { (n)-->() }",
    "COUNT { (n)--(m) }",
    "CASE WHEN",
    "CASE n.i WHEN",
    "THEN",
    "ELSE",
    "END",
    "all(x IN [1] WHERE x > 0)",
    "reduce(a = 0, x IN [1, 2] | a + x)",
    "shortestPath((n)-[*]-(m))",
    "FOREACH (x IN [1] |",
    "ON CREATE SET",
    "ON MATCH SET",
    "=~",
    ";",
    "//",
    "/*",
    "`",
    "'",
    "\"",
    "\\",
    "é",
    "\u{a0}",
    "CALL db.labels() YIELD label",
    "CALL (n) {",
    "EXPLAIN",
    "CREATE INDEX FOR (n:A) ON (n.i)",
    "DROP INDEX i",
    "date('2020-01-01')",
    "duration('P1D')",
    "n {.*, i: 1}",
    "id(n)",
    "n = m",
    "n += {a: 1}",
    "CALL { WITH n",
];

fn graph() -> TestGraph {
    let mut graph = TestGraph::of(&[
        "CREATE (a:A {i: 1})-[:K]->(b:B {i: 1})-[:L]->(c:A {i: 2})-[:K]->(a), (b)-[:K]->(b), (:C)",
    ]);
    graph.parameter("p", 1);
    graph
}

fn run(text: &str) -> bool {
    graph().attempt_within(text, Budget::new(20_000, 1 << 20, || None)).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_in_any_order(pieces in prop::collection::vec(prop::sample::select(PIECES), 1..14)) {
        run(&pieces.join(" "));
    }

    #[test]
    fn statements_with_a_piece_put_in_or_taken_out(
        which in 0..STATEMENTS.len(),
        at in 0_usize..200,
        taken in 0_usize..12,
        piece in prop::sample::select(PIECES),
    ) {
        let text: Vec<char> = STATEMENTS[which].chars().collect();
        let at = at % text.len();
        let rest = (at + taken).min(text.len());
        let (before, after): (String, String) = (text[..at].iter().collect(), text[rest..].iter().collect());
        run(&format!("{before} {piece} {after}"));
        run(&format!("{before}{after}"));
    }

    #[test]
    fn any_characters(text in "\\PC{0,40}") {
        run(&text);
        run(&format!("RETURN {text}"));
        run(&format!("MATCH (n {text}) RETURN n"));
    }
}

const STATEMENTS: &[&str] = &[
    "MATCH p = (n:A {i: 1})-[r:K*1..2 {w: 1}]->(m)<--(x) WHERE n.i < 3 AND NOT (n)-->(m) RETURN p, r, count(*) AS c ORDER BY c DESC LIMIT 2",
    "UNWIND [1, 2, $p] AS x MERGE (n:D {i: x}) ON CREATE SET n.a = x ON MATCH SET n += {b: [x, 2]} RETURN n.i, labels(n)",
    "MATCH (n)-[r]-(m) WITH n, collect(DISTINCT m.i)[0..2] AS l, count(r) + 1 AS c WHERE c > 0 SET n.c = c REMOVE n:A DELETE r RETURN *",
    "MATCH (n:A) CALL { WITH n MATCH (n)-->(m) RETURN m.i AS i UNION RETURN 1 AS i } RETURN [x IN collect(i) WHERE x > 0 | x ^ 2] AS s",
    "OPTIONAL MATCH (n:Z) FOREACH (x IN range(1, 3) | CREATE (:E {i: x})-[:R]->(:F)) RETURN CASE WHEN n IS NULL THEN 'a' ELSE n.i END AS v",
    "MATCH (a:A), (b:B) RETURN shortestPath((a)-[*..3]-(b)) AS p, EXISTS { MATCH (a)--(x) WHERE x.i = b.i RETURN x } AS e",
    "RETURN all(x IN [1, 2] WHERE x > 0) AND 'abc' STARTS WITH 'a' OR 1 IN [1, null] XOR (1 < 2 <= 3) AS v UNION ALL RETURN {a: 1}.a AS v",
    "CREATE CONSTRAINT c IF NOT EXISTS FOR (n:A) REQUIRE (n.i, n.j) IS UNIQUE",
    "UNWIND ['A', 'B'] AS l MERGE (n:N:$(l) {i: 1})-[r:$(l + 'x')]->(m:$([l])) SET n:C:$(l), m.i = 2 REMOVE n:$any([l]), n['i'] RETURN n:$all(labels(m))",
    "SHOW UNIQUE CONSTRAINTS YIELD name AS n, type, `options` ORDER BY n SKIP 1 LIMIT 5 WHERE type = 'x' RETURN n, count(*) AS c",
    "CREATE VECTOR INDEX $p IF NOT EXISTS FOR (n:A) ON (n.i) OPTIONS {indexConfig: {`vector.dimensions`: toInteger(3), `vector.similarity_function`: 'cosine', x: [1, {y: 2}]}}",
    "LOAD CSV WITH HEADERS FROM 'file:///a.csv' AS row FIELDTERMINATOR ';' MATCH (n:A)-[:K]->+(m) WHERE n.i = row.i RETURN row, m",
    "MATCH (n) DETACH DELETE n WITH count(*) AS c CREATE (m:A $q) RETURN c, m {.i, .*, x: 1}",
];

#[test]
fn the_statements_are_good_for_something() {
    let good = STATEMENTS.iter().filter(|text| run(text)).count();
    assert!(good >= 5, "{good} of {} run", STATEMENTS.len());
}
