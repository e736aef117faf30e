//! Answers of the Query API: one object, or events, one a line.

use crate::render::{Layout, QueryForm, push_query_plan, push_string};
use crate::run::Summary;
use std::io::Write as _;
use wellspring_graph::Statistics;
use wellspring_types::moment::push_rfc3339;

/// What an answer tells.
#[derive(Default)]
pub(super) struct QueryAnswer<'a> {
    /// The statement that was executed, if any.
    pub(super) summary: Option<&'a Summary>,
    /// Its rows, in the form of the answer.
    pub(super) rows: &'a [u8],
    pub(super) includes_counters: bool,
    /// The transaction that stays open, and when it ends, in µs since 1970 UTC.
    pub(super) transaction: Option<(u64, u64)>,
    pub(super) bookmark: Option<&'a str>,
    /// Neo4j's code and a message.
    pub(super) fault: Option<(&'a str, &'a str)>,
}

impl QueryForm {
    /// The answer's content.
    pub(super) fn content(self, answer: &QueryAnswer<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(answer.rows.len() + 512);
        match self.layout {
            Layout::Object => push_object(&mut out, answer),
            Layout::Lines => push_lines(&mut out, answer),
        }
        out
    }
}

fn push_object(out: &mut Vec<u8>, answer: &QueryAnswer<'_>) {
    out.push(b'{');
    if answer.summary.is_some() {
        out.extend_from_slice(b"\"data\":{\"fields\":");
        push_fields(out, answer.summary);
        out.extend_from_slice(b",\"values\":[");
        out.extend_from_slice(answer.rows);
        out.extend_from_slice(b"]}");
    }
    push_members(out, answer);
    if let Some(fault) = answer.fault {
        push_comma(out);
        out.extend_from_slice(b"\"errors\":");
        push_errors(out, fault);
    }
    out.push(b'}');
}

fn push_lines(out: &mut Vec<u8>, answer: &QueryAnswer<'_>) {
    if answer.summary.is_some() || answer.fault.is_none() {
        out.extend_from_slice(b"{\"$event\":\"Header\",\"_body\":{\"fields\":");
        push_fields(out, answer.summary);
        out.extend_from_slice(b"}}\n");
        out.extend_from_slice(answer.rows);
    }
    match answer.fault {
        None => {
            out.extend_from_slice(b"{\"$event\":\"Summary\",\"_body\":{");
            push_members(out, answer);
            out.extend_from_slice(b"}}\n");
        }
        Some(fault) => {
            out.extend_from_slice(b"{\"$event\":\"Error\",\"_body\":");
            push_errors(out, fault);
            out.extend_from_slice(b"}\n");
        }
    }
}

/// Appends a comma unless an object begins here.
fn push_comma(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

fn push_fields(out: &mut Vec<u8>, summary: Option<&Summary>) {
    out.push(b'[');
    let columns = summary.map_or(&[][..], |summary| summary.plan.columns());
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_string(out, column);
    }
    out.push(b']');
}

/// Appends the members beside data and errors.
fn push_members(out: &mut Vec<u8>, answer: &QueryAnswer<'_>) {
    if let Some(summary) = answer.summary.filter(|_| answer.fault.is_none()) {
        if answer.includes_counters {
            push_comma(out);
            out.extend_from_slice(b"\"counters\":");
            push_counters(out, &summary.statistics);
        }
        push_comma(out);
        out.extend_from_slice(b"\"queryType\":");
        push_string(out, summary.query_type());
        if let Some(root) = summary.plan.explained() {
            push_comma(out);
            out.extend_from_slice(b"\"queryPlan\":");
            push_query_plan(out, &root);
        }
    }
    if let Some((id, ends_us)) = answer.transaction {
        push_comma(out);
        let _ = write!(out, "\"transaction\":{{\"id\":\"{id}\",\"expires\":\"");
        push_rfc3339(out, ends_us);
        out.extend_from_slice(b"\"}");
    }
    if let Some(bookmark) = answer.bookmark {
        push_comma(out);
        out.extend_from_slice(b"\"bookmarks\":[");
        push_string(out, bookmark);
        out.push(b']');
    }
}

fn push_counters(out: &mut Vec<u8>, statistics: &Statistics) {
    let _ = write!(out, "{{\"containsUpdates\":{}", statistics.has_updates());
    for (name, count) in COUNTERS.into_iter().zip(statistics.counts()) {
        let _ = write!(out, ",\"{name}\":{count}");
    }
    out.extend_from_slice(b",\"containsSystemUpdates\":false,\"systemUpdates\":0}");
}

/// The names of what [`Statistics::counts`] counts.
const COUNTERS: [&str; 11] = [
    "nodesCreated",
    "nodesDeleted",
    "relationshipsCreated",
    "relationshipsDeleted",
    "propertiesSet",
    "labelsAdded",
    "labelsRemoved",
    "indexesAdded",
    "indexesRemoved",
    "constraintsAdded",
    "constraintsRemoved",
];

fn push_errors(out: &mut Vec<u8>, (code, message): (&str, &str)) {
    out.extend_from_slice(b"[{\"code\":");
    push_string(out, code);
    out.extend_from_slice(b",\"message\":");
    push_string(out, message);
    out.extend_from_slice(b"}]");
}
