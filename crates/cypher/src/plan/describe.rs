//! What `EXPLAIN` shows of a plan: the operators as a tree, the last one at the root, under the
//! names that Neo4j has for operators that do the same.

use super::{
    Expand, Operator, Pipeline, QueryPlan, RelationshipScan, RelationshipSource, Scan, ScanSource,
    SortOperator, StoredCount,
};
use crate::ir::{Direction, Length};
use std::sync::Arc;

/// Most operators that are shown; a plan of more names how many are missing. Each is two levels of
/// JSON, and many readers give up at 128.
const MOST_STEPS: usize = 50;

/// An operator of a plan with those that it takes rows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStep {
    /// Its name.
    pub operator: &'static str,
    /// What it is about: labels, types, properties; empty if its name says all.
    pub details: String,
    /// Where its rows come from; the part that is run for each row comes second.
    pub children: Vec<PlanStep>,
}

impl PlanStep {
    fn leaf(operator: &'static str, details: impl Into<String>) -> PlanStep {
        PlanStep { operator, details: details.into(), children: Vec::new() }
    }
}

/// The tree of a query that answers with these columns.
pub(crate) fn describe(query: &QueryPlan, columns: &[Arc<str>]) -> PlanStep {
    let mut left = MOST_STEPS;
    PlanStep {
        operator: "ProduceResults",
        details: columns.join(", "),
        children: vec![of_query(query, &mut left)],
    }
}

fn of_query(query: &QueryPlan, left: &mut usize) -> PlanStep {
    let mut branches: Vec<PlanStep> =
        query.branches.iter().map(|(pipeline, _)| of_pipeline(pipeline, left)).collect();
    if branches.len() == 1 {
        return branches.remove(0);
    }
    let union = PlanStep { operator: "Union", details: String::new(), children: branches };
    if query.distinct {
        PlanStep { operator: "Distinct", details: String::new(), children: vec![union] }
    } else {
        union
    }
}

/// The chain of a pipeline: its last operator, with the one before it as the first child.
fn of_pipeline(pipeline: &Pipeline, left: &mut usize) -> PlanStep {
    let mut below: Option<PlanStep> = None;
    for (at, operator) in pipeline.operators.iter().enumerate() {
        if *left == 0 {
            let missing = pipeline.operators.len() - at;
            let step = PlanStep::leaf("…", format!("{missing} more operators"));
            return PlanStep { children: below.into_iter().collect(), ..step };
        }
        *left -= 1;
        let (name, details) = named(operator);
        let inner = inner(operator, left);
        let children = below.into_iter().chain(inner).collect();
        below = Some(PlanStep { operator: name, details, children });
    }
    below.unwrap_or_else(|| PlanStep::leaf("Argument", "one row"))
}

/// What an operator runs for each row.
fn inner(operator: &Operator, left: &mut usize) -> Option<PlanStep> {
    match operator {
        Operator::Optional { inner, .. } => Some(of_pipeline(inner, left)),
        Operator::Foreach { updates, .. } => Some(of_pipeline(updates, left)),
        Operator::Merge(merge) => Some(of_pipeline(&merge.matching, left)),
        Operator::Call { query, .. } => Some(of_query(query, left)),
        _ => None,
    }
}

fn named(operator: &Operator) -> (&'static str, String) {
    let plain = |name| (name, String::new());
    match operator {
        Operator::Scan(scan) => of_scan(scan),
        Operator::ScanRelationships(scan) => of_relationship_scan(scan),
        Operator::Expand(Expand { connection, bound }) => {
            let name = if *bound || connection.to_bound { "Expand(Into)" } else { "Expand(All)" };
            (name, arrow(connection.direction, &connection.types, None))
        }
        Operator::ExpandVariable(expand) => {
            let name = if expand.ends_only { "PruningVarExpand" } else { "VarLengthExpand(All)" };
            let connection = &expand.connection;
            (name, arrow(connection.direction, &connection.types, Some(&expand.length)))
        }
        Operator::Shortest(shortest) => {
            let connection = &shortest.connection;
            let details = arrow(connection.direction, &connection.types, Some(&shortest.length));
            ("ShortestPath", details)
        }
        Operator::Path(_) => ("Projection", "a path".to_owned()),
        Operator::Filter(_) => plain("Filter"),
        Operator::Unwind { .. } => plain("Unwind"),
        Operator::LoadCsv(_) => plain("LoadCSV"),
        Operator::Optional { .. } => plain("Optional"),
        Operator::Compute(items) => ("Projection", counted(items.len(), "value")),
        Operator::StoredCount { counted, .. } => match counted {
            StoredCount::Nodes(label) => ("NodeCountFromCountStore", colon(label.as_ref())),
            StoredCount::Relationships(kind) => {
                ("RelationshipCountFromCountStore", colon(kind.as_ref()))
            }
        },
        Operator::Aggregate(aggregation) => {
            let keys = counted(aggregation.keys.len(), "key");
            (
                "EagerAggregation",
                format!("{keys}, {}", counted(aggregation.aggregates.len(), "value")),
            )
        }
        Operator::Distinct { columns, .. } => ("Distinct", counted(columns.len(), "column")),
        Operator::Sort(SortOperator { keys, top, .. }) => {
            (if top.is_some() { "Top" } else { "Sort" }, counted(keys.len(), "key"))
        }
        Operator::Skip { .. } => plain("Skip"),
        Operator::Limit { .. } => plain("Limit"),
        Operator::Eager { .. } => plain("Eager"),
        Operator::Create(creation) => {
            let nodes = counted(creation.nodes.len(), "node");
            let relationships = counted(creation.relationships.len(), "relationship");
            ("Create", format!("{nodes}, {relationships}"))
        }
        Operator::Merge(_) => plain("Merge"),
        Operator::Set(items) => ("SetProperty", counted(items.len(), "item")),
        Operator::Remove(items) => ("RemoveLabels", counted(items.len(), "item")),
        Operator::Delete(delete) => {
            (if delete.detach { "DetachDelete" } else { "Delete" }, String::new())
        }
        Operator::Foreach { .. } => plain("Foreach"),
        Operator::Call { .. } => plain("Apply"),
        Operator::Procedure(call) => ("ProcedureCall", call.procedure.yields().join(", ")),
    }
}

fn of_scan(scan: &Scan) -> (&'static str, String) {
    let joined = if scan.join.is_some() { "; from the second row on by a table" } else { "" };
    match &scan.source {
        ScanSource::All => ("AllNodesScan", joined.trim_start_matches("; ").to_owned()),
        ScanSource::Label(label) => ("NodeByLabelScan", format!(":{label}{joined}")),
        ScanSource::Seek(seeks) => {
            let any: Vec<String> =
                seeks.iter().map(|seek| format!(":{}({})", seek.label, seek.key)).collect();
            let label = seeks.first().map_or("", |seek| &seek.label);
            let details = format!(
                "by the first index of {}; without one all nodes of :{label}{joined}",
                any.join(", ")
            );
            ("NodeIndexSeek", details)
        }
        ScanSource::Ids(_) => ("NodeByIdSeek", String::new()),
    }
}

fn of_relationship_scan(scan: &RelationshipScan) -> (&'static str, String) {
    match &scan.source {
        RelationshipSource::All => ("AllRelationshipsScan", String::new()),
        RelationshipSource::Types(types) => ("RelationshipTypeScan", types_of(types)),
        RelationshipSource::Seek { kind, key, .. } => {
            ("RelationshipIndexSeek", format!(":{kind}({key})"))
        }
        RelationshipSource::Ids(_) => ("RelationshipByIdSeek", String::new()),
    }
}

fn types_of(types: &[Arc<str>]) -> String {
    if types.is_empty() { String::new() } else { format!(":{}", types.join("|")) }
}

/// `-[:KNOWS*1..3]->`
fn arrow(direction: Direction, types: &[Arc<str>], length: Option<&Length>) -> String {
    let length = length.map_or(String::new(), |Length { from, to }| {
        format!("*{from}..{}", to.map_or(String::new(), |to| to.to_string()))
    });
    let (start, end) = match direction {
        Direction::Outgoing => ("-", "->"),
        Direction::Incoming => ("<-", "-"),
        Direction::Either => ("-", "-"),
    };
    format!("{start}[{}{length}]{end}", types_of(types))
}

fn colon(name: Option<&Arc<str>>) -> String {
    name.map_or_else(|| "all".to_owned(), |name| format!(":{name}"))
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
