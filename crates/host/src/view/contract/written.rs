//! Events as views write them.

use serde::Serialize;
use wellspring_types::{DataKind, Event};

/// An event with JSON data and no other properties.
#[must_use]
pub fn event(event_type: &str, tags: Vec<String>, data: Vec<u8>) -> Event {
    Event {
        event_type: event_type.to_owned(),
        tags,
        data,
        kind: DataKind::Json,
        id: None,
        metadata: Vec::new(),
    }
}

/// Data as JSON, which texts and numbers always are.
///
/// # Panics
/// If a map has keys that are not texts.
#[must_use]
pub fn json(data: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(data).expect("texts and numbers are always JSON")
}
