//! Executes statements through the library.

use crate::procedure::ProcedureTables;
use crate::value::TckValue;
use std::collections::BTreeMap;
use std::time::Instant;
use wellspring_cypher::context::{Budget, Parameters, StatementTime, Stop};
use wellspring_cypher::error::Error;
use wellspring_cypher::value::Value;
use wellspring_cypher::{Environment, Flow, NoServer, prepare, run};
use wellspring_graph::{Graph, GraphError, Transaction};

/// The inputs of a scenario's statements.
#[derive(Default)]
pub(crate) struct ScenarioInputs {
    parameters: Parameters,
    procedures: ProcedureTables,
}

/// The actual result.
pub(crate) struct Rows {
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    /// The rows.
    pub(crate) rows: Vec<Vec<Value>>,
    /// The graph that contains the rows' entities.
    pub(crate) graph: Graph,
}

impl ScenarioInputs {
    /// Adds a parameter.
    pub(crate) fn parameter(&mut self, name: &str, value: &TckValue) {
        self.parameters.insert(name.into(), plain(value));
    }

    /// Adds a procedure.
    pub(crate) fn procedure(
        &mut self,
        signature: &str,
        rows: &[Vec<String>],
    ) -> Result<(), String> {
        self.procedures.add(signature, rows)
    }
}

/// A value without entities.
pub(crate) fn plain(value: &TckValue) -> Value {
    match value {
        TckValue::Boolean(truth) => Value::Boolean(*truth),
        TckValue::Integer(integer) => Value::Integer(*integer),
        TckValue::Float(float) => Value::Float(*float),
        TckValue::String(text) => Value::string(text),
        TckValue::List(items) => Value::list(items.iter().map(plain).collect()),
        TckValue::Map(entries) => entries_of(entries),
        TckValue::Null | TckValue::Node(_) | TckValue::Relationship(_) | TckValue::Path(..) => {
            Value::Null
        }
    }
}

fn entries_of(entries: &BTreeMap<String, TckValue>) -> Value {
    Value::map(entries.iter().map(|(key, value)| (key.as_str().into(), plain(value))))
}

/// Executes a statement; the graph changes if it succeeds.
pub(crate) fn execute(
    graph: &mut Graph,
    statement: &str,
    given: &ScenarioInputs,
    deadline: Instant,
) -> Result<Rows, Error> {
    let plan = prepare(statement, &given.procedures)?;
    let mut transaction = Transaction::writing(graph.clone());
    let environment = Environment {
        parameters: &given.parameters,
        database: "tck",
        time: StatementTime { seconds: 1_700_000_000, nanoseconds: 123_456_789 },
        seed: 7,
        server: &NoServer,
    };
    #[expect(clippy::disallowed_methods, reason = "a test watches over real time")]
    let stop = move || (Instant::now() > deadline).then_some(Stop::Deadline);
    let mut budget = Budget::new(u64::MAX, 1 << 30, stop);
    let mut rows = Vec::new();
    run(&plan, &mut transaction, &environment, &mut budget, &mut |row, _, _| {
        rows.push(row.to_vec());
        Ok(Flow::Continue)
    })?;
    let finished = transaction.finish().map_err(GraphError::Violation)?;
    *graph = finished.into_graph();
    let columns = plan.columns().iter().map(|name| name.to_string()).collect();
    Ok(Rows { columns, rows, graph: graph.clone() })
}
