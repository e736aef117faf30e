//! Type predicates.

use super::graph::TestGraph;

#[test]
fn values_are_asked_for_their_types() {
    let mut graph = TestGraph::new();
    for (question, answer) in [
        ("1 IS :: INTEGER", "true"),
        ("1 IS :: FLOAT", "false"),
        ("1 IS NOT :: FLOAT", "true"),
        ("null IS :: INTEGER", "true"),
        ("null IS :: INTEGER NOT NULL", "false"),
        ("null IS :: NULL", "true"),
        ("1 IS :: NULL", "false"),
        ("'a' IS TYPED STRING", "true"),
        ("[1, 'a'] IS :: LIST<INTEGER | STRING>", "true"),
        ("[1, null] IS :: LIST<INTEGER NOT NULL>", "false"),
        ("[1, [2]] IS :: LIST<ANY>", "true"),
        ("[1, [2]] IS :: PROPERTY VALUE", "false"),
        ("date('2020-01-01') IS :: DATE", "true"),
        ("{a: 1} IS :: MAP", "true"),
        ("[x IN [1, 'a', 2.5] WHERE (x IS :: INTEGER | FLOAT) | x][1] IS :: FLOAT", "true"),
    ] {
        assert_eq!(graph.column(&format!("RETURN {question}")), [answer], "{question}");
    }
    let deep = format!("RETURN 1 IS :: {}INTEGER{}", "LIST<".repeat(20_000), ">".repeat(20_000));
    for text in ["RETURN 1 IS :: NUMBER", &deep] {
        assert!(graph.attempt(text).is_err());
    }
}

#[test]
fn a_constraint_tells_values_apart_as_equality_does() {
    let mut graph = TestGraph::of(&["CREATE CONSTRAINT FOR (n:N) REQUIRE n.k IS UNIQUE"]);
    for different in [
        ["datetime('2020-01-01T00:00Z')", "datetime('2020-01-01T01:00+01:00')"],
        ["time('00:00Z')", "time('01:00+01:00')"],
        ["[datetime('2020-01-01T00:00Z')]", "[datetime('2020-01-01T01:00+01:00')]"],
        ["0.0 / 0.0", "0.0 / 0.0"],
        ["[0.0 / 0.0]", "[0.0 / 0.0]"],
    ] {
        for value in different {
            graph.run(&format!("MERGE (:N {{k: {value}}})"));
        }
        let count = format!("MATCH (n:N) WHERE n.k = {0} RETURN count(n)", different[0]);
        let expected = if different[0].contains("0.0") { "0" } else { "1" };
        assert_eq!(graph.column(&count), [expected], "{different:?}");
    }
    assert_eq!(graph.column("MATCH (n:N) RETURN count(n)"), ["10"]);
    for equal in [
        ["1", "1.0"],
        ["0.0", "-0.0"],
        ["[2, 'a']", "[2.0, 'a']"],
        ["point({x: 1, y: 2})", "point({x: 1.0, y: 2.0})"],
        ["date('2020-01-01')", "date('2020-01-01')"],
    ] {
        graph.run(&format!("CREATE (:N {{k: {}}})", equal[0]));
        assert!(graph.attempt(&format!("CREATE (:N {{k: {}}})", equal[1])).is_err(), "{equal:?}");
    }
}
