//! The parts that fuzz targets reach: readers of clients' input, of events, of snapshots.

use crate::view::{Catalogue, TYPES};
use wellspring_host::view::contract::{LogEvent, View as _};
use wellspring_types::Position;

/// Parses a body as an item, a change of one or of a stock, an order, and a topic's name; tells
/// which succeed.
#[must_use]
pub fn body(body: &[u8]) -> [bool; 5] {
    crate::resources::reads(body)
}

/// A line as the data of an event of some type.
struct Line<'a> {
    position: Position,
    event_type: &'static str,
    data: &'a [u8],
}

impl LogEvent for Line<'_> {
    fn position(&self) -> Position {
        self.position
    }

    fn recorded_at_us(&self) -> u64 {
        self.position
    }

    fn event_type(&self) -> &str {
        self.event_type
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        ["item:1", "item:2", "item:3"].into_iter()
    }

    fn data(&self) -> &[u8] {
        self.data
    }
}

/// Folds events of every type, each line the data of one, and takes a snapshot.
///
/// # Panics
/// The fold differs after a round trip through its snapshot.
pub fn events(lines: &[u8]) {
    let mut view = Catalogue::new();
    let mut position = 0;
    for data in lines.split(|byte| *byte == b'\n').take(64) {
        for event_type in TYPES {
            position += 1;
            view.apply(&Line { position, event_type, data });
        }
    }
    let bytes = written(&view);
    assert_eq!(snapshot(&bytes), Some(bytes), "what is folded comes back from its snapshot");
}

/// Reads a snapshot and writes it again; `None` if it is invalid.
#[must_use]
pub fn snapshot(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let view = Catalogue::decode(&mut bytes).ok()?;
    Some(written(&view))
}

/// Parses a search text; returns the number of words and of those in phrases, `None` if it is
/// refused.
#[must_use]
pub fn search(text: &str) -> Option<(Vec<String>, usize)> {
    crate::search::reads(text)
}

fn written(view: &Catalogue) -> Vec<u8> {
    let mut out = Vec::new();
    let written = Catalogue::encode(view.folded(), &mut out);
    debug_assert!(written.is_ok(), "memory takes everything");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_of_lines_comes_back_from_its_snapshot() {
        let lines = br#"{"topic":1,"name":"a"}
{"item":1,"name":"b","topic":1,"price_minor":1,"currency":"EUR","stock":3}
{"item":1,"by":2}
{"item":1,"order":1,"amount":2,"price_minor":1}"#;
        events(lines);
        assert_eq!(snapshot(b""), None);
    }
}
