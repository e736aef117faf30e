//! The slow, obvious log: a vector of events, with every query a scan.

use wellspring_format::{EncodedEvents, RecordView};
use wellspring_log::{Append, Events, Log, Options, ReadError, ReadOptions};
use wellspring_types::{AppendCondition, Conflict, Event, Position, Query, QueryItem, limits};

/// An event as returned by a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenEvent {
    /// Its position.
    pub position: Position,
    /// What it is.
    pub event: Event,
}

/// A record as returned by a read.
#[must_use]
pub fn seen(record: &RecordView<'_>) -> SeenEvent {
    let event = Event {
        event_type: record.event_type().to_owned(),
        tags: record.tags().map(str::to_owned).collect(),
        data: record.data().to_vec(),
        kind: record.kind(),
        id: record.id(),
        metadata: record.metadata().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    };
    SeenEvent { position: record.position(), event }
}

/// The remaining events of a read.
///
/// # Errors
/// Those of the read.
pub fn drain(mut events: Events) -> Result<Vec<SeenEvent>, ReadError> {
    let mut all = Vec::new();
    while let Some(record) = events.next()? {
        all.push(seen(&record));
    }
    Ok(all)
}

/// All events of the log.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn read_all(log: &Log) -> Vec<SeenEvent> {
    drain(log.snapshot().read(&Query::all(), ReadOptions::default())).expect("the log reads")
}

/// Events as an append carries them.
///
/// # Panics
/// If one is invalid.
#[must_use]
pub fn encode(events: &[Event]) -> EncodedEvents {
    let mut encoded = EncodedEvents::new();
    for event in events {
        encoded.push(&event.as_ref()).expect("the test's events are valid");
    }
    encoded
}

/// An append of events without a condition.
#[must_use]
pub fn append(events: &[Event]) -> Append {
    Append { events: encode(events), ..Append::default() }
}

/// An append of events with a condition.
#[must_use]
pub fn append_if(events: &[Event], condition: AppendCondition) -> Append {
    Append { condition: Some(condition), ..append(events) }
}

/// A query of the largest valid size, 256 items of 16 terms, that matches exactly what `first`
/// matches: no event has 15 of the tags at once. Some of its terms occur.
///
/// # Panics
/// If `first` leaves no room for the others.
#[must_use]
pub fn largest_query(first: QueryItem, tag: impl Fn(usize) -> String) -> Query {
    let room = limits::MAX_QUERY_TERMS / limits::MAX_QUERY_ITEMS;
    assert!(first.types.len() + first.tags.len() <= room);
    let other = |item: usize| QueryItem {
        types: vec!["Numbered".to_owned()],
        tags: (1..room).map(|n| tag(item * room + n)).collect(),
    };
    let items = std::iter::once(first).chain((1..limits::MAX_QUERY_ITEMS).map(other)).collect();
    let query = Query { items };
    assert_eq!(query.check(), Ok(()));
    query
}

/// Small segments, so that a few hundred events fill several.
#[must_use]
pub fn small_segments() -> Options {
    Options { segment_bytes: 64 << 10, ..Options::default() }
}

/// The oracle.
#[derive(Debug, Default, Clone)]
pub struct Oracle {
    /// The appended events in order.
    pub events: Vec<Event>,
}

impl Oracle {
    /// The matching events in order.
    #[must_use]
    pub fn matching(&self, query: &Query) -> Vec<SeenEvent> {
        (1..)
            .zip(&self.events)
            .filter(|(_, event)| {
                query
                    .matching_item(&event.event_type, event.tags.iter().map(String::as_str))
                    .is_some()
            })
            .map(|(position, event)| SeenEvent { position, event: event.clone() })
            .collect()
    }

    /// The verdict on a condition.
    #[must_use]
    pub fn judge(&self, condition: &AppendCondition) -> Option<Conflict> {
        for (clause, query, after) in condition.clauses() {
            let newest = self.matching(query).into_iter().rfind(|seen| seen.position > after);
            if let Some(SeenEvent { position, event }) = newest {
                let tags = event.tags.iter().map(String::as_str);
                let item = query.matching_item(&event.event_type, tags).expect("it matches");
                return Some(Conflict { position, clause, item });
            }
        }
        None
    }
}
