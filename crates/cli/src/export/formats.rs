//! An event in the formats of an export.

use crate::import::cloudevents::{
    EVENT_ID_ATTRIBUTE, HISTORY_ATTRIBUTE, ID_METADATA, METADATA_ATTRIBUTE, POSITION_ATTRIBUTE,
    RECORDED_AT_ATTRIBUTE, TAGS_ATTRIBUTE,
};
use crate::wire::{Fields, RecordedEvent, Text, push_string};
use wellspring_host::clock::parse_rfc3339;
use wellspring_host::http::history::ResumePoint;
use wellspring_types::{EventId, HistoryId};

/// Appends an event as the server sent it, with the history of its log as the last member.
pub(super) fn push_line(out: &mut Vec<u8>, line: &str, history: Option<HistoryId>) {
    let (Some(history), Some(members)) = (history, line.trim_end().strip_suffix('}')) else {
        return out.extend_from_slice(line.as_bytes());
    };
    out.extend_from_slice(format!("{members},\"history\":\"{history}\"}}").as_bytes());
}

/// Appends an event as CloudEvents 1.0 has it in JSON, with extension attributes for the rest.
pub(super) fn push_cloudevent(
    out: &mut Vec<u8>,
    event: &RecordedEvent<'_>,
    history: Option<HistoryId>,
) {
    let mut member = |name: &str, value: &str| {
        out.extend_from_slice(if out.is_empty() { b"{" } else { b"," });
        push_string(out, name);
        out.push(b':');
        push_string(out, value);
    };
    // Empty attributes count as absent.
    let tag = |key: &str| {
        let values = event.tags.iter().filter_map(|tag| tag.0.strip_prefix(key));
        values.into_iter().find(|value| !value.is_empty())
    };
    let given = event.id.as_ref().map(|id| id.0.to_string());
    let named = event.metadata_value(ID_METADATA).filter(|id| !id.is_empty());
    let id = named.or_else(|| given.clone()).unwrap_or_else(|| place(event, history));
    member("specversion", "1.0");
    member("id", &id);
    if EventId::parse(&id) != given.as_deref().and_then(EventId::parse) {
        member(EVENT_ID_ATTRIBUTE, given.as_deref().unwrap_or_default());
    }
    member("source", tag("source:").unwrap_or("wellspring"));
    member("type", &event.event_type);
    if let Some(subject) = tag("subject:") {
        member("subject", subject);
    }
    let recorded_at = event.recorded_at.as_ref().map(|time| time.0.to_string());
    // Metadata hold any text; the attribute is a moment as RFC 3339 has it, or it is no CloudEvent.
    let given = event.metadata_value("time").filter(|time| is_rfc3339(time));
    if let Some(time) = given.or(recorded_at.clone()) {
        member("time", &time);
    }
    if let Some(time) = recorded_at {
        member(RECORDED_AT_ATTRIBUTE, &time);
    }
    member(POSITION_ATTRIBUTE, &event.position.to_string());
    if let Some(history) = history {
        member(HISTORY_ATTRIBUTE, &history.to_string());
    }
    let tags: Vec<&str> = event.tags.iter().map(|tag| &*tag.0).collect();
    member(TAGS_ATTRIBUTE, &json_list(&tags));
    // Present even if empty: then import does not turn the attributes above into metadata.
    let metadata = event.metadata.as_ref().map_or_else(|| "{}".to_owned(), json_object);
    member(METADATA_ATTRIBUTE, &metadata);
    match (&event.data, &event.data_base64) {
        (_, Some(bytes)) => member("data_base64", &bytes.0),
        (Some(data), None) => {
            member("datacontenttype", "application/json");
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.get().as_bytes());
        }
        (None, None) => {}
    }
    out.push(b'}');
}

/// The id of an event without one: its position. `source` and `id` together identify an event
/// anywhere, and `source` may be another producer's. A position alone is one of every log, so the
/// history, which no other log has, is part of it.
fn place(event: &RecordedEvent<'_>, history: Option<HistoryId>) -> String {
    ResumePoint { position: event.position, history }.to_string()
}

/// Whether a text is a `date-time` of RFC 3339: parsing takes dates alone and a space for the `T`
/// as well.
fn is_rfc3339(text: &str) -> bool {
    text.as_bytes().get(10).is_some_and(|byte| b"Tt".contains(byte))
        && parse_rfc3339(text).is_some()
}

fn json_list(items: &[&str]) -> String {
    serde_json::to_string(items).unwrap_or_default()
}

fn json_object(fields: &Fields<'_>) -> String {
    let mut out = vec![b'{'];
    for (i, (name, raw)) in fields.0.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(raw.get().as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a row as RFC 4180 has it.
pub(super) fn push_csv(out: &mut Vec<u8>, event: &RecordedEvent<'_>) {
    let tags: Vec<&str> = event.tags.iter().map(|tag| &*tag.0).collect();
    let text = |value: &Option<Text<'_>>| {
        value.as_ref().map(|text| text.0.to_string()).unwrap_or_default()
    };
    let cells = [
        event.position.to_string(),
        text(&event.recorded_at),
        event.event_type.to_string(),
        json_list(&tags),
        text(&event.id),
        event.metadata.as_ref().map(json_object).unwrap_or_default(),
        event.data.map(|data| data.get().to_owned()).unwrap_or_default(),
        text(&event.data_base64),
    ];
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if cell.contains(['"', ',', '\r', '\n']) {
            out.extend_from_slice(format!("\"{}\"", cell.replace('"', "\"\"")).as_bytes());
        } else {
            out.extend_from_slice(cell.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::imported_event::ImportedEvent;
    use proptest::prelude::*;
    use wellspring_types::{DataKind, Event};

    const LINE: &str = r#"{"position":7,"type":"T","tags":["source:/s","subject:b"],"data":{"a":"x, \"y\""},"id":"018f5c3e-9b2a-7c11-8d3e-0123456789ab","metadata":{"k":"v"},"recorded_at":"2026-01-01T00:00:00.000000Z"}"#;

    #[test]
    fn a_cloudevent_can_be_imported_again() {
        let mut out = Vec::new();
        push_cloudevent(&mut out, &RecordedEvent::parse(LINE).unwrap(), None);
        let text = String::from_utf8(out).unwrap();
        let event = crate::import::cloudevents::event(&text, &mut 0).unwrap();
        assert_eq!(event.recorded_at.as_deref(), Some("2026-01-01T00:00:00.000000Z"));
        let event = event.event;
        assert_eq!(event.tags, ["source:/s", "subject:b"]);
        assert_eq!(event.metadata, [("k".to_owned(), "v".to_owned())]);
        assert_eq!(event.data, br#"{"a":"x, \"y\""}"#);
        assert!(event.id.is_some());
        let mut out = Vec::new();
        push_cloudevent(
            &mut out,
            &RecordedEvent::parse(r#"{"position":1,"type":"T","data":1}"#).unwrap(),
            Some(HistoryId(7)),
        );
        let event = crate::import::cloudevents::event(std::str::from_utf8(&out).unwrap(), &mut 0);
        assert_eq!(event.unwrap(), wellspring_types::Event::json("T", &[], "1").into());
    }

    /// CloudEvents 1.0: "Producers MUST ensure that source + id is unique for each distinct event."
    #[test]
    fn events_without_an_id_have_ids_that_no_other_log_gives() {
        let exported = |line: &str, history| {
            let mut out = Vec::new();
            push_cloudevent(&mut out, &RecordedEvent::parse(line).unwrap(), history);
            let event: serde_json::Value = serde_json::from_slice(&out).unwrap();
            (event["source"].clone(), event["id"].clone())
        };
        let bare = r#"{"position":7,"type":"T","data":1}"#;
        let sourced = r#"{"position":7,"type":"T","tags":["source:/shop"],"data":1}"#;
        for line in [bare, sourced] {
            let (one, other) = (Some(HistoryId(7)), Some(HistoryId(8)));
            assert_ne!(exported(line, one), exported(line, other));
            assert_eq!(exported(line, one).1, "7@0000000000000007");
        }
        // An id of the event's own is one everywhere, wherever the event was copied to.
        assert_eq!(exported(LINE, Some(HistoryId(7))), exported(LINE, Some(HistoryId(8))));
    }

    /// As earlier versions wrote it.
    #[test]
    fn a_cloudevent_whose_id_is_a_position_alone_is_imported_as_it_was() {
        let old = r#"{"specversion":"1.0","id":"7","source":"wellspring","type":"T","wellspringposition":"7","wellspringtags":"[]","wellspringmetadata":"{}","datacontenttype":"application/json","data":1}"#;
        let event = crate::import::cloudevents::event(old, &mut 0).unwrap();
        assert_eq!(event, wellspring_types::Event::json("T", &[], "1").into());
    }

    #[test]
    fn the_time_of_a_cloudevent_is_a_moment_whatever_the_metadata_say() {
        let exported = |time: &str| {
            let line = LINE.replace(r#"{"k":"v"}"#, &format!(r#"{{"time":"{time}"}}"#));
            let mut out = Vec::new();
            push_cloudevent(&mut out, &RecordedEvent::parse(&line).unwrap(), None);
            let event: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let metadata: String = event[METADATA_ATTRIBUTE].as_str().unwrap().to_owned();
            assert!(metadata.contains(time), "nothing is lost: {metadata}");
            event["time"].as_str().unwrap().to_owned()
        };
        assert_eq!(exported("2026-04-05T17:31:00+02:00"), "2026-04-05T17:31:00+02:00");
        for other in ["yesterday", "2026-04-05", "2026-04-05 17:31:00Z", "1775410260"] {
            assert_eq!(exported(other), "2026-01-01T00:00:00.000000Z", "{other}");
        }
    }

    #[test]
    fn a_csv_row_is_quoted() {
        let mut out = Vec::new();
        push_csv(&mut out, &RecordedEvent::parse(LINE).unwrap());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"7,2026-01-01T00:00:00.000000Z,T,"[""source:/s"",""subject:b""]","#,
                r#"018f5c3e-9b2a-7c11-8d3e-0123456789ab,"{""k"":""v""}","{""a"":""x, \""y\""""}","#,
                ""
            )
        );
    }

    #[test]
    fn a_line_names_the_history_last_and_can_be_imported_again() {
        let mut out = Vec::new();
        push_line(&mut out, LINE, Some(HistoryId(0xff)));
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with(r#"Z","history":"00000000000000ff"}"#), "{text}");
        let imported = crate::import::ndjson::event(&text, &mut 0);
        assert_eq!(imported, crate::import::ndjson::event(LINE, &mut 0));
    }
    /// Any event, and the line in which the server gives it.
    fn recorded_line() -> impl Strategy<Value = (ImportedEvent, String)> {
        let name = "[a-zé:\"]{1,12}";
        let tag = prop_oneof![name, Just("source:".to_owned()), Just("subject:x".to_owned())];
        let key = prop_oneof![
            name,
            Just(ID_METADATA.to_owned()),
            Just("time".to_owned()),
            Just("recorded_at".to_owned())
        ];
        let uuid = "0189[0-9a-f]{4}-9b2a-7c11-8d3e-[0-9a-f]{12}";
        let value = prop_oneof![any::<String>(), uuid];
        let data = prop_oneof![
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap().into_bytes()),
            Just(br#"{"n" : 1.50, "n":[null , "\u00e9"]}"#.to_vec()),
            Just(b"null".to_vec()),
        ];
        let data = prop_oneof![
            data.prop_map(|text| (DataKind::Json, text)),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| (DataKind::Binary, bytes)),
        ];
        let parts = (
            name,
            prop::collection::btree_set(tag, 0..5).prop_map(Vec::from_iter).prop_shuffle(),
            data,
            proptest::option::of(uuid),
            prop::collection::btree_map(key, value, 0..5).prop_map(Vec::from_iter).prop_shuffle(),
        );
        parts.prop_map(|(event_type, tags, (kind, data), id, metadata)| {
            let id = id.map(|id| EventId::parse(&id).unwrap());
            let event = Event { event_type, tags, data, kind, id, metadata };
            let recorded_at = Some("2026-01-01T00:00:00.000001Z".to_owned());
            let imported = ImportedEvent { recorded_at, ..ImportedEvent::from(event) };
            let mut line = b"{\"position\":7,".to_vec();
            let mut rest = Vec::new();
            imported.push(&mut rest);
            line.extend_from_slice(&rest[1..]);
            (imported, String::from_utf8(line).unwrap())
        })
    }

    proptest! {
        #[test]
        fn an_event_comes_back_as_it_was((event, line) in recorded_line()) {
            let recorded = RecordedEvent::parse(&line).unwrap();
            let history = Some(HistoryId(7));
            let mut ndjson = Vec::new();
            push_line(&mut ndjson, &line, history);
            let mut cloudevent = Vec::new();
            push_cloudevent(&mut cloudevent, &recorded, history);
            let text = std::str::from_utf8(&ndjson).unwrap();
            prop_assert_eq!(&crate::import::ndjson::event(text, &mut 0).unwrap(), &event);
            let text = std::str::from_utf8(&cloudevent).unwrap();
            prop_assert_eq!(&crate::import::cloudevents::event(text, &mut 0).unwrap(), &event, "{}", text);
            // For other readers: what the standard demands of attributes.
            let attributes: serde_json::Value = serde_json::from_str(text).unwrap();
            for required in ["id", "source", "type"] {
                prop_assert!(attributes[required].as_str().is_some_and(|text| !text.is_empty()));
            }
            prop_assert!(attributes.get("subject").is_none_or(|subject| subject != ""));
        }
    }
}
