//! Runs one scenario on its own graph.

use crate::actual::{Census, actual, census};
use crate::gherkin::Scenario;
use crate::statement::{Rows, ScenarioInputs, execute};
use crate::step::{Kind, Phase, kind};
use crate::value::{ListOrder, TckValue, parse};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use wellspring_cypher::error::{self, Error};
use wellspring_graph::{Graph, Transaction};

/// The state of a scenario.
struct World<'a> {
    graph: Graph,
    before: Census,
    given: ScenarioInputs,
    /// The result of the last statement under test.
    outcome: Option<Result<Rows, Error>>,
    /// The folder of the kit's named graphs.
    graphs: &'a Path,
    deadline: Instant,
}

/// Runs a scenario; returns why it failed, if it did.
pub(crate) fn run(scenario: &Scenario, graphs: &Path, deadline: Instant) -> Result<(), String> {
    let mut world = World {
        graph: Graph::new(),
        before: Census::default(),
        given: ScenarioInputs::default(),
        outcome: None,
        graphs,
        deadline,
    };
    scenario.steps.iter().try_for_each(|step| world.take(kind(step)?))
}

impl World<'_> {
    fn take(&mut self, kind: Kind<'_>) -> Result<(), String> {
        match kind {
            Kind::EmptyGraph => self.graph = Graph::new(),
            Kind::NamedGraph(name) => {
                let file = self.graphs.join(name).join(format!("{name}.cypher"));
                let statement = std::fs::read_to_string(&file)
                    .map_err(|e| format!("{}: {e}", file.display()))?;
                self.prepare(statement.trim().trim_end_matches(';'))?;
            }
            Kind::Prepare(statement) => self.prepare(statement)?,
            Kind::Parameters(rows) => {
                for row in rows {
                    let [name, value] = row.as_slice() else {
                        return Err("a parameter has two cells".to_owned());
                    };
                    self.given.parameter(name, &parse(value)?);
                }
            }
            Kind::Procedure(signature, rows) => self.given.procedure(signature, rows)?,
            Kind::Execute(statement) => {
                self.before = census(&self.graph);
                self.outcome =
                    Some(execute(&mut self.graph, statement, &self.given, self.deadline));
            }
            Kind::Rows { table, ordered, lists } => compare(self.rows()?, table, ordered, lists)?,
            Kind::NoRows => {
                let rows = self.rows()?;
                if !rows.rows.is_empty() {
                    return Err(format!("no rows expected, {} came", rows.rows.len()));
                }
            }
            Kind::SideEffects(table) => self.effects(table)?,
            Kind::Failure { kind, phase, detail } => self.failure(kind, phase, detail)?,
        }
        Ok(())
    }

    fn prepare(&mut self, statement: &str) -> Result<(), String> {
        let outcome = execute(&mut self.graph, statement, &self.given, self.deadline);
        outcome.map(|_| ()).map_err(|error| format!("while preparing: {}", told(&error)))
    }

    fn rows(&self) -> Result<&Rows, String> {
        match &self.outcome {
            Some(Ok(rows)) => Ok(rows),
            Some(Err(error)) => Err(told(error)),
            None => Err("nothing was executed".to_owned()),
        }
    }

    fn effects(&self, table: &[Vec<String>]) -> Result<(), String> {
        let mut expected = BTreeMap::new();
        for row in table {
            let [name, number] = row.as_slice() else {
                return Err("an effect has two cells".to_owned());
            };
            let number: usize = number.parse().map_err(|_| format!("{number} is no number"))?;
            expected.insert(name.clone(), number);
        }
        expected.retain(|_, number| *number > 0);
        let came = census(&self.graph).since(&self.before);
        if came == expected {
            return Ok(());
        }
        Err(format!("side effects {expected:?} expected, {came:?} came"))
    }

    fn failure(&self, kind: &str, phase: Option<Phase>, detail: &str) -> Result<(), String> {
        let error = match &self.outcome {
            Some(Err(error)) => error,
            _ => return Err(format!("{kind} {detail} expected, no error came")),
        };
        let fits = error.kind.name() == kind
            && phase.is_none_or(|phase| error.phase == in_our_words(phase))
            && (detail == "*" || error.detail.name() == detail);
        if fits {
            Ok(())
        } else {
            Err(format!("{kind} {detail} in {phase:?} expected: {}", told(error)))
        }
    }
}

fn in_our_words(phase: Phase) -> error::Phase {
    match phase {
        Phase::Compile => error::Phase::Compile,
        Phase::Runtime => error::Phase::Runtime,
    }
}

fn told(error: &Error) -> String {
    format!("{} {} in {:?}: {error}", error.kind.name(), error.detail.name(), error.phase)
}

/// Compares rows with the expected table, whose first row names the columns.
fn compare(
    rows: &Rows,
    table: &[Vec<String>],
    ordered: bool,
    lists: ListOrder,
) -> Result<(), String> {
    let Some((header, expected)) = table.split_first() else {
        return Err("a table without a header".to_owned());
    };
    if *header != rows.columns {
        return Err(format!("columns {header:?} expected, {:?} came", rows.columns));
    }
    let text = |row: &[TckValue]| {
        row.iter().map(|value| value.text(lists)).collect::<Vec<_>>().join(" | ")
    };
    let mut wanted = Vec::new();
    for row in expected {
        let row: Result<Vec<TckValue>, String> = row.iter().map(|cell| parse(cell)).collect();
        wanted.push(text(&row?));
    }
    let transaction = Transaction::reading(rows.graph.clone());
    let mut came: Vec<String> = Vec::new();
    for row in &rows.rows {
        let row: Vec<TckValue> = row.iter().map(|value| actual(value, &transaction)).collect();
        came.push(text(&row));
    }
    if !ordered {
        wanted.sort();
        came.sort();
    }
    if wanted == came {
        return Ok(());
    }
    Err(format!(
        "rows expected:\n      {}\n    came:\n      {}",
        wanted.join("\n      "),
        came.join("\n      ")
    ))
}
