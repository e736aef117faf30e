//! Results as JSON, in the formats of Neo4j's HTTP API (recorded from 5.26).

mod graph_form;
mod query_value;
mod value;

use crate::body::ResultForms;
use crate::run::Summary;
use serde_json::ser::{CompactFormatter, Formatter as _};
use std::io::Write as _;
use std::sync::Arc;
use wellspring_bolt::{Version, begin_record, end_message};
use wellspring_cypher::PlanStep;
use wellspring_cypher::value::Value;
use wellspring_graph::Statistics;

pub(crate) use value::Place;

/// The form in which the result of a statement is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultForm {
    /// An object of the transaction API: columns, rows, and what was changed.
    Statement {
        /// The forms of each row.
        forms: ResultForms,
        /// Whether to tell what the statement changed.
        wants_statistics: bool,
    },
    /// The rows of the Query API alone.
    Rows(QueryForm),
    /// The rows as framed messages of Bolt.
    Records(Version),
}

/// The form of rows of the Query API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueryForm {
    /// How values are written.
    pub(crate) values: ValueForm,
    /// How rows follow one another.
    pub(crate) layout: Layout,
}

/// How values of the Query API are written, and read from parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// JSON, with text for what it has no form for.
    Plain,
    /// `{"$type":…,"_value":…}`
    Typed,
}

/// How an answer of the Query API is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One object.
    Object,
    /// Events, one a line.
    Lines,
}

impl ResultForm {
    /// Appends what comes before the rows.
    pub(crate) fn begin(self, out: &mut Vec<u8>, columns: &[Arc<str>]) {
        if let ResultForm::Statement { .. } = self {
            begin_result(out, columns);
        }
    }

    /// Appends a row, or a part of it if the result would exceed the most bytes of its place.
    /// `before`: number of rows before it.
    pub(crate) fn push_row(self, out: &mut Vec<u8>, row: &[Value], before: u64, place: &Place<'_>) {
        let form = match self {
            ResultForm::Statement { forms, .. } => {
                if before > 0 {
                    out.push(b',');
                }
                return push_row(out, row, forms, place);
            }
            ResultForm::Rows(form) => form,
            ResultForm::Records(version) => {
                let start = begin_record(out, row.len());
                row.iter().for_each(|value| place.pack(out, value, version));
                return end_message(out, start);
            }
        };
        match form.layout {
            Layout::Lines => out.extend_from_slice(b"{\"$event\":\"Record\",\"_body\":"),
            Layout::Object if before > 0 => out.push(b','),
            Layout::Object => {}
        }
        out.push(b'[');
        push_joined(out, row, |out, value| place.push_query(out, value, form.values));
        out.push(b']');
        if form.layout == Layout::Lines {
            out.extend_from_slice(b"}\n");
        }
    }

    /// Appends what comes after the rows; the summary is that of a statement without a fault.
    pub(crate) fn end(self, out: &mut Vec<u8>, summary: Option<&Summary>, database: &str) {
        if let ResultForm::Statement { wants_statistics, .. } = self {
            let explained = summary.and_then(|summary| summary.plan.explained());
            let plan = explained.as_ref().map(|root| (root, database));
            let statistics = summary.map(|summary| &summary.statistics);
            end_result(out, plan, statistics.filter(|_| wants_statistics));
        }
    }
}

/// Appends a string as JSON.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    wellspring_host::wire::json::push_string(out, text);
}

/// Appends a float as JSON, which cannot express non-finite ones.
fn push_float(out: &mut Vec<u8>, float: f64) {
    if !float.is_finite() {
        return push_string(out, &wellspring_cypher::value::float_text(float));
    }
    // Writing to a vector cannot fail.
    let _ = CompactFormatter.write_f64(out, float);
}

fn push_integer(out: &mut Vec<u8>, integer: impl std::fmt::Display) {
    let _ = write!(out, "{integer}");
}

/// Appends what `push` appends for each, separated by commas.
fn push_joined<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut Vec<u8>, T),
) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push(out, item);
    }
}

/// Appends the start of a statement's result.
fn begin_result(out: &mut Vec<u8>, columns: &[Arc<str>]) {
    out.extend_from_slice(b"{\"columns\":[");
    push_joined(out, columns, |out, column| push_string(out, column));
    out.extend_from_slice(b"],\"data\":[");
}

fn push_row(out: &mut Vec<u8>, row: &[Value], forms: ResultForms, place: &Place<'_>) {
    out.push(b'{');
    let mut is_first = true;
    let mut member = |out: &mut Vec<u8>, name: &str| {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        push_string(out, name);
        out.push(b':');
    };
    if forms.row {
        member(out, "row");
        out.push(b'[');
        push_joined(out, row, |out, value| place.push(out, value));
        out.push(b']');
        member(out, "meta");
        out.push(b'[');
        push_joined(out, row, |out, value| place.push_meta(out, value));
        out.push(b']');
    }
    if forms.rest {
        member(out, "rest");
        out.push(b'[');
        push_joined(out, row, |out, value| place.push(out, value));
        out.push(b']');
    }
    if forms.graph {
        member(out, "graph");
        graph_form::push(out, row, place);
    }
    out.push(b'}');
}

/// Appends the end of a statement's result, for `EXPLAIN` with the plan and the database's name.
fn end_result(out: &mut Vec<u8>, plan: Option<(&PlanStep, &str)>, statistics: Option<&Statistics>) {
    out.push(b']');
    if let Some((root, database)) = plan {
        out.extend_from_slice(b",\"plan\":{\"root\":");
        push_plan(out, root, database);
        out.push(b'}');
    }
    if let Some(statistics) = statistics {
        out.extend_from_slice(b",\"stats\":");
        push_statistics(out, statistics);
    }
    out.push(b'}');
}

/// Appends a step of a plan with those below it: as many as the plan shows, so the recursion ends.
fn push_plan(out: &mut Vec<u8>, step: &PlanStep, database: &str) {
    out.extend_from_slice(b"{\"operatorType\":");
    push_string(out, &format!("{}@{database}", step.operator));
    out.extend_from_slice(b",\"Details\":");
    push_string(out, &step.details);
    out.extend_from_slice(b",\"identifiers\":[],\"children\":[");
    push_joined(out, &step.children, |out, child| push_plan(out, child, database));
    out.extend_from_slice(b"]}");
}

/// Appends a step of a plan with those below it, as the Query API does.
pub(crate) fn push_query_plan(out: &mut Vec<u8>, step: &PlanStep) {
    out.extend_from_slice(b"{\"operatorType\":");
    push_string(out, step.operator);
    out.extend_from_slice(b",\"arguments\":{\"Details\":");
    push_string(out, &step.details);
    out.extend_from_slice(b"},\"identifiers\":[],\"children\":[");
    push_joined(out, &step.children, push_query_plan);
    out.extend_from_slice(b"]}");
}

fn push_statistics(out: &mut Vec<u8>, statistics: &Statistics) {
    out.extend_from_slice(b"{\"contains_updates\":");
    out.extend_from_slice(if statistics.has_updates() { b"true" } else { b"false" });
    let names = [
        "nodes_created",
        "nodes_deleted",
        "relationships_created",
        // Neo4j's term, which its clients know.
        "relationship_deleted",
        "properties_set",
        "labels_added",
        "labels_removed",
        "indexes_added",
        "indexes_removed",
        "constraints_added",
        "constraints_removed",
    ];
    for (name, count) in names.into_iter().zip(statistics.counts()) {
        let _ = write!(out, ",\"{name}\":{count}");
    }
    out.extend_from_slice(b",\"contains_system_updates\":false,\"system_updates\":0}");
}
