//! Ends of chains of variable length: with and without trying every chain.

use super::graph::TestGraph;
use proptest::prelude::*;
use wellspring_cypher::context::Budget;

/// A ladder of diamonds: as many chains as two to the power of their number.
fn ladder(diamonds: u32) -> TestGraph {
    TestGraph::of(&[
        &format!("UNWIND range(0, {diamonds}) AS i CREATE (:J {{i: i}})"),
        "MATCH (a:J), (b:J) WHERE b.i = a.i + 1
         CREATE (a)-[:R]->(:M)-[:R]->(b), (a)-[:R]->(:M)-[:R]->(b)",
    ])
}

#[test]
fn ends_that_are_asked_for_once_take_no_more_steps_than_the_graph_has() {
    let mut graph = ladder(40);
    for (text, expected) in [
        ("MATCH (:J {i: 0})-[:R*]->(q) RETURN count(DISTINCT q)", "120"),
        ("MATCH (:J {i: 0})-[:R*0..80]->(q) RETURN count(DISTINCT q.i)", "41"),
        ("MATCH (:J {i: 40})<-[:R*]-(q) RETURN count(DISTINCT q)", "120"),
        ("MATCH (:J {i: 0})-[:R*]-(q) RETURN count(DISTINCT q)", "121"),
        ("MATCH p = (:J {i: 0})-[:R*]->(q) RETURN count(DISTINCT q)", "120"),
        ("MATCH (:J {i: 0})-[:R*]->(q) WITH DISTINCT q RETURN count(*)", "120"),
        ("MATCH (:J {i: 0})-[:R*]->(q:J) WHERE (q)-->() RETURN max(q.i)", "39"),
        (
            "MATCH (:J {i: 0})-[:R*]->(q:J) MATCH (q)-[:R*]->(z) RETURN size(collect(DISTINCT z.i))",
            "39",
        ),
        ("OPTIONAL MATCH (:J {i: 0})-[:R*]->(q) RETURN count(DISTINCT q)", "120"),
        ("MATCH (a:J {i: 0}), (b:J {i: 40}) RETURN EXISTS { (b)-[:R*]->(a) }", "false"),
        (
            "MATCH (a:J {i: 0}), (b:J {i: 40}) WHERE NOT (b)-[:R*]->(a) RETURN EXISTS { (a)-[:R*]->(b) }",
            "true",
        ),
        (
            "MATCH (:J {i: 0})-[:R*]->(q:J) RETURN q.i AS i UNION RETURN 1 AS i ORDER BY i LIMIT 1",
            "1",
        ),
    ] {
        let outcome = graph.attempt_within(text, Budget::new(100_000, 1 << 24, || None));
        let rows = outcome.unwrap_or_else(|error| panic!("{text}: {error}")).rows;
        assert_eq!(rows.first().map(|row| row.join(",")).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn chains_that_are_counted_or_named_are_all_there() {
    let mut graph = ladder(3);
    for (text, expected) in [
        ("MATCH (:J {i: 0})-[:R*]->(q:J {i: 3}) RETURN count(q)", "8"),
        ("MATCH (:J {i: 0})-[r:R*]->(q:J {i: 3}) RETURN count(DISTINCT r)", "8"),
        ("MATCH p = (:J {i: 0})-[:R*]->(q:J {i: 3}) RETURN count(DISTINCT p)", "8"),
        (
            "MATCH (:J {i: 0})-[:R*]->(q:J {i: 3}) WITH q LIMIT 5 RETURN count(DISTINCT q), count(*)",
            "1",
        ),
        ("MATCH (:J {i: 0})-[:R*]->(q:J {i: 3}) RETURN count(DISTINCT q) + count(*)", "9"),
    ] {
        assert_eq!(graph.run(text).rows[0][0], expected, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_reached_is_what_all_chains_end_at(
        edges in proptest::collection::vec((0..5_u8, 0..5_u8), 0..9),
        from in 0..2_u8,
        most in 1..5_u8,
        arrows in 0..3_usize,
    ) {
        let mut graph = TestGraph::of(&["UNWIND range(0, 4) AS i CREATE (:N {i: i})"]);
        for (a, b) in edges {
            graph.run(&format!("MATCH (a:N {{i: {a}}}), (b:N {{i: {b}}}) CREATE (a)-[:R]->(b)"));
        }
        let (left, right) = [("-", "->"), ("<-", "-"), ("-", "-")][arrows];
        for bounds in [format!("{from}..{most}"), format!("{from}..")] {
            let pattern = |name: &str| format!("(a:N {{i: 0}}){left}[{name}:R*{bounds}]{right}(q)");
            let once = format!("MATCH {} RETURN DISTINCT q.i AS i ORDER BY i", pattern(""));
            let all = format!(
                "MATCH {} WITH q.i AS i, count(r) AS c RETURN i ORDER BY i", pattern("r")
            );
            prop_assert_eq!(graph.column(&once), graph.column(&all), "{}", once);
            let bound = format!(
                "MATCH (q:N) WHERE EXISTS {{ {} }} RETURN q.i AS i ORDER BY i", pattern("")
            );
            prop_assert_eq!(graph.column(&bound), graph.column(&all), "{}", bound);
        }
    }
}
