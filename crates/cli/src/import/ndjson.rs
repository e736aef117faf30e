//! Events in the format of the API, which `export` writes, too.

use crate::import::imported_event::{ImportedEvent, PersonalData};
use crate::wire::{Fault, Fields, base64_bytes, fold_tags, string, string_map, strings};
use wellspring_host::clock::{MOMENT_RULE, parse_rfc3339};
use wellspring_types::{DataKind, Event, EventId};

/// Reads one event; counts in `folded` tags that are given twice.
///
/// Of what the server adds to an event, `recorded_at` stays beside it. `position` is dropped, as
/// the new log gives its own, and `history` with it.
pub(crate) fn event(text: &str, folded: &mut u64) -> Result<ImportedEvent, Fault> {
    let mut event_type = None;
    let mut tags = Vec::new();
    let mut data = None;
    let mut id = None;
    let mut metadata = Vec::new();
    let mut recorded_at = None;
    let mut subjects = String::new();
    let mut personal = PersonalData::None;
    for (name, raw) in Fields::parse(text)?.0 {
        match &*name {
            "type" => event_type = Some(string("type", raw)?),
            "tags" => tags = strings("tags", raw)?,
            "data" | "data_base64" if data.is_some() => {
                return Err(Fault::of(
                    "data_base64",
                    "cannot be combined with data; give one of them",
                ));
            }
            "data" => data = Some((DataKind::Json, raw.get().as_bytes().to_vec())),
            "data_base64" => data = Some((DataKind::Binary, base64_bytes("data_base64", raw)?)),
            "id" if raw.get() == "null" => {}
            "id" => id = Some(uuid("id", &string("id", raw)?)?),
            "metadata" => metadata = string_map("metadata", raw)?,
            // The server reads them.
            "subject" | "personal" | "erased" | "withheld" | "unavailable" => {
                subjects.push_str(&format!(",\"{name}\":{}", raw.get()));
                let says = match &*name {
                    "subject" | "personal" if matches!(raw.get(), "null" | "{}") => continue,
                    "subject" | "personal" => PersonalData::Named,
                    "erased" => PersonalData::Erased,
                    _ => PersonalData::Missing,
                };
                personal = personal.max(says);
            }
            "position" | "history" => {}
            "recorded_at" => {
                recorded_at = Some(moment("recorded_at", string("recorded_at", raw)?)?)
            }
            other => {
                let known = "type, tags, data, data_base64, id, metadata, subject, personal, \
                             recorded_at, position, history";
                return Err(Fault::of(other, format!("is not a known field; known here: {known}")));
            }
        }
    }
    let missing = |field: &str| Fault::of(field, "is missing");
    let event_type = event_type.ok_or_else(|| missing("type"))?;
    let (kind, data) = data.ok_or_else(|| missing("data"))?;
    let repeated = fold_tags(&mut tags);
    let event = Event { event_type, tags, data, kind, id, metadata };
    event.as_ref().check()?;
    *folded += repeated;
    Ok(ImportedEvent { event, recorded_at, subjects, personal })
}

/// A text that must be a moment; otherwise the times of all later events would be lost with it.
pub(crate) fn moment(field: &str, text: String) -> Result<String, Fault> {
    match parse_rfc3339(&text) {
        None | Some(0) => Err(Fault::of(field, MOMENT_RULE)),
        Some(_) => Ok(text),
    }
}

/// Reads an event id.
pub(crate) fn uuid(field: &str, text: &str) -> Result<EventId, Fault> {
    EventId::parse(text).ok_or_else(|| {
        Fault::of(field, "must be a UUID, e.g. 018f5c3e-9b2a-7c11-8d3e-0123456789ab")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Result<Event, Fault> {
        super::event(text, &mut 0).map(|read| read.event)
    }

    #[test]
    fn an_event_is_read_with_its_payload_as_written() {
        let text = r#"{"type":"T","tags":["a:1"],"data":{"n": 1.50, "s":"\u00fc"},"id":"018f5c3e-9b2a-7c11-8d3e-0123456789ab","metadata":{"k":"v"}}"#;
        let read = event(text).unwrap();
        assert_eq!(read.data, br#"{"n": 1.50, "s":"\u00fc"}"#);
        assert_eq!((read.tags.len(), read.id.is_some(), read.metadata.len()), (1, true, 1));
        let binary = event(r#"{"type":"T","data_base64":"AP8="}"#).unwrap();
        assert_eq!((binary.kind, binary.data), (DataKind::Binary, vec![0, 255]));
        assert_eq!(event(r#"{"type":"T","data":null}"#).unwrap().data, b"null");
    }

    #[test]
    fn what_export_wrote_can_be_imported() {
        let text = r#"{"position":7,"type":"T","tags":[],"data":1,"id":null,"metadata":{},"recorded_at":"2026-01-01T00:00:00Z","history":"4f1c09d2a87b4e6f"}"#;
        let read = super::event(text, &mut 0).unwrap();
        assert_eq!(read.recorded_at.as_deref(), Some("2026-01-01T00:00:00Z"));
        assert!(read.event.metadata.is_empty());
        let counted = read.counted().metadata;
        assert_eq!(counted, [("recorded_at".into(), "2026-01-01T00:00:00Z".into())]);
        let mut line = Vec::new();
        read.push(&mut line);
        assert_eq!(super::event(std::str::from_utf8(&line).unwrap(), &mut 0), Ok(read));
    }

    #[test]
    fn faults_name_their_field() {
        for (bad, field) in [
            ("{", ""),
            ("[]", ""),
            ("{} {}", ""),
            ("{\"type\":1,\"data\":1}", "type"),
            ("{\"type\":\"\",\"data\":1}", "type"),
            ("{\"data\":1}", "type"),
            ("{\"type\":\"T\"}", "data"),
            ("{\"type\":\"T\",\"type\":\"T\",\"data\":1}", "type"),
            ("{\"type\":\"T\",\"data\":1,\"tags\":[1]}", "tags"),
            ("{\"type\":\"T\",\"data\":1,\"id\":\"x\"}", "id"),
            ("{\"type\":\"T\",\"data\":1,\"metadata\":{\"k\":1}}", "metadata.k"),
            ("{\"type\":\"T\",\"data\":1,\"data_base64\":\"\"}", "data_base64"),
            ("{\"type\":\"T\",\"data_base64\":\"?\"}", "data_base64"),
            ("{\"type\":\"T\",\"data\":1,\"dat\":2}", "dat"),
        ] {
            assert_eq!(event(bad).unwrap_err().field, field, "{bad}");
        }
    }
}
