//! scratch
#[path = "statements/graph.rs"]
mod graph;
#[test]
fn scratch() {
    let text = std::fs::read_to_string("/tmp/c1-scratch.txt").unwrap();
    let mut graph = graph::TestGraph::of(&[
        "CREATE (a:Person {name: 'Ann', age: 30, born: date('1990-01-01')})-[:KNOWS {since: 2001}]->(b:Person {name: 'Bob', age: 40})-[:KNOWS {since: 2010}]->(c:Person {name: 'Cid'}), (a)-[:LIKES]->(c), (c)-[:WORKS_AT]->(:Company {name: 'X'})",
    ]);
    graph
        .parameter("name", "Ann")
        .parameter("one", 1)
        .parameter("ids", wellspring_cypher::value::Value::list(vec![1.into(), 2.into()]));
    graph.parameter("props", wellspring_cypher::value::Value::map([("name".into(), "Zoe".into())]));
    graph.parameter(
        "rows",
        wellspring_cypher::value::Value::list(vec![wellspring_cypher::value::Value::map([
            ("id".into(), 1.into()),
            ("name".into(), "Zoe".into()),
        ])]),
    );
    for statement in text.split("\n").filter(|line| !line.trim().is_empty()) {
        match graph.attempt_within(
            statement,
            wellspring_cypher::context::Budget::new(1_000_000, 1 << 28, || None),
        ) {
            Ok(outcome) => println!(
                "ok   {statement}\n       {:?}",
                outcome.rows.iter().take(6).collect::<Vec<_>>()
            ),
            Err(error) => println!("FAIL {statement}\n       {} {error}", error.code()),
        }
    }
}
