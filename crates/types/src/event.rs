//! The event: what happened, said once, never changed.

use crate::limits;
use crate::valid::{Invalid, Reason, check_tags, check_text};
use std::fmt;

/// How the payload is to be understood. The log stores both alike and never
/// looks inside; the wire needs to know whether bytes may be sent as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataKind {
    /// One JSON value, kept byte for byte as it was sent.
    Json,
    /// Opaque bytes.
    Binary,
}

/// A client's name for an event, unique in its log (a UUID of any version).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub [u8; 16]);

impl EventId {
    /// Reads the 36-character form `8-4-4-4-12`, either case. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<EventId> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return None;
        }
        let mut id = [0u8; 16];
        let mut nibble = 0;
        for (i, &byte) in bytes.iter().enumerate() {
            if matches!(i, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return None;
                }
                continue;
            }
            let value = (byte as char).to_digit(16)? as u8;
            id[nibble / 2] = id[nibble / 2] << 4 | value;
            nibble += 1;
        }
        Some(EventId(id))
    }
}

/// The only one of these tags with this key, such as `student:8f14e45f` for `student`; `None` if
/// there is none, or more than one.
pub fn only_tag_of<'t, T: AsRef<str>>(tags: &'t [T], key: &str) -> Option<&'t T> {
    let has_key =
        |tag: &&T| tag.as_ref().strip_prefix(key).is_some_and(|value| value.starts_with(':'));
    let mut found = tags.iter().filter(has_key);
    found.next().filter(|_| found.next().is_none())
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventId({self})")
    }
}

/// An event to be appended, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What kind of thing happened: 1–255 bytes, no control characters.
    pub event_type: String,
    /// What it concerns, usually `key:value`; at most 64, no duplicates.
    pub tags: Vec<String>,
    /// The payload, at most 1 MiB.
    pub data: Vec<u8>,
    /// How the payload is to be understood.
    pub kind: DataKind,
    /// The client's own name for the event; makes a retry safe.
    pub id: Option<EventId>,
    /// Facts about the event that queries do not see (correlation, causation, …).
    pub metadata: Vec<(String, String)>,
}

impl Event {
    /// An event with a JSON payload and nothing else.
    #[must_use]
    pub fn json(event_type: &str, tags: &[&str], data: &str) -> Event {
        Event {
            event_type: event_type.to_owned(),
            tags: tags.iter().map(|&t| t.to_owned()).collect(),
            data: data.as_bytes().to_vec(),
            kind: DataKind::Json,
            id: None,
            metadata: Vec::new(),
        }
    }
}

/// An event to be appended, borrowed from wherever it was parsed.
#[derive(Debug, Clone, Copy)]
pub struct EventRef<'a, T: AsRef<str> = &'a str> {
    /// See [`Event::event_type`].
    pub event_type: &'a str,
    /// See [`Event::tags`].
    pub tags: &'a [T],
    /// See [`Event::data`].
    pub data: &'a [u8],
    /// See [`Event::kind`].
    pub kind: DataKind,
    /// See [`Event::id`].
    pub id: Option<EventId>,
    /// See [`Event::metadata`].
    pub metadata: &'a [(T, T)],
}

impl<T: AsRef<str>> EventRef<'_, T> {
    /// Checks every limit of [`limits`].
    ///
    /// # Errors
    /// [`Invalid`] with a path that starts inside the event (`type`, `tags[2]`, `data`,
    /// `metadata.key`).
    pub fn check(&self) -> Result<(), Invalid> {
        let at = |field: &str, reason| Invalid { field: field.to_owned(), reason };
        check_text(self.event_type, limits::MAX_TYPE_BYTES).map_err(|r| at("type", r))?;
        check_tags(self.tags)?;
        if self.data.len() > limits::MAX_DATA_BYTES {
            let reason = Reason::TooLong { bytes: self.data.len(), limit: limits::MAX_DATA_BYTES };
            return Err(at("data", reason));
        }
        self.check_metadata()
    }

    fn check_metadata(&self) -> Result<(), Invalid> {
        let count = self.metadata.len();
        if count > limits::MAX_METADATA_ENTRIES {
            let reason = Reason::TooMany { count, limit: limits::MAX_METADATA_ENTRIES };
            return Err(Invalid { field: "metadata".into(), reason });
        }
        for (i, (key, value)) in self.metadata.iter().enumerate() {
            let (key, value) = (key.as_ref(), value.as_ref());
            let fault = |reason| Invalid { field: format!("metadata.{key}"), reason };
            check_text(key, limits::MAX_METADATA_KEY_BYTES).map_err(fault)?;
            if value.len() > limits::MAX_METADATA_VALUE_BYTES {
                return Err(fault(Reason::TooLong {
                    bytes: value.len(),
                    limit: limits::MAX_METADATA_VALUE_BYTES,
                }));
            }
            if self.metadata[..i].iter().any(|(earlier, _)| earlier.as_ref() == key) {
                return Err(fault(Reason::Duplicate { element: "key" }));
            }
        }
        Ok(())
    }
}

impl Event {
    /// The same event, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> EventRef<'_, String> {
        EventRef {
            event_type: &self.event_type,
            tags: &self.tags,
            data: &self.data,
            kind: self.kind,
            id: self.id,
            metadata: &self.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_written() {
        let text = "018f5c3e-9b2a-7c11-8d3e-0123456789ab";
        let id = EventId::parse(text).unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(EventId::parse(&text.to_uppercase()), Some(id));
    }

    #[test]
    fn malformed_ids_are_refused() {
        for bad in [
            "",
            "018f5c3e9b2a7c118d3e0123456789ab",
            "018f5c3e-9b2a-7c11-8d3e-0123456789ag",
            "018f5c3e-9b2a-7c11-8d3e+0123456789ab",
            "018f5c3e-9b2a-7c11-8d3e-0123456789abc",
            "018f5c3é-9b2a-7c11-8d3e-0123456789a",
        ] {
            assert_eq!(EventId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_limit_of_an_event_is_checked() {
        let good = Event::json("T", &["a:1"], "{}");
        assert!(good.as_ref().check().is_ok());
        let fails = |change: &dyn Fn(&mut Event)| {
            let mut event = good.clone();
            change(&mut event);
            event.as_ref().check().unwrap_err().field
        };
        assert_eq!(fails(&|e| e.event_type.clear()), "type");
        assert_eq!(fails(&|e| e.event_type = "x".repeat(256)), "type");
        assert_eq!(fails(&|e| e.tags.push("a:1".into())), "tags[1]");
        assert_eq!(fails(&|e| e.tags = (0..65).map(|i| i.to_string()).collect()), "tags");
        assert_eq!(fails(&|e| e.data = vec![0; limits::MAX_DATA_BYTES + 1]), "data");
        assert_eq!(fails(&|e| e.metadata.push((String::new(), "v".into()))), "metadata.");
        assert_eq!(fails(&|e| e.metadata.push(("k".into(), "v".repeat(4097)))), "metadata.k");
        assert_eq!(
            fails(&|e| e.metadata = vec![("k".into(), "1".into()), ("k".into(), "2".into())]),
            "metadata.k"
        );
    }
}
