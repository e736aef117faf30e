//! Joins by value and searches of lists: what they cost, and that tables change no answer.

use super::graph::TestGraph;
use wellspring_cypher::context::Budget;
use wellspring_cypher::value::Value;

fn many(count: u32) -> TestGraph {
    TestGraph::of(&[&format!(
        "UNWIND range(1, {count}) AS i CREATE (:Big {{i: i, s: 'n' + toString(i), t: i % 7}})"
    )])
}

#[test]
fn joins_and_searches_do_not_multiply() {
    let mut graph = many(2_000);
    let wanted = (1_000_000..1_002_000).chain([5, 6]).map(Value::Integer).collect();
    graph.parameter("l", Value::list(wanted));
    for (text, expected) in [
        ("MATCH (a:Big), (b:Big) WHERE a.i = b.i RETURN count(*)", "2000"),
        ("MATCH (a:Big), (b:Big) WHERE b.i <= 500 AND a.i = b.i + 1 RETURN count(*)", "500"),
        ("MATCH (a:Big), (b:Big) WHERE a.i + 1 = b.i RETURN count(*)", "1999"),
        ("MATCH (a:Big), (b:Big) WHERE a.i + 1 = b.i * 2 RETURN count(*)", "1000"),
        ("MATCH (a:Big), (b:Big) WHERE a.s = 'n' + toString(b.i) RETURN count(*)", "2000"),
        ("MATCH (a:Big), (b:Big) WHERE a.t = b.t AND a.i = b.i RETURN count(*)", "2000"),
        ("MATCH (a:Big), (b:Big {i: a.i + 1}) RETURN count(*)", "1999"),
        ("MATCH (a:Big) OPTIONAL MATCH (b:Big) WHERE b.i = a.i + 1 RETURN count(b)", "1999"),
        (
            "MATCH (a:Big) WHERE EXISTS { MATCH (b:Big) WHERE b.i = a.i + 1 } RETURN count(a)",
            "1999",
        ),
        ("UNWIND range(1, 2000) AS i MATCH (b:Big {i: i}) RETURN count(b)", "2000"),
        (
            "UNWIND range(1, 2000) AS i MATCH (b:Big) WHERE b.i = i SET b.x = 1 RETURN count(b)",
            "2000",
        ),
        ("MATCH (b:Big) WHERE b.i IN $l RETURN count(b)", "2"),
        ("MATCH (b:Big) WHERE NOT b.i IN $l RETURN count(b)", "1998"),
        ("MATCH (b:Big) WHERE b.i IN range(1, 4000, 2) RETURN count(b)", "1000"),
        ("WITH range(1, 2000) AS l RETURN size([x IN l WHERE x IN $l])", "2"),
        ("UNWIND range(1, 200000) AS i RETURN count(i)", "200000"),
        ("RETURN reduce(s = 0, i IN range(1, 100000) | s + i)", "5000050000"),
    ] {
        let steps = if text.contains("000) AS i RETURN") || text.contains("reduce") {
            1_000_000
        } else {
            100_000
        };
        let outcome = graph.attempt_within(text, Budget::new(steps, 4 << 20, || None));
        let rows = outcome.unwrap_or_else(|error| panic!("{text}: {error}")).rows;
        assert_eq!(rows, [[expected]], "{text}");
    }
}

/// Values of all kinds, some of which equal others that look different, or not even themselves.
const VALUES: &str = "[1, 1.0, 2, '1', true, null, 0.0/0.0, -0.0, 0, [1, 2], [1, 2.0], [null],
    date('2020-01-01'), datetime('2020-01-01T00:00Z'), datetime('2020-01-01T01:00+01:00'),
    duration({days: 1}), duration({hours: 24}), point({x: 1, y: 2}), 9007199254740993,
    9007199254740992.0, localdatetime('2020-01-01T00:00')]";

#[test]
fn a_table_finds_what_a_scan_finds() {
    // Those that a property can have.
    let stored =
        VALUES.replace("null, ", "").replace("[null],", "").replace("[1, 2.0]", "[1.0, 2.0]");
    let mut graph = TestGraph::of(&[&format!("UNWIND {stored} AS v CREATE (:V {{v: v}})")]);
    for condition in ["a.v = b.v", "a.v + 1 = b.v", "[a.v] = [b.v]", "a.v = b.v AND a.v = b.v"] {
        let joined = format!("MATCH (a:V), (b:V) WHERE {condition} RETURN count(*)");
        // OR keeps the condition from being used for anything but a filter.
        let scanned = format!("MATCH (a:V), (b:V) WHERE {condition} OR false RETURN count(*)");
        match (graph.attempt(&joined), graph.attempt(&scanned)) {
            (Ok(joined), Ok(scanned)) => assert_eq!(joined.rows, scanned.rows, "{condition}"),
            (joined, scanned) => assert!(joined.is_err() && scanned.is_err(), "{condition}"),
        }
    }
}

#[test]
fn a_set_contains_what_a_list_contains() {
    let mut graph = TestGraph::new();
    for extra in ["", ", null"] {
        // The first search looks at each item; from the second on there is a set.
        let items = format!("{VALUES}[0..19] + {VALUES}[19..] {}", extra.replace(", ", "+ "));
        let text = format!(
            "WITH {items} AS l UNWIND {VALUES} AS v
             WITH l, v, v IN l AS found, any(x IN l WHERE x = v) AS one
             RETURN count(CASE WHEN coalesce(found, 'none') = coalesce(one, 'none') THEN 1 END)"
        );
        assert_eq!(graph.column(&text), ["21"], "{extra}");
    }
}

#[test]
fn a_table_is_made_again_after_a_write() {
    let mut graph = TestGraph::of(&["CREATE (:A {i: 1}), (:A {i: 2})"]);
    let made =
        graph.column("UNWIND [1, 2, 3, 3, 4, 4] AS i MERGE (a:A {i: i}) RETURN count(DISTINCT a)");
    assert_eq!(made, ["4"]);
    assert_eq!(graph.column("MATCH (a:A) RETURN count(a)"), ["4"]);
}

#[test]
fn an_expression_that_fails_for_others_is_asked_only_where_it_matters() {
    let mut graph =
        TestGraph::of(&["CREATE (:F {i: 1, s: 1}), (:F {i: 2, s: true}), (:F {i: 3, s: 3})"]);
    let text =
        "MATCH (a:F), (b:F) WHERE b.i <> 2 AND a.i <> 2 AND a.s + 1 = b.s + 1 RETURN count(*)";
    assert_eq!(graph.column(text), ["2"]);
}
