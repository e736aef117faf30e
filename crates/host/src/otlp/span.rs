//! Spans as OTLP's JSON writes them: ids in hexadecimal, 64-bit numbers as texts.
//!
//! The protocol: <https://opentelemetry.io/docs/specs/otlp/>; names of attributes:
//! <https://opentelemetry.io/docs/specs/semconv/http/http-spans/>.

use crate::wire::json::{push_string, push_u64};

/// A server's span, and a span within.
const KIND_INTERNAL: u64 = 1;
const KIND_SERVER: u64 = 2;
/// The status of a span that failed.
const STATUS_ERROR: u64 = 2;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Whole(u64),
}

/// Attributes, in order.
pub(super) type Attributes = Vec<(&'static str, Value)>;

/// A traced request, with its wait for the log.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    /// The caller's span.
    pub(super) parent_id: Option<u64>,
    pub(super) state: String,
    /// Method and route.
    pub(super) name: String,
    /// Since 1970 UTC.
    pub(super) start_us: u64,
    pub(super) end_us: u64,
    pub(super) attributes: Attributes,
    /// Whether the server failed.
    pub(super) failed: bool,
    /// The inner span: id, begin and end of the wait for the log.
    pub(super) commit: Option<(u64, u64, u64)>,
}

/// Appends attributes in OTLP's form.
pub(super) fn push_attributes<'a>(
    out: &mut Vec<u8>,
    attributes: impl Iterator<Item = (&'a str, &'a Value)>,
) {
    out.extend_from_slice(b"\"attributes\":[");
    for (i, (name, value)) in attributes.enumerate() {
        out.extend_from_slice(if i > 0 { b",{\"key\":" } else { b"{\"key\":" });
        push_string(out, name);
        match value {
            Value::Text(text) => {
                out.extend_from_slice(b",\"value\":{\"stringValue\":");
                push_string(out, text);
            }
            Value::Whole(number) => {
                out.extend_from_slice(b",\"value\":{\"intValue\":");
                push_signed(out, *number);
            }
        }
        out.extend_from_slice(b"}}");
    }
    out.push(b']');
}

/// Appends a number that the protocol has with a sign.
pub(super) fn push_signed(out: &mut Vec<u8>, number: u64) {
    push_quoted(out, number.min(i64::MAX.cast_unsigned()));
}

/// Appends a number as a text, as JSON cannot hold all of 64 bits.
pub(super) fn push_quoted(out: &mut Vec<u8>, number: u64) {
    out.push(b'"');
    push_u64(out, number);
    out.push(b'"');
}

/// Appends µs since 1970 as the ns that OTLP counts.
pub(super) fn push_nanos(out: &mut Vec<u8>, name: &str, us: u64) {
    push_string(out, name);
    out.push(b':');
    push_quoted(out, us.saturating_mul(1000));
}

/// Appends what identifies the exporting process.
pub(super) fn push_resource(out: &mut Vec<u8>, resource: &Attributes) {
    out.extend_from_slice(b"\"resource\":{");
    push_attributes(out, resource.iter().map(|(name, value)| (*name, value)));
    out.push(b'}');
}

/// Appends what identifies the instrumented library.
pub(super) fn push_scope(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"scope\":{\"name\":\"wellspring\",\"version\":");
    push_string(out, env!("CARGO_PKG_VERSION"));
    out.push(b'}');
}

/// The body of a `POST /v1/traces`.
pub(super) fn document(resource: &Attributes, spans: &[Span]) -> Vec<u8> {
    let mut out = b"{\"resourceSpans\":[{".to_vec();
    push_resource(&mut out, resource);
    out.extend_from_slice(b",\"scopeSpans\":[{");
    push_scope(&mut out);
    out.extend_from_slice(b",\"spans\":[");
    for (i, span) in spans.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_span(&mut out, span);
    }
    out.extend_from_slice(b"]}]}]}");
    out
}

fn push_span(out: &mut Vec<u8>, span: &Span) {
    push_ids(out, span, span.span_id, span.parent_id);
    push_string(out, &span.name);
    push_kind_and_times(out, KIND_SERVER, span.start_us, span.end_us);
    push_attributes(out, span.attributes.iter().map(|(name, value)| (*name, value)));
    if span.failed {
        out.extend_from_slice(b",\"status\":{\"code\":");
        push_u64(out, STATUS_ERROR);
        out.push(b'}');
    }
    out.push(b'}');
    if let Some((span_id, start_us, end_us)) = span.commit {
        out.push(b',');
        push_ids(out, span, span_id, Some(span.span_id));
        push_string(out, "commit");
        push_kind_and_times(out, KIND_INTERNAL, start_us, end_us);
        push_attributes(out, std::iter::empty());
        out.push(b'}');
    }
}

fn push_ids(out: &mut Vec<u8>, span: &Span, span_id: u64, parent_id: Option<u64>) {
    let mut ids = format!("{{\"traceId\":\"{:032x}\",\"spanId\":\"{span_id:016x}\"", span.trace_id);
    if let Some(parent_id) = parent_id {
        ids.push_str(&format!(",\"parentSpanId\":\"{parent_id:016x}\""));
    }
    out.extend_from_slice(ids.as_bytes());
    if !span.state.is_empty() {
        out.extend_from_slice(b",\"traceState\":");
        push_string(out, &span.state);
    }
    out.extend_from_slice(b",\"name\":");
}

fn push_kind_and_times(out: &mut Vec<u8>, kind: u64, start_us: u64, end_us: u64) {
    out.extend_from_slice(b",\"kind\":");
    push_u64(out, kind);
    out.push(b',');
    push_nanos(out, "startTimeUnixNano", start_us);
    out.push(b',');
    push_nanos(out, "endTimeUnixNano", end_us);
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_the_protocol_has_them() {
        let span = Span {
            trace_id: 0xab,
            span_id: 0xcd,
            parent_id: None,
            state: String::new(),
            name: "GET /v1/head".to_owned(),
            start_us: 5,
            end_us: 7,
            attributes: vec![
                ("url.path", Value::Text("/v1/\"x\"".to_owned())),
                ("http.response.status_code", Value::Whole(u64::MAX)),
            ],
            failed: true,
            commit: None,
        };
        let parent = Span {
            parent_id: Some(0xef),
            state: "a=1".to_owned(),
            failed: false,
            commit: Some((0x11, 5, 6)),
            ..span.clone()
        };
        let resource = vec![("service.name", Value::Text("wellspring".to_owned()))];
        let document: serde_json::Value =
            serde_json::from_slice(&document(&resource, &[span, parent])).unwrap();
        let of = &document["resourceSpans"][0];
        assert_eq!(
            of["resource"]["attributes"][0],
            serde_json::json!({"key": "service.name", "value": {"stringValue": "wellspring"}})
        );
        assert_eq!(of["scopeSpans"][0]["scope"]["name"], "wellspring");
        let spans = of["scopeSpans"][0]["spans"].as_array().unwrap();
        let zeros = |digits: usize, end: &str| format!("{}{end}", "0".repeat(digits - end.len()));
        assert_eq!(
            spans[0],
            serde_json::json!({
                "traceId": zeros(32, "ab"), "spanId": zeros(16, "cd"), "name": "GET /v1/head", "kind": 2,
                "startTimeUnixNano": "5000", "endTimeUnixNano": "7000",
                "attributes": [
                    {"key": "url.path", "value": {"stringValue": "/v1/\"x\""}},
                    {"key": "http.response.status_code", "value": {"intValue": "9223372036854775807"}},
                ],
                "status": {"code": 2},
            })
        );
        assert_eq!(
            (&spans[1]["parentSpanId"], &spans[1]["traceState"]),
            (&zeros(16, "ef").into(), &"a=1".into())
        );
        assert_eq!(spans[1].get("status"), None);
        let commit = &spans[2];
        assert_eq!(
            (&commit["spanId"], &commit["parentSpanId"]),
            (&zeros(16, "11").into(), &zeros(16, "cd").into())
        );
        assert_eq!((&commit["traceId"], &commit["kind"]), (&zeros(32, "ab").into(), &1.into()));
        assert_eq!(spans.len(), 3);
    }
}
