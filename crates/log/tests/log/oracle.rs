//! The slow and obvious log: a vector of events, every question a scan.

use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{
    Append, EncodedEvents, Events, Log, OpenError, Options, ReadError, RecordView,
};
use wellspring_types::{AppendCondition, Conflict, Event, Position, Query, QueryItem, limits};

use std::sync::Arc;

/// What a read returned of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub position: Position,
    pub event: Event,
}

pub fn seen(record: &RecordView<'_>) -> Seen {
    let event = Event {
        event_type: record.event_type().to_owned(),
        tags: record.tags().map(str::to_owned).collect(),
        data: record.data().to_vec(),
        kind: record.kind(),
        id: record.id(),
        metadata: record.metadata().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    };
    Seen { position: record.position(), event }
}

pub fn drain(mut events: Events) -> Result<Vec<Seen>, ReadError> {
    let mut all = Vec::new();
    while let Some(record) = events.next()? {
        all.push(seen(&record));
    }
    Ok(all)
}

pub fn read_all(log: &Log) -> Vec<Seen> {
    drain(log.snapshot().read(&Query::all(), Default::default())).expect("the log reads")
}

pub fn encode(events: &[Event]) -> EncodedEvents {
    let mut encoded = EncodedEvents::new();
    for event in events {
        encoded.push(&event.as_ref()).expect("the test's events are valid");
    }
    encoded
}

pub fn append(events: &[Event]) -> Append {
    Append { events: encode(events), ..Append::default() }
}

pub fn append_if(events: &[Event], condition: AppendCondition) -> Append {
    Append { condition: Some(condition), ..append(events) }
}

/// A query of the largest legal size, 256 items of 16 terms, that matches what `first` matches and
/// nothing else: no event carries 15 of the tags at once. Some of its terms occur.
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

/// Small segments, so that a few hundred events seal several.
pub fn small_segments() -> Options {
    Options { segment_bytes: 64 << 10, ..Options::default() }
}

pub fn open(storage: &SimulatedStorage, options: Options) -> Result<Log, OpenError> {
    Log::open_on(Arc::new(storage.clone()), options)
}

/// The oracle.
#[derive(Debug, Default, Clone)]
pub struct Oracle {
    pub events: Vec<Event>,
}

impl Oracle {
    pub fn matching(&self, query: &Query) -> Vec<Seen> {
        (1..)
            .zip(&self.events)
            .filter(|(_, event)| {
                query
                    .matching_item(&event.event_type, event.tags.iter().map(String::as_str))
                    .is_some()
            })
            .map(|(position, event)| Seen { position, event: event.clone() })
            .collect()
    }

    pub fn judge(&self, condition: &AppendCondition) -> Option<Conflict> {
        for (clause, query, after) in condition.clauses() {
            let newest = self.matching(query).into_iter().rfind(|seen| seen.position > after);
            if let Some(Seen { position, event }) = newest {
                let tags = event.tags.iter().map(String::as_str);
                let item = query.matching_item(&event.event_type, tags).expect("it matches");
                return Some(Conflict { position, clause, item });
            }
        }
        None
    }
}
