//! CloudEvents 1.0 in its JSON format.
//!
//! `type` is the event's type; `source` and `subject` become tags, because queries use them; `id`,
//! `time` and every other attribute become metadata.

use crate::import::imported_event::ImportedEvent;
use crate::import::ndjson::{moment, uuid};
use crate::wire::{Fault, Fields, base64_bytes, excerpt, fold_tags, string, string_map, strings};
use serde_json::value::RawValue;
use wellspring_types::{DataKind, Event, EventId};

/// Extension attribute in which `export` keeps the tags, as a JSON array.
pub(crate) const TAGS_ATTRIBUTE: &str = "wellspringtags";
/// Extension attribute in which `export` keeps the metadata, as a JSON object.
pub(crate) const METADATA_ATTRIBUTE: &str = "wellspringmetadata";
/// Extension attribute in which `export` writes the position.
pub(crate) const POSITION_ATTRIBUTE: &str = "wellspringposition";
/// Extension attribute in which `export` writes the history of the position.
pub(crate) const HISTORY_ATTRIBUTE: &str = "wellspringhistory";
/// Extension attribute in which `export` writes the time at which the event was recorded.
pub(crate) const RECORDED_AT_ATTRIBUTE: &str = "wellspringrecordedat";
/// Extension attribute in which `export` keeps the event's id if `id` does not say it: empty for an
/// event that has none.
pub(crate) const EVENT_ID_ATTRIBUTE: &str = "wellspringid";
/// Metadata key of the CloudEvent's own id.
pub(crate) const ID_METADATA: &str = "ce_id";

#[derive(Default)]
struct Attributes {
    version: Option<String>,
    event_type: Option<String>,
    id: Option<String>,
    source: Option<String>,
    subject: Option<String>,
    data: Option<(DataKind, Vec<u8>)>,
    tags: Option<Vec<String>>,
    metadata: Option<Vec<(String, String)>>,
    recorded_at: Option<String>,
    event_id: Option<String>,
    others: Vec<(String, String)>,
}

/// Reads one event; counts in `folded` tags that are given twice.
pub(crate) fn event(text: &str, folded: &mut u64) -> Result<ImportedEvent, Fault> {
    let mut read = Attributes::default();
    for (name, raw) in Fields::parse(text)?.0 {
        // Null means an absent attribute; in `data` it is a value.
        if raw.get() != "null" || name == "data" {
            read.take(&name, raw)?;
        }
    }
    let required = |value: Option<String>, field: &str| match value {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(Fault::of(field, "is missing; CloudEvents requires it")),
    };
    match read.version.as_deref() {
        Some("1.0") => {}
        Some(other) => {
            let what = format!("must be 1.0, not {}", excerpt(other));
            return Err(Fault::of("specversion", what));
        }
        None => return Err(Fault::of("specversion", "is missing; is this a CloudEvent?")),
    }
    let event_type = required(read.event_type, "type")?;
    let id = required(read.id, "id")?;
    let source = required(read.source, "source")?;
    let mut tags = read.tags.unwrap_or_else(|| {
        let subject = read.subject.filter(|subject| !subject.is_empty());
        let subject = subject.map(|subject| format!("subject:{subject}"));
        [Some(format!("source:{source}")), subject].into_iter().flatten().collect()
    });
    let (kind, data) = read.data.unwrap_or_else(|| (DataKind::Json, b"null".to_vec()));
    let named = match read.event_id.as_deref() {
        None => EventId::parse(&id),
        Some("") => None,
        Some(given) => Some(uuid(EVENT_ID_ATTRIBUTE, given)?),
    };
    let repeated = fold_tags(&mut tags);
    let metadata = match read.metadata {
        Some(metadata) => metadata,
        None => [vec![(ID_METADATA.to_owned(), id)], read.others].concat(),
    };
    let event = Event { event_type, tags, data, kind, id: named, metadata };
    event.as_ref().check()?;
    *folded += repeated;
    Ok(ImportedEvent { recorded_at: read.recorded_at, ..ImportedEvent::from(event) })
}

impl Attributes {
    fn take(&mut self, name: &str, raw: &RawValue) -> Result<(), Fault> {
        match name {
            "specversion" => self.version = Some(string(name, raw)?),
            "type" => self.event_type = Some(string(name, raw)?),
            "id" => self.id = Some(string(name, raw)?),
            "source" => self.source = Some(string(name, raw)?),
            "subject" => self.subject = Some(string(name, raw)?),
            "data" | "data_base64" if self.data.is_some() => {
                return Err(Fault::of(
                    "data_base64",
                    "cannot be combined with data; give one of them",
                ));
            }
            "data" => self.data = Some((DataKind::Json, raw.get().as_bytes().to_vec())),
            "data_base64" => self.data = Some((DataKind::Binary, base64_bytes(name, raw)?)),
            TAGS_ATTRIBUTE => self.tags = Some(strings(name, nested(name, raw)?.as_ref())?),
            METADATA_ATTRIBUTE => {
                self.metadata = Some(string_map(name, nested(name, raw)?.as_ref())?);
            }
            POSITION_ATTRIBUTE | HISTORY_ATTRIBUTE => {}
            RECORDED_AT_ATTRIBUTE => self.recorded_at = Some(moment(name, string(name, raw)?)?),
            EVENT_ID_ATTRIBUTE => self.event_id = Some(string(name, raw)?),
            "time" => self.others.push(("time".to_owned(), string(name, raw)?)),
            other => self.others.push((format!("ce_{other}"), scalar(other, raw)?)),
        }
        Ok(())
    }
}

/// JSON inside a string: attributes of CloudEvents cannot hold arrays or objects.
fn nested(name: &str, raw: &RawValue) -> Result<Box<RawValue>, Fault> {
    RawValue::from_string(string(name, raw)?)
        .map_err(|_| Fault::of(name, "must hold JSON in a string"))
}

/// An attribute's value as text: strings bare, numbers and booleans as written.
fn scalar(name: &str, raw: &RawValue) -> Result<String, Fault> {
    match raw.get().as_bytes().first() {
        Some(b'"') => string(name, raw),
        Some(b'{' | b'[') => {
            Err(Fault::of(name, "must be a string, number or boolean, like every attribute"))
        }
        _ => Ok(raw.get().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Result<Event, Fault> {
        super::event(text, &mut 0).map(|read| read.event)
    }

    #[test]
    fn attributes_find_their_places() {
        let text = r#"{"specversion":"1.0","type":"com.example.x","source":"/cloud/1","subject":"blob:7",
            "id":"018f5c3e-9b2a-7c11-8d3e-0123456789ab","time":"2026-04-05T17:31:00Z","datacontenttype":"application/json",
            "partitionkey":5,"flag":true,"nothing":null,"data":{"a": 1.0}}"#;
        let read = event(text).unwrap();
        assert_eq!(read.event_type, "com.example.x");
        assert_eq!(read.tags, ["source:/cloud/1", "subject:blob:7"]);
        assert_eq!(read.data, br#"{"a": 1.0}"#);
        assert_eq!(read.id, EventId::parse("018f5c3e-9b2a-7c11-8d3e-0123456789ab"));
        let metadata: Vec<_> = read.metadata.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            metadata,
            [
                "ce_id=018f5c3e-9b2a-7c11-8d3e-0123456789ab",
                "time=2026-04-05T17:31:00Z",
                "ce_datacontenttype=application/json",
                "ce_partitionkey=5",
                "ce_flag=true"
            ]
        );
    }

    #[test]
    fn an_id_of_any_form_and_no_data_or_bytes() {
        let read = event(r#"{"specversion":"1.0","type":"T","source":"s","id":"A-1"}"#).unwrap();
        assert_eq!((read.id, read.data.as_slice()), (None, &b"null"[..]));
        assert_eq!(read.metadata, [("ce_id".into(), "A-1".into())]);
        let read =
            event(r#"{"specversion":"1.0","type":"T","source":"s","id":"1","data_base64":"AQ=="}"#)
                .unwrap();
        assert_eq!((read.kind, read.data), (DataKind::Binary, vec![1]));
    }

    #[test]
    fn what_is_not_a_cloudevent_is_told_so() {
        for (bad, field) in [
            (r#"{"type":"T","source":"s","id":"1"}"#, "specversion"),
            (r#"{"specversion":"0.3","type":"T","source":"s","id":"1"}"#, "specversion"),
            (r#"{"specversion":"1.0","source":"s","id":"1"}"#, "type"),
            (r#"{"specversion":"1.0","type":"T","source":"","id":"1"}"#, "source"),
            (r#"{"specversion":"1.0","type":"T","source":"s"}"#, "id"),
            (r#"{"specversion":"1.0","type":"T","source":"s","id":"1","x":[]}"#, "x"),
            (
                r#"{"specversion":"1.0","type":"T","source":"s","id":"1","data":1,"data_base64":""}"#,
                "data_base64",
            ),
        ] {
            assert_eq!(event(bad).unwrap_err().field, field, "{bad}");
        }
    }
}
