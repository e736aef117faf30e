//! A log in memory that checks conditions by scanning.

use wellspring_host::view::contract::LogEvent;
use wellspring_types::{AppendCondition, Event, Position};

/// An event as it was appended.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) position: Position,
    pub(crate) at_us: u64,
    pub(crate) event: Event,
}

impl LogEvent for Entry {
    fn position(&self) -> Position {
        self.position
    }

    fn recorded_at_us(&self) -> u64 {
        self.at_us
    }

    fn event_type(&self) -> &str {
        &self.event.event_type
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.event.tags.iter().map(String::as_str)
    }

    fn data(&self) -> &[u8] {
        &self.event.data
    }
}

/// The log and its clock.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) entries: Vec<Entry>,
    pub(crate) now_us: u64,
}

impl Journal {
    pub(crate) fn head(&self) -> Position {
        self.entries.len() as Position
    }

    /// The first event that violates a condition.
    pub(crate) fn conflict(&self, condition: &AppendCondition) -> Option<Position> {
        condition.check().expect("a condition the log accepts");
        let forbids = |entry: &&Entry| {
            condition.clauses().any(|(_, query, after)| {
                let event = &entry.event;
                let tags = event.tags.iter().map(String::as_str);
                entry.position > after
                    && (query.items.is_empty()
                        || query.items.iter().any(|i| i.matches(&event.event_type, tags.clone())))
            })
        };
        self.entries.iter().find(forbids).map(|entry| entry.position)
    }

    pub(crate) fn append(&mut self, event: Event) -> Position {
        event.as_ref().check().expect("an event the log accepts");
        let position = self.head() + 1;
        self.entries.push(Entry { position, at_us: self.now_us, event });
        position
    }
}
