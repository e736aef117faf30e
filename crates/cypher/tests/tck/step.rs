//! The kinds of steps in the kit.

use super::gherkin::Step;
use super::value::ListOrder;

/// When an error must be detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the first row.
    Compile,
    /// During execution.
    Runtime,
}

/// The meaning of a step.
pub(crate) enum Kind<'a> {
    /// An empty graph, or any graph.
    EmptyGraph,
    /// A named graph of the kit.
    NamedGraph(&'a str),
    /// A statement that prepares the graph.
    Prepare(&'a str),
    /// Parameters: rows of a name and a value.
    Parameters(&'a [Vec<String>]),
    /// A procedure: its signature and rows of inputs and outputs.
    Procedure(&'a str, &'a [Vec<String>]),
    /// The statement under test, or one that examines its effects.
    Execute(&'a str),
    /// Rows are expected: a header, then rows.
    Rows { table: &'a [Vec<String>], ordered: bool, lists: ListOrder },
    /// No rows are expected.
    NoRows,
    /// Exactly these changes of the graph are expected, by name and number.
    SideEffects(&'a [Vec<String>]),
    /// An error is expected; in any phase if `None`, with any detail if `*`.
    Failure { kind: &'a str, phase: Option<Phase>, detail: &'a str },
}

/// The kind of a step; the line if it is unknown.
pub(crate) fn kind(step: &Step) -> Result<Kind<'_>, String> {
    let text = step.text.as_deref().unwrap_or("");
    let table = step.table.as_slice();
    let rows = |ordered, lists| Kind::Rows { table, ordered, lists };
    Ok(match step.line.trim_end_matches(':').trim() {
        "an empty graph" | "any graph" => Kind::EmptyGraph,
        "having executed" => Kind::Prepare(text),
        "parameters are" => Kind::Parameters(table),
        "executing query" | "executing control query" => Kind::Execute(text),
        "the result should be, in any order" => rows(false, ListOrder::Regarded),
        "the result should be, in order" => rows(true, ListOrder::Regarded),
        "the result should be (ignoring element order for lists)" => {
            rows(false, ListOrder::Ignored)
        }
        "the result should be, in order (ignoring element order for lists)" => {
            rows(true, ListOrder::Ignored)
        }
        "the result should be empty" => Kind::NoRows,
        "the side effects should be" => Kind::SideEffects(table),
        "no side effects" => Kind::SideEffects(&[]),
        line => return other(line, table).ok_or_else(|| format!("unknown step: {line}")),
    })
}

fn other<'a>(line: &'a str, table: &'a [Vec<String>]) -> Option<Kind<'a>> {
    if let Some(signature) = line.strip_prefix("there exists a procedure ") {
        return Some(Kind::Procedure(signature, table));
    }
    if let Some(name) = line.strip_prefix("the ").and_then(|rest| rest.strip_suffix(" graph")) {
        return Some(Kind::NamedGraph(name));
    }
    let (kind, rest) = line.strip_prefix("a ")?.split_once(" should be raised at ")?;
    let (phase, detail) = rest.split_once(": ")?;
    let phase = match phase {
        "compile time" => Some(Phase::Compile),
        "runtime" => Some(Phase::Runtime),
        "any time" => None,
        _ => return None,
    };
    Some(Kind::Failure { kind, phase, detail })
}
