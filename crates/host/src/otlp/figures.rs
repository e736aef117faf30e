//! The figures of `/metrics` as OTLP's JSON writes them: the same names, cumulative since the
//! start.

use super::span::{Attributes, push_nanos, push_quoted, push_resource, push_scope, push_signed};
use crate::stats::family::{Distribution, Family, Kind, Series, Value};
use crate::wire::json::push_string;

/// Each point is the sum of everything since the start, not since the point before.
const CUMULATIVE: &[u8] = b"\"aggregationTemporality\":2";

/// When everything began and when it was looked at, µs since 1970 UTC.
#[derive(Debug, Clone, Copy)]
pub(super) struct Period {
    pub(super) start_us: u64,
    pub(super) now_us: u64,
}

/// The body of a `POST /v1/metrics`.
pub(super) fn document(resource: &Attributes, families: &[Family], time: Period) -> Vec<u8> {
    let mut out = b"{\"resourceMetrics\":[{".to_vec();
    push_resource(&mut out, resource);
    out.extend_from_slice(b",\"scopeMetrics\":[{");
    push_scope(&mut out);
    out.extend_from_slice(b",\"metrics\":[");
    for (i, family) in families.iter().filter(|family| !family.is_empty()).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_family(&mut out, family, time);
    }
    out.extend_from_slice(b"]}]}]}");
    out
}

fn push_family(out: &mut Vec<u8>, family: &Family, time: Period) {
    for (member, text) in [
        ("{\"name\":", &*family.name),
        (",\"description\":", &family.help),
        (",\"unit\":", family.unit()),
    ] {
        out.extend_from_slice(member.as_bytes());
        push_string(out, text);
    }
    let kind: &[u8] = match family.kind {
        Kind::Counter => b",\"sum\":{\"isMonotonic\":true,",
        Kind::Gauge => b",\"gauge\":{",
        Kind::Histogram => b",\"histogram\":{",
    };
    out.extend_from_slice(kind);
    if family.kind != Kind::Gauge {
        out.extend_from_slice(CUMULATIVE);
        out.push(b',');
    }
    out.extend_from_slice(b"\"dataPoints\":[");
    for (i, series) in family.series.iter().enumerate() {
        out.extend_from_slice(if i > 0 { b",{" } else { b"{" });
        push_point(out, series, time);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}}");
}

fn push_point(out: &mut Vec<u8>, series: &Series, time: Period) {
    out.extend_from_slice(b"\"attributes\":[");
    for (i, (name, value)) in series.labels.iter().enumerate() {
        out.extend_from_slice(if i > 0 { b",{\"key\":" } else { b"{\"key\":" });
        push_string(out, name);
        out.extend_from_slice(b",\"value\":{\"stringValue\":");
        push_string(out, value);
        out.extend_from_slice(b"}}");
    }
    out.extend_from_slice(b"],");
    push_nanos(out, "startTimeUnixNano", time.start_us);
    out.push(b',');
    push_nanos(out, "timeUnixNano", time.now_us);
    match &series.value {
        Value::Whole(value) => {
            out.extend_from_slice(b",\"asInt\":");
            push_signed(out, *value);
        }
        Value::Real(value) => {
            out.extend_from_slice(b",\"asDouble\":");
            push_real(out, *value);
        }
        Value::Distribution(distribution) => push_distribution(out, distribution),
    }
}

fn push_distribution(out: &mut Vec<u8>, distribution: &Distribution) {
    out.extend_from_slice(b",\"count\":");
    push_quoted(out, distribution.counts.iter().sum());
    out.extend_from_slice(b",\"sum\":");
    push_real(out, distribution.sum);
    out.extend_from_slice(b",\"bucketCounts\":[");
    for (i, count) in distribution.counts.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_quoted(out, *count);
    }
    out.extend_from_slice(b"],\"explicitBounds\":[");
    for (i, bound) in distribution.bounds.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_real(out, *bound);
    }
    out.push(b']');
}

/// A number that is one: none of ours is infinite.
fn push_real(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(format!("{value}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_written_as_the_protocol_has_it() {
        let distribution =
            Distribution { bounds: vec![0.00005, 1.5], counts: vec![2, 0, 1], sum: 3.5 };
        let label = || vec![("log", "a".to_owned())];
        let families = [
            Family::new(Kind::Gauge, "empty", "Nothing."),
            Family::gauge("age_seconds", "Age.", 2.5),
            Family::new(Kind::Counter, "sent_bytes_total", "Sent.").with(label(), u64::MAX),
            Family::new(Kind::Histogram, "time_seconds", "Times.").with(label(), distribution),
        ];
        let time = Period { start_us: 1, now_us: 3 };
        let document: serde_json::Value =
            serde_json::from_slice(&document(&Vec::new(), &families, time)).unwrap();
        let metrics = &document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        let log = serde_json::json!([{"key": "log", "value": {"stringValue": "a"}}]);
        assert_eq!(
            *metrics,
            serde_json::json!([
                {"name": "age_seconds", "description": "Age.", "unit": "s", "gauge": {"dataPoints": [
                    {"attributes": [], "startTimeUnixNano": "1000", "timeUnixNano": "3000", "asDouble": 2.5},
                ]}},
                {"name": "sent_bytes_total", "description": "Sent.", "unit": "By", "sum": {
                    "isMonotonic": true, "aggregationTemporality": 2, "dataPoints": [
                    {"attributes": log, "startTimeUnixNano": "1000", "timeUnixNano": "3000",
                        "asInt": "9223372036854775807"},
                ]}},
                {"name": "time_seconds", "description": "Times.", "unit": "s", "histogram": {
                    "aggregationTemporality": 2, "dataPoints": [
                    {"attributes": log, "startTimeUnixNano": "1000", "timeUnixNano": "3000", "count": "3",
                        "sum": 3.5, "bucketCounts": ["2", "0", "1"], "explicitBounds": [0.00005, 1.5]},
                ]}},
            ])
        );
    }
}
