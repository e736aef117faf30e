//! What is delivered of an event: its key, and its CloudEvents document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::to_writer;
use wellspring_log::RecordView;
use wellspring_types::moment::push_rfc3339;
use wellspring_types::{DataKind, HistoryId};

/// The event's key: the text after `prefix` and a colon in its first such tag.
#[must_use]
pub fn partition_key<'a>(event: &RecordView<'a>, prefix: &str) -> Option<&'a str> {
    event.tags().find_map(|tag| tag.strip_prefix(prefix)?.strip_prefix(':'))
}

/// Appends a comma and a member of a JSON object.
fn push_member(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    push_text(out, value);
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    to_writer(out, text).expect("a vector takes everything");
}

/// Appends an event as a CloudEvents 1.0 document (<https://github.com/cloudevents/spec>, JSON
/// format) with the same extensions as `wellspring export`: position, tags, time and metadata. Of
/// an event with sealed parts it has what stays clear, and says that something is withheld. An
/// event without an id gets one that no event of another log has: `position@history`.
pub fn cloud_event(
    out: &mut Vec<u8>,
    log: &str,
    history: Option<HistoryId>,
    event: &RecordView<'_>,
) {
    let tag = |name: &str| partition_key(event, name);
    let mut moment = Vec::with_capacity(27);
    push_rfc3339(&mut moment, event.recorded_at_us());
    let moment = std::str::from_utf8(&moment).expect("digits and signs");
    let position = event.position().to_string();
    out.extend_from_slice(b"{\"specversion\":\"1.0\"");
    let id = match (event.id(), history) {
        (Some(id), _) => id.to_string(),
        (None, Some(history)) => format!("{position}@{history}"),
        (None, None) => format!("{log}-{position}"),
    };
    push_member(out, "id", &id);
    match tag("source") {
        Some(source) => push_member(out, "source", source),
        None => push_member(out, "source", &format!("/wellspring/{log}")),
    }
    push_member(out, "type", event.event_type());
    if let Some(subject) = tag("subject") {
        push_member(out, "subject", subject);
    }
    push_member(out, "time", moment);
    push_member(out, "wellspringposition", &position);
    let tags: Vec<&str> = event.tags().collect();
    let tags = serde_json::to_string(&tags).expect("texts");
    push_member(out, "wellspringtags", &tags);
    if event.metadata().next().is_some() {
        let metadata: serde_json::Map<String, serde_json::Value> =
            event.metadata().map(|(key, value)| (key.to_owned(), value.into())).collect();
        let metadata = serde_json::to_string(&metadata).expect("texts");
        push_member(out, "wellspringmetadata", &metadata);
    }
    if !event.sealed_parts().is_empty() {
        // Personal data is opened for readers of the log alone.
        out.extend_from_slice(b",\"wellspringwithheld\":true");
    }
    match event.kind() {
        DataKind::Json => {
            push_member(out, "datacontenttype", "application/json");
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(event.data());
        }
        DataKind::Binary => push_member(out, "data_base64", &BASE64.encode(event.data())),
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_log::EncodedEvents;
    use wellspring_types::{Event, EventId};

    fn encoded(event: &Event) -> EncodedEvents {
        let mut events = EncodedEvents::new();
        events.push(&event.as_ref()).expect("a valid event");
        events
    }

    #[test]
    fn the_key_is_the_rest_of_the_first_tag_of_that_name() {
        let event = Event::json("T", &["customers:1", "customer:7", "customer:8"], "1");
        let events = encoded(&event);
        let view = events.iter().next().expect("one");
        assert_eq!(partition_key(&view, "customer"), Some("7"));
        assert_eq!(partition_key(&view, "cust"), None);
        assert_eq!(partition_key(&view, "order"), None);
    }

    #[test]
    fn a_document_is_json_and_says_everything() {
        let mut event =
            Event::json("Order \"Placed\"", &["subject:a\"b", "order:1"], r#"{"n":1.50}"#);
        event.id = EventId::parse("6f1ed002-ab5b-4c53-8f3d-2f7d0b0d9a11");
        event.metadata.push(("trace".into(), "x\ny".into()));
        let events = encoded(&event);
        let mut out = Vec::new();
        cloud_event(&mut out, "main", None, &events.iter().next().expect("one"));
        let text = std::str::from_utf8(&out).expect("UTF-8");
        assert!(text.contains(r#""data":{"n":1.50}"#), "{text}");
        let document: serde_json::Value = serde_json::from_slice(&out).expect(text);
        assert_eq!(document["type"], "Order \"Placed\"");
        assert_eq!(document["subject"], "a\"b");
        assert_eq!(document["source"], "/wellspring/main");
        assert_eq!(document["id"], "6f1ed002-ab5b-4c53-8f3d-2f7d0b0d9a11");
        assert_eq!(document["wellspringtags"], r#"["subject:a\"b","order:1"]"#);
        assert_eq!(document["wellspringmetadata"], r#"{"trace":"x\ny"}"#);
    }

    #[test]
    fn an_event_without_an_id_gets_one_that_names_the_history() {
        let events = encoded(&Event::json("T", &[], "1"));
        let id = |history| {
            let mut out = Vec::new();
            cloud_event(&mut out, "main", history, &events.iter().next().expect("one"));
            let document: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
            document["id"].as_str().expect("a text").to_owned()
        };
        let (one, other) = (id(Some(HistoryId(1))), id(Some(HistoryId(2))));
        assert!(one.ends_with("@0000000000000001"), "{one}");
        assert_ne!(one, other);
    }
}
