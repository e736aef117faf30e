//! The seam to the library: how a statement is executed.

use crate::value::TckValue;
use std::collections::BTreeMap;
use std::time::Instant;
use wellspring_cypher::context::Parameters;
use wellspring_cypher::error::Error;
use wellspring_cypher::value::Value;
use wellspring_graph::Graph;

/// What statements of a scenario are given.
#[derive(Default)]
pub(crate) struct Given {
    parameters: Parameters,
}

/// What came.
pub(crate) struct Rows {
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    /// The rows.
    pub(crate) rows: Vec<Vec<Value>>,
    /// The graph that the rows' entities are of.
    pub(crate) graph: Graph,
}

impl Given {
    /// One more parameter.
    pub(crate) fn parameter(&mut self, name: &str, value: &TckValue) {
        self.parameters.insert(name.into(), plain(value));
    }

    /// One more procedure.
    pub(crate) fn procedure(&mut self, signature: &str, _: &[Vec<String>]) -> Result<(), String> {
        Err(format!("procedures cannot be given yet: {signature}"))
    }
}

/// A value without entities.
fn plain(value: &TckValue) -> Value {
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

/// Executes a statement; the graph is changed if it ends well.
pub(crate) fn execute(
    graph: &mut Graph,
    statement: &str,
    given: &Given,
    deadline: Instant,
) -> Result<Rows, Error> {
    _ = (graph, given, deadline);
    Err(Error::defect(format!("not yet: {statement}")))
}
