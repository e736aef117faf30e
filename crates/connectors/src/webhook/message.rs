//! Turns an event into the request that delivers it.

use crate::sink::{PayloadFormat, cloud_event, partition_key};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use std::fmt::Write as _;
use wellspring_log::RecordView;
use wellspring_types::{DataKind, HistoryId, Position};

pub(super) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(super) static LOG: HeaderName = HeaderName::from_static("wellspring-log");
static POSITION: HeaderName = HeaderName::from_static("wellspring-position");
static TYPE: HeaderName = HeaderName::from_static("wellspring-type");
static TAGS: HeaderName = HeaderName::from_static("wellspring-tags");

/// Maximum length of `wellspring-tags`, in bytes. Common servers refuse headers above 8 KiB, and an
/// event that fails every attempt would block its key.
const MAX_TAGS_HEADER_BYTES: usize = 7 << 10;

/// The properties common to all of a sink's events.
pub(super) struct MessageForm {
    /// The log's name in documents.
    pub(super) log_name: String,
    /// Its history, if that is known.
    pub(super) history: Option<HistoryId>,
    /// The sink's identity as the first part of idempotency keys ([`key_part`]).
    pub(super) identity: String,
    /// The content of a body.
    pub(super) format: PayloadFormat,
    /// Prefix of the key tag.
    pub(super) partition_by: Option<String>,
    /// Whether to keep the originals for dead letters.
    pub(super) keep_originals: bool,
}

/// An event to deliver.
#[derive(Debug)]
pub(super) struct Message {
    /// The event's position.
    pub(super) position: Position,
    /// Events with the same key are delivered in order; `None`: in any order.
    pub(super) key: Option<Box<str>>,
    /// Value of `Idempotency-Key` and `webhook-id`.
    pub(super) id: HeaderValue,
    /// The event's own headers.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The request body.
    pub(super) body: Bytes,
    /// The original for a dead letter.
    pub(super) original: Option<Original>,
}

/// The original event.
#[derive(Debug, Clone)]
pub(super) struct Original {
    pub(super) event_type: Box<str>,
    pub(super) tags: Vec<Box<str>>,
    pub(super) kind: DataKind,
    pub(super) data: Bytes,
}

impl MessageForm {
    /// The request that delivers an event.
    pub(super) fn message(&self, event: &RecordView<'_>) -> Message {
        let position = event.position();
        let (content_type, body) = match (self.format, event.kind()) {
            (PayloadFormat::CloudEvents, _) => {
                let mut document = Vec::with_capacity(event.data().len() + 512);
                cloud_event(&mut document, &self.log_name, self.history, event);
                ("application/cloudevents+json", Bytes::from(document))
            }
            (PayloadFormat::Data, DataKind::Json) => {
                ("application/json", Bytes::copy_from_slice(event.data()))
            }
            (PayloadFormat::Data, DataKind::Binary) => {
                ("application/octet-stream", Bytes::copy_from_slice(event.data()))
            }
        };
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (POSITION.clone(), HeaderValue::from(position)),
            (TYPE.clone(), text_value(event.event_type())),
        ];
        headers.extend(tags_value(event).map(|tags| (TAGS.clone(), tags)));
        let original = self.keep_originals.then(|| Original {
            event_type: event.event_type().into(),
            tags: event.tags().map(Box::from).collect(),
            kind: event.kind(),
            data: match self.format {
                PayloadFormat::Data => body.clone(),
                PayloadFormat::CloudEvents => Bytes::copy_from_slice(event.data()),
            },
        });
        let key = self.partition_by.as_deref().and_then(|prefix| partition_key(event, prefix));
        let id = ascii_value(format!("{}-{position}", self.identity));
        Message { position, key: key.map(Box::from), id, headers, body, original }
    }
}

/// The sink's identity as part of an idempotency key. Characters other than letters, digits, `-`
/// and `_` are percent-encoded, because full stops delimit the signed parts.
pub(super) fn key_part(identity: &str) -> String {
    let mut out = String::with_capacity(identity.len());
    for byte in identity.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A text as a header value: the inside of a JSON string. Leading and trailing spaces are escaped
/// because receivers trim them.
pub(super) fn text_value(text: &str) -> HeaderValue {
    let inner = text.trim_matches(' ');
    let before = text.len() - text.trim_start_matches(' ').len();
    let after = text.len() - before - inner.len();
    let mut out = "\\u0020".repeat(before);
    push_escaped(&mut out, inner);
    out.push_str(&"\\u0020".repeat(after));
    ascii_value(out)
}

/// The tags as a JSON array; `None` if that is too long for a header.
fn tags_value(event: &RecordView<'_>) -> Option<HeaderValue> {
    let mut out = String::with_capacity(64);
    for tag in event.tags() {
        out.push_str(if out.is_empty() { "[\"" } else { "\",\"" });
        push_escaped(&mut out, tag);
        if out.len() > MAX_TAGS_HEADER_BYTES {
            return None;
        }
    }
    out.push_str(if out.is_empty() { "[]" } else { "\"]" });
    Some(ascii_value(out))
}

/// Appends the inside of a JSON string, using only visible ASCII and spaces.
fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
}

fn ascii_value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("visible ASCII and spaces")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wellspring_log::EncodedEvents;
    use wellspring_types::Event;

    fn message(event: &Event, format: PayloadFormat) -> Message {
        let form = MessageForm {
            log_name: "main".into(),
            history: None,
            identity: key_part("a.b/c d"),
            format,
            partition_by: Some("order".into()),
            keep_originals: true,
        };
        let mut events = EncodedEvents::new();
        events.push(&event.as_ref()).expect("a valid event");
        form.message(&events.iter().next().expect("one"))
    }

    fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
        let found = message.headers.iter().find(|(given, _)| given == name)?;
        Some(found.1.to_str().expect("ASCII"))
    }

    #[test]
    fn a_request_says_where_its_event_lies() {
        let event = Event::json("OrderPlaced", &["order:7", "größe:\"XL\\"], r#"{"n":1.50}"#);
        let plain = message(&event, PayloadFormat::Data);
        assert_eq!(plain.id, "a%2Eb%2Fc%20d-0");
        assert_eq!(plain.key.as_deref(), Some("7"));
        assert_eq!(header(&plain, "content-type"), Some("application/json"));
        assert_eq!(header(&plain, "wellspring-type"), Some("OrderPlaced"));
        assert_eq!(
            header(&plain, "wellspring-tags"),
            Some(r#"["order:7","gr\u00f6\u00dfe:\"XL\\"]"#)
        );
        assert_eq!(plain.body, r#"{"n":1.50}"#);
        let document = message(&event, PayloadFormat::CloudEvents);
        assert_eq!(header(&document, "content-type"), Some("application/cloudevents+json"));
        assert_eq!(document.original.expect("kept").data, r#"{"n":1.50}"#);
        let json: serde_json::Value = serde_json::from_slice(&document.body).expect("JSON");
        assert_eq!(json["data"]["n"], 1.5);
        let binary = Event { kind: DataKind::Binary, data: vec![0, 255], ..event };
        let binary = message(&binary, PayloadFormat::Data);
        assert_eq!(header(&binary, "content-type"), Some("application/octet-stream"));
        assert_eq!(binary.body, &[0, 255][..]);
    }

    #[test]
    fn more_tags_than_servers_take_in_a_header_are_left_out() {
        let tags: Vec<String> = (0..64).map(|n| format!("{n}:{}", "x".repeat(200))).collect();
        let event = Event { tags, ..Event::json("T", &[], "1") };
        assert_eq!(header(&message(&event, PayloadFormat::Data), "wellspring-tags"), None);
        let event = Event::json("T", &[], "1");
        assert_eq!(header(&message(&event, PayloadFormat::Data), "wellspring-tags"), Some("[]"));
    }

    proptest! {
        #[test]
        fn whatever_a_text_holds_it_is_one_header_and_can_be_read_back(text in any::<String>()) {
            let value = text_value(&text);
            let sent = value.to_str().expect("visible ASCII");
            prop_assert!(sent.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            prop_assert_eq!(sent.trim(), sent);
            let read: String = serde_json::from_str(&format!("\"{sent}\"")).expect("JSON");
            prop_assert_eq!(read, text);
        }
    }
}
