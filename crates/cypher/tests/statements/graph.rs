//! A graph for running statements one after another.

use wellspring_cypher::context::{Budget, Parameters, StatementTime};
use wellspring_cypher::error::Error;
use wellspring_cypher::value::Value;
use wellspring_cypher::{BuiltIn, Environment, Flow, NoServer, Server, prepare, run};
use wellspring_graph::{Graph, GraphError, PreparedTransaction, Statistics, Transaction, Verdict};

/// The result of a statement.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) statistics: Statistics,
}

/// A graph on which statements are committed at once.
pub(crate) struct TestGraph {
    graph: Graph,
    /// The server around it.
    pub(crate) server: Box<dyn Server>,
    pub(crate) parameters: Parameters,
}

impl TestGraph {
    pub(crate) fn new() -> Self {
        Self { graph: Graph::new(), server: Box::new(NoServer), parameters: Parameters::new() }
    }

    /// A graph on which these statements have run.
    pub(crate) fn of(statements: &[&str]) -> Self {
        let mut graph = Self::new();
        for statement in statements {
            graph.run(statement);
        }
        graph
    }

    pub(crate) fn parameter(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.parameters.insert(name.into(), value.into());
        self
    }

    /// Whether the graph has ever used a label, type or key, even in discarded statements.
    pub(crate) fn has_seen(&self, name: &str) -> bool {
        self.graph.find_name(name).is_some()
    }

    pub(crate) fn run(&mut self, text: &str) -> Outcome {
        self.attempt(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    pub(crate) fn attempt(&mut self, text: &str) -> Result<Outcome, Error> {
        self.attempt_within(text, Budget::unlimited())
    }

    pub(crate) fn attempt_within(
        &mut self,
        text: &str,
        mut budget: Budget,
    ) -> Result<Outcome, Error> {
        let plan = prepare(text, &BuiltIn)?;
        let mut transaction = Transaction::writing(self.graph.clone());
        let environment = Environment {
            parameters: &self.parameters,
            database: "test",
            time: StatementTime { seconds: 0, nanoseconds: 0 },
            seed: 1,
            server: &*self.server,
        };
        let mut rows = Vec::new();
        let statistics =
            run(&plan, &mut transaction, &environment, &mut budget, &mut |row, _, _| {
                rows.push(row.iter().map(shown).collect());
                Ok(Flow::Continue)
            })?;
        let finished = transaction.finish().map_err(wellspring_graph::GraphError::Violation)?;
        self.graph = finished.into_graph();
        let columns = plan.columns().iter().map(|name| name.to_string()).collect();
        Ok(Outcome { columns, rows, statistics })
    }

    /// The only column of all rows.
    pub(crate) fn column(&mut self, text: &str) -> Vec<String> {
        let rows = self.run(text).rows;
        rows.into_iter().map(|mut row| row.remove(0)).collect()
    }
}

/// A value as text.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::String(text) => text.to_string(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Node(_) => "node".into(),
        Value::Relationship(_) => "relationship".into(),
        Value::Path(path) => format!("path of {}", path.length()),
        other => format!("{other:?}"),
    }
}

/// A statement that has run on a version and is not committed yet.
pub(crate) struct JudgedStatement {
    /// Sorted, because their order is unspecified.
    pub(crate) rows: Vec<String>,
    pub(crate) prepared: PreparedTransaction,
}

/// Runs a statement on a version.
pub(crate) fn begin(graph: &Graph, text: &str) -> Result<JudgedStatement, Error> {
    let plan = prepare(text, &BuiltIn)?;
    let mut transaction = Transaction::writing(graph.clone());
    let environment = Environment {
        parameters: &Parameters::new(),
        database: "test",
        time: StatementTime { seconds: 0, nanoseconds: 0 },
        seed: 1,
        server: &NoServer,
    };
    let mut rows = Vec::new();
    run(&plan, &mut transaction, &environment, &mut Budget::unlimited(), &mut |row, _, _| {
        rows.push(row.iter().map(shown).collect::<Vec<_>>().join(" "));
        Ok(Flow::Continue)
    })?;
    rows.sort_unstable();
    let finished = transaction.finish().map_err(GraphError::Violation)?;
    Ok(JudgedStatement { rows, prepared: finished.prepare() })
}

/// The version after committing a statement that ran on the newest one.
pub(crate) fn finish(
    graph: &Graph,
    finished: Result<JudgedStatement, Error>,
) -> Result<Graph, Error> {
    match finished?.prepared.decide(graph, &[]) {
        Verdict::Committed(commit) => Ok(commit.graph),
        _ => Ok(graph.clone()),
    }
}

/// The rows of a read-only statement.
pub(crate) fn rows_of(graph: &Graph, text: &str) -> Vec<String> {
    begin(graph, text).unwrap_or_else(|error| panic!("{text}: {error}")).rows
}
