//! What the end of a result tells beside its rows.

use crate::run::Summary;
use wellspring_bolt::packstream::Writer;
use wellspring_bolt::{Metadata, Version};
use wellspring_cypher::PlanStep;
use wellspring_graph::Statistics;

/// Writes the members of a summary.
pub(super) fn push(
    metadata: &mut Metadata<'_>,
    summary: &Summary,
    database: &str,
    bookmark: Option<&str>,
    version: Version,
) {
    metadata.text("type", summary.query_type());
    metadata.text("db", database);
    metadata.int("t_last", 0);
    if summary.statistics.has_updates() {
        push_statistics(&mut metadata.member("stats"), &summary.statistics);
    }
    if let Some(root) = summary.plan.explained() {
        push_plan(&mut metadata.member("plan"), &root);
    }
    if version.has_statuses() {
        let mut writer = metadata.member("statuses");
        writer.list(1);
        push_status(&mut writer, summary);
    }
    if let Some(bookmark) = bookmark {
        metadata.text("bookmark", bookmark);
    }
}

/// Writes the GQL status: rows, columns but no row, or no columns.
fn push_status(writer: &mut Writer<'_>, summary: &Summary) {
    let (status, description) = if summary.plan.columns().is_empty() {
        ("00001", "note: successful completion - omitted result")
    } else if summary.rows == 0 {
        ("02000", "note: no data")
    } else {
        ("00000", "note: successful completion")
    };
    writer.map(2);
    writer.text("gql_status");
    writer.text(status);
    writer.text("status_description");
    writer.text(description);
}

/// The names of what [`Statistics::counts`] counts.
const COUNTERS: [&str; 11] = [
    "nodes-created",
    "nodes-deleted",
    "relationships-created",
    "relationships-deleted",
    "properties-set",
    "labels-added",
    "labels-removed",
    "indexes-added",
    "indexes-removed",
    "constraints-added",
    "constraints-removed",
];

fn push_statistics(writer: &mut Writer<'_>, statistics: &Statistics) {
    let counts = COUNTERS.into_iter().zip(statistics.counts());
    let told = || counts.clone().filter(|(_, count)| *count > 0);
    writer.map(1 + told().count());
    for (name, count) in told() {
        writer.text(name);
        writer.int(i64::try_from(count).unwrap_or(i64::MAX));
    }
    writer.text("contains-updates");
    writer.bool(statistics.has_updates());
}

/// Writes a step of a plan with those below it: as many as the plan shows, so the recursion ends.
fn push_plan(writer: &mut Writer<'_>, step: &PlanStep) {
    writer.map(4);
    writer.text("operatorType");
    writer.text(step.operator);
    writer.text("args");
    writer.map(1);
    writer.text("Details");
    writer.text(&step.details);
    writer.text("identifiers");
    writer.list(0);
    writer.text("children");
    writer.list(step.children.len());
    step.children.iter().for_each(|child| push_plan(writer, child));
}
