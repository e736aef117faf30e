//! What type a value is of.

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
