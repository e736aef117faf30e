//! Events as JSON: written for an append, read from a stream, a payload's bytes
//! untouched on both ways.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use wellspring_host::wire::json::base64_fault;
use wellspring_types::valid::join_path;
use wellspring_types::{DataKind, Event};

/// The error in one event of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The field, or empty for the event as a whole.
    pub field: String,
    /// The rule it breaks.
    pub(crate) what: String,
}

impl Fault {
    /// A fault of a field.
    pub(crate) fn of(field: impl Into<String>, what: impl Into<String>) -> Fault {
        Fault { field: field.into(), what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.what);
        }
        write!(f, "{}: {}", self.field, self.what)
    }
}

impl From<wellspring_types::Invalid> for Fault {
    fn from(invalid: wellspring_types::Invalid) -> Fault {
        Fault::of(invalid.field, invalid.reason.to_string())
    }
}

/// The members of a JSON object in their order, values as written. Reading in
/// two steps is what lets a fault name its field.
#[derive(Debug)]
pub(crate) struct Fields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads an object; a repeated member is a fault.
    pub(crate) fn parse(text: &'a str) -> Result<Fields<'a>, Fault> {
        let fields: Fields<'a> = serde_json::from_str(text)
            .map_err(|error| Fault::of("", format!("must be one JSON object ({error})")))?;
        for (i, (name, _)) in fields.0.iter().enumerate() {
            if fields.0[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(Fault::of(&**name, "appears twice; remove one"));
            }
        }
        Ok(fields)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'a>, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut all = Vec::with_capacity(8);
                while let Some(Text(name)) = map.next_key()? {
                    all.push((name, map.next_value()?));
                }
                Ok(Fields(all))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A JSON string, borrowed where it has no escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Reads a value that must be a string.
pub(crate) fn string(field: &str, raw: &RawValue) -> Result<String, Fault> {
    serde_json::from_str::<Text<'_>>(raw.get())
        .map(|text| text.0.into_owned())
        .map_err(|_| Fault::of(field, format!("must be a string, not {}", excerpt(raw.get()))))
}

/// Reads a value that must be a list of strings.
pub(crate) fn strings(field: &str, raw: &RawValue) -> Result<Vec<String>, Fault> {
    serde_json::from_str(raw.get()).map_err(|_| {
        Fault::of(field, format!("must be an array of strings, not {}", excerpt(raw.get())))
    })
}

/// Reads a value that must be an object of strings.
pub(crate) fn string_map(field: &str, raw: &RawValue) -> Result<Vec<(String, String)>, Fault> {
    let fields = Fields::parse(raw.get()).map_err(|fault| Fault::of(field, fault.what))?;
    let pair = |(name, value): (Cow<'_, str>, &RawValue)| {
        let value = string(&join_path(field, &name), value)?;
        Ok((name.into_owned(), value))
    };
    fields.0.into_iter().map(pair).collect()
}

/// Reads a value that must be Base64.
pub(crate) fn base64_bytes(field: &str, raw: &RawValue) -> Result<Vec<u8>, Fault> {
    base64_bytes_of(field, &string(field, raw)?)
}

/// Reads a text that must be Base64.
pub(crate) fn base64_bytes_of(field: &str, text: &str) -> Result<Vec<u8>, Fault> {
    STANDARD
        .decode(text)
        .map_err(|error| Fault::of(field, format!("is not Base64: {}", base64_fault(error))))
}

/// Takes out tags that are given a second time; returns how many.
pub(crate) fn fold_tags(tags: &mut Vec<String>) -> u64 {
    let given = tags.len();
    let mut at = 0;
    while at < tags.len() {
        if tags[..at].contains(&tags[at]) {
            tags.remove(at);
        } else {
            at += 1;
        }
    }
    (given - tags.len()) as u64
}

/// The beginning of a text, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    excerpt_of(text, 40)
}

/// Truncates a text for a message.
pub(crate) fn excerpt_of(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Appends a JSON string.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    // Writing a str to a Vec cannot fail: neither side has an error to give.
    let _ = serde_json::to_writer(out, text);
}

/// Appends the object that `POST …/append` takes for one event.
pub(crate) fn push_event(out: &mut Vec<u8>, event: &Event) {
    out.extend_from_slice(b"{\"type\":");
    push_string(out, &event.event_type);
    out.extend_from_slice(b",\"tags\":[");
    for (i, tag) in event.tags.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(out, tag);
    }
    match event.kind {
        DataKind::Json => {
            out.extend_from_slice(b"],\"data\":");
            out.extend_from_slice(&event.data);
        }
        DataKind::Binary => {
            out.extend_from_slice(b"],\"data_base64\":\"");
            out.extend_from_slice(STANDARD.encode(&event.data).as_bytes());
            out.push(b'"');
        }
    }
    if let Some(id) = event.id {
        out.extend_from_slice(format!(",\"id\":\"{id}\"").as_bytes());
    }
    if !event.metadata.is_empty() {
        out.extend_from_slice(b",\"metadata\":{");
        for (i, (key, value)) in event.metadata.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            push_string(out, key);
            out.push(b':');
            push_string(out, value);
        }
        out.push(b'}');
    }
    out.push(b'}');
}

/// An event as the server gives it.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordedEvent<'a> {
    /// Its place in the log.
    pub(crate) position: u64,
    /// Its type.
    #[serde(borrow, rename = "type")]
    pub(crate) event_type: Cow<'a, str>,
    /// Its tags.
    #[serde(borrow, default)]
    pub(crate) tags: Vec<Text<'a>>,
    /// Its payload, if that is JSON.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) data: Option<&'a RawValue>,
    /// Its payload, if that is not JSON.
    #[serde(borrow, default)]
    pub(crate) data_base64: Option<Text<'a>>,
    /// The client's name for it.
    #[serde(borrow, default)]
    pub(crate) id: Option<Text<'a>>,
    /// Its metadata.
    #[serde(borrow, default)]
    pub(crate) metadata: Option<Fields<'a>>,
    /// When it was recorded.
    #[serde(borrow, default)]
    pub(crate) recorded_at: Option<Text<'a>>,
}

/// A present member, including `null`, which `Option` alone would treat as absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> RecordedEvent<'a> {
    /// Reads one event of an answer.
    ///
    /// # Errors
    /// A sentence; the server did not send what it promises.
    pub(crate) fn parse(text: &'a str) -> Result<RecordedEvent<'a>, String> {
        serde_json::from_str(text)
            .map_err(|error| format!("the server sent {}, not an event ({error})", excerpt(text)))
    }

    /// A metadata value that is a string.
    pub(crate) fn metadata_value(&self, key: &str) -> Option<String> {
        let fields = self.metadata.as_ref()?;
        let (_, raw) = fields.0.iter().find(|(name, _)| name == key)?;
        string(key, raw).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_types::EventId;

    #[test]
    fn an_event_is_written_as_the_api_takes_it() {
        let mut event = Event::json("Ty\"pe", &["a:1", "ü"], "{\"n\": 1.50}");
        event.id = EventId::parse("018f5c3e-9b2a-7c11-8d3e-0123456789ab");
        event.metadata.push(("k".into(), "v\n".into()));
        let mut out = Vec::new();
        push_event(&mut out, &event);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"type":"Ty\"pe","tags":["a:1","ü"],"data":{"n": 1.50},"id":"018f5c3e-9b2a-7c11-8d3e-0123456789ab","metadata":{"k":"v\n"}}"#
        );
        let mut out = Vec::new();
        let binary =
            Event { kind: DataKind::Binary, data: vec![0, 255], ..Event::json("T", &[], "") };
        push_event(&mut out, &binary);
        assert_eq!(out, br#"{"type":"T","tags":[],"data_base64":"AP8="}"#);
    }

    #[test]
    fn a_null_payload_is_not_an_absent_one() {
        let read = |text| RecordedEvent::parse(text).unwrap().data.map(|d| d.get().to_owned());
        assert_eq!(read(r#"{"position":1,"type":"T","data":null}"#).as_deref(), Some("null"));
        assert_eq!(read(r#"{"position":1,"type":"T"}"#), None);
    }
}
