//! Arbitrary text as a statement, read and run on a small graph: rows or an error, never a panic,
//! and the graph that it comes to agrees with itself.
use std::sync::{Once, OnceLock};
use wellspring_cypher::context::{Budget, Parameters, StatementTime};
use wellspring_cypher::{BuiltIn, Environment, Flow, NoServer, prepare};
use wellspring_graph::{Graph, Transaction};

fn execute(graph: &Graph, statement: &str) -> Option<Graph> {
    let plan = prepare(statement, &BuiltIn).ok()?;
    let environment = Environment {
        parameters: &Parameters::new(),
        database: "fuzz",
        time: StatementTime { seconds: 1_700_000_000, nanoseconds: 5 },
        seed: 1,
        server: &NoServer,
    };
    let mut budget = Budget::new(50_000, 1 << 20, || None);
    let mut transaction = Transaction::writing(graph.clone());
    wellspring_cypher::run(&plan, &mut transaction, &environment, &mut budget, &mut |_, _, _| {
        Ok(Flow::Continue)
    })
    .ok()?;
    Some(transaction.finish().ok()?.into_graph())
}

/// Something to be found, changed and deleted.
fn small() -> &'static Graph {
    static SMALL: OnceLock<Graph> = OnceLock::new();
    SMALL.get_or_init(|| {
        let statement = "CREATE (a:A {x: 1, d: date('2020-01-01')})-[:T {w: 2.5}]->(b:B {l: ['x', 'y']})-[:T]->(a)";
        execute(&Graph::new(), statement).expect("a statement")
    })
}

// A panic of the parser that the language is read with is caught and is an error there: only others
// end the process.
pub fn run(text: &str) {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    if let Some(graph) = execute(small(), text) {
        assert_eq!(graph.audit(), Ok(()));
    }
}
