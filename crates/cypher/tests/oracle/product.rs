//! Wellspring's evaluator, under test.

use crate::model::Model;
use crate::value::Value;
use std::collections::HashMap;
use wellspring_cypher::context::{Budget, Parameters, StatementTime};
use wellspring_cypher::error::{Error, ErrorKind};
use wellspring_cypher::value::{NodeId, RelationshipId, Value as Answered};
use wellspring_cypher::{BuiltIn, Environment, Flow, NoServer, prepare, run};
use wellspring_graph::{Graph, GraphError, Transaction};

/// What a query may take; a few in a thousand multiply their rows beyond it.
const MOST_STEPS: u64 = 100_000;

/// A graph in Wellspring that equals a model.
#[derive(Debug)]
pub(crate) struct Product {
    graph: Graph,
    nodes: HashMap<NodeId, usize>,
    edges: HashMap<RelationshipId, usize>,
}

impl Product {
    pub(crate) fn new(model: &Model, indexes: &[&str]) -> Self {
        let (nodes, edges) = (HashMap::new(), HashMap::new());
        let mut product = Self { graph: Graph::new(), nodes, edges };
        for text in indexes.iter().copied().chain([model.creation().as_str()]) {
            product.rows(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        let places = "MATCH (n) RETURN n, n.place UNION ALL MATCH ()-[n]->() RETURN n, n.place";
        for row in product.rows(places).expect("places") {
            let [owner, Answered::Integer(place)] = &row[..] else { panic!("{row:?}") };
            match owner {
                Answered::Node(node) => product.nodes.insert(*node, *place as usize),
                Answered::Relationship(edge) => product.edges.insert(*edge, *place as usize),
                other => panic!("{other:?}"),
            };
        }
        product
    }

    /// The rows of a query as text, sorted; none if it takes too many steps.
    pub(crate) fn evaluate(&mut self, text: &str) -> Option<Vec<String>> {
        let rows = match self.rows(text) {
            Ok(rows) => rows,
            Err(error) if error.kind == ErrorKind::ResourceExhausted => return None,
            Err(error) => panic!("{text}: {error}"),
        };
        let mut texts: Vec<String> = rows
            .iter()
            .map(|row| row.iter().map(|value| self.text(value)).collect::<Vec<_>>().join(" "))
            .collect();
        texts.sort_unstable();
        Some(texts)
    }

    fn rows(&mut self, text: &str) -> Result<Vec<Vec<Answered>>, Error> {
        let plan = prepare(text, &BuiltIn)?;
        let mut transaction = Transaction::writing(self.graph.clone());
        let environment = Environment {
            parameters: &Parameters::new(),
            database: "test",
            time: StatementTime { seconds: 0, nanoseconds: 0 },
            seed: 1,
            server: &NoServer,
        };
        let mut budget = Budget::new(MOST_STEPS, 64 << 20, || None);
        let mut rows = Vec::new();
        run(&plan, &mut transaction, &environment, &mut budget, &mut |row, _, _| {
            rows.push(row.to_vec());
            Ok(Flow::Continue)
        })?;
        self.graph = transaction.finish().map_err(GraphError::Violation)?.into_graph();
        Ok(rows)
    }

    fn text(&self, answered: &Answered) -> String {
        let value = self.value(answered);
        match value {
            // The items of `collect`, the only list that is returned, come in any order.
            Value::List(mut items) => {
                items.sort_by_key(Value::text);
                Value::List(items).text()
            }
            other => other.text(),
        }
    }

    fn value(&self, answered: &Answered) -> Value {
        match answered {
            Answered::Null => Value::Null,
            Answered::Boolean(truth) => Value::Boolean(*truth),
            Answered::Integer(number) => Value::Integer(*number),
            Answered::Float(number) => Value::Float(*number),
            Answered::String(text) => Value::Text(text.to_string()),
            Answered::List(items) => {
                Value::List(items.iter().map(|item| self.value(item)).collect())
            }
            Answered::Node(node) => Value::Node(self.nodes[node]),
            Answered::Relationship(edge) => Value::Edge(self.edges[edge]),
            other => panic!("{other:?} was not asked for"),
        }
    }
}
