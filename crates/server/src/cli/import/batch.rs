//! Events gathered into requests, the same ones every time the same input is
//! read: that is what lets a second run be recognised and answered with the
//! first run's positions.

use crate::cli::wire::push_event;
use sha2::{Digest, Sha256};
use wellspring_types::{Event, limits};

/// A request is closed at this size even if it holds fewer events. Well below
/// the server's limit, so that one more event of the largest payload, every
/// byte of it sent as six (`\u00XX`), still fits.
const CLOSE_AT_BYTES: usize = 4 << 20;

const _: () = assert!(CLOSE_AT_BYTES + 6 * limits::MAX_DATA_BYTES < limits::MAX_REQUEST_BYTES);

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Its idempotency key.
    pub(crate) key: String,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// Where each of its events stands in the input.
    pub(crate) lines: Vec<u64>,
    /// Bytes of the file that had been taken when it was closed.
    pub(crate) taken_bytes: u64,
}

/// Gathers events.
#[derive(Debug)]
pub(crate) struct Batcher {
    max_events: usize,
    name: ImportName,
    id: String,
    number: u64,
    body: Vec<u8>,
    lines: Vec<u64>,
}

impl Batcher {
    /// Batches of at most so many events.
    pub(crate) fn new(max_events: usize, name: ImportName) -> Batcher {
        let (id, body, lines) = (String::new(), Vec::new(), Vec::new());
        Batcher { max_events, name, id, number: 0, body, lines }
    }

    /// Adds an event; returns the batch if that made it full.
    pub(crate) fn push(&mut self, line: u64, event: &Event, taken_bytes: u64) -> Option<Batch> {
        let separator: &[u8] = if self.lines.is_empty() { b"{\"events\":[" } else { b"," };
        self.body.extend_from_slice(separator);
        let start = self.body.len();
        push_event(&mut self.body, event);
        if self.id.is_empty() {
            self.id = self.name.id(&self.body[start..]);
        }
        self.lines.push(line);
        if self.lines.len() < self.max_events && self.body.len() < CLOSE_AT_BYTES {
            return None;
        }
        self.close(taken_bytes)
    }

    /// The batch as it stands, unless it is empty.
    pub(crate) fn close(&mut self, taken_bytes: u64) -> Option<Batch> {
        if self.lines.is_empty() {
            return None;
        }
        self.number += 1;
        let next = Vec::with_capacity(self.body.len() + self.body.len() / 8);
        let mut body = std::mem::replace(&mut self.body, next);
        body.extend_from_slice(b"]}");
        let lines = std::mem::take(&mut self.lines);
        let key = format!("import-{}-{}", self.id, self.number);
        Some(Batch { key, body, lines, taken_bytes })
    }
}

/// What tells one import from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportName {
    /// The name of the file and the shape of its batches; the first event is added.
    OfFile {
        /// Last part of the path.
        name: String,
        /// Everything that shapes the batches.
        shape: String,
    },
    /// A name that was given, which holds whatever the content is.
    Given {
        /// The name.
        name: String,
        /// Everything that shapes the batches.
        shape: String,
    },
}

impl ImportName {
    /// The same for the same input and mapping.
    ///
    /// It covers neither size nor content: if a file has grown or changed since
    /// it was imported, its beginning is recognised, and the first batch that
    /// differs is refused (its key was used with another body) instead of
    /// everything being added twice.
    fn id(&self, first_event: &[u8]) -> String {
        let (kind, name, shape, first_event): (&[u8], _, _, _) = match self {
            ImportName::OfFile { name, shape } => (b"file 1", name, shape, first_event),
            ImportName::Given { name, shape } => (b"given 1", name, shape, &b""[..]),
        };
        let mut hash = Sha256::new();
        for part in [kind, name.as_bytes(), shape.as_bytes(), first_event] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ImportName {
        ImportName::OfFile { name: name.to_owned(), shape: "s".to_owned() }
    }

    #[test]
    fn batches_close_by_count_and_by_size() {
        let mut batcher = Batcher::new(2, name("a"));
        let event = Event::json("T", &[], "1");
        assert_eq!(batcher.push(1, &event, 10), None);
        let full = batcher.push(3, &event, 20).unwrap();
        assert!(full.key.ends_with("-1"));
        assert_eq!((full.lines, full.taken_bytes), (vec![1, 3], 20));
        assert_eq!(
            full.body,
            br#"{"events":[{"type":"T","tags":[],"data":1},{"type":"T","tags":[],"data":1}]}"#
        );
        assert_eq!(batcher.close(30), None);
        batcher.push(4, &event, 40);
        let rest = batcher.close(50).unwrap();
        assert!(rest.key.ends_with("-2"));
        assert_eq!(rest.lines, [4]);

        let mut batcher = Batcher::new(1000, name("a"));
        let big = Event::json("T", &[], &format!("\"{}\"", "x".repeat(1 << 20)));
        let full = (1..).find_map(|line| batcher.push(line, &big, 0)).unwrap();
        assert_eq!(full.lines.len(), 4);
    }

    #[test]
    fn an_import_is_named_by_all_that_shapes_it() {
        let base = name("a").id(b"e");
        assert_eq!(base, name("a").id(b"e"));
        assert_eq!(base.len(), 32);
        let shape = ImportName::OfFile { name: "a".to_owned(), shape: "t".to_owned() };
        let given = ImportName::Given { name: "a".to_owned(), shape: "s".to_owned() };
        for other in [name("b").id(b"e"), name("a").id(b"f"), shape.id(b"e"), given.id(b"e")] {
            assert_ne!(base, other);
        }
        assert_eq!(given.id(b"e"), given.id(b"f"));
    }
}
