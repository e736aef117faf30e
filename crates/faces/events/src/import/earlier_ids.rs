//! Events of an import whose id an earlier event has: of the same body, or in the log.
//!
//! Dumps of systems that deliver at least once hold events twice. An id names one event, so one
//! that comes again with the same content is not added, and with another content is a bad line.

use std::collections::{HashMap, VecDeque};
use wellspring_log::{EncodedEvents, ReadError, RecordView, Snapshot};
use wellspring_types::{EventId, Position};

/// What an event's id is to the events before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdUse {
    /// No other event has it.
    New,
    /// An earlier event has it, and the same content.
    Repeated,
    /// An earlier event has it, and another content.
    Taken(EarlierEvent),
}

/// The event that has the id already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlierEvent {
    /// On this line of the body.
    Line(u64),
    /// At this position of the log.
    Position(Position),
}

/// An event of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyEvent {
    /// Number of its chunk, from 0.
    chunk: u64,
    /// Its index there.
    index: usize,
    /// Its line in the body, from 1.
    pub(super) line: u64,
}

/// The ids of a body's events that may not be in the log yet.
#[derive(Debug, Default)]
pub(super) struct IdsUnderWay {
    events: HashMap<EventId, BodyEvent>,
    /// The closed chunks that hold such ids, oldest first.
    chunks: VecDeque<EncodedEvents>,
    /// Number of the first of these; the chunk being read is the one after the last.
    first_chunk: u64,
    /// Whether the chunk being read holds such ids.
    is_current: bool,
}

impl IdsUnderWay {
    /// The event of the body with this id.
    pub(super) fn find(&self, id: EventId) -> Option<BodyEvent> {
        self.events.get(&id).copied()
    }

    /// The content of an event; `current` is the chunk being read.
    pub(super) fn content<'a>(
        &'a self,
        event: BodyEvent,
        current: &'a EncodedEvents,
    ) -> Option<RecordView<'a>> {
        let chunk = usize::try_from(event.chunk - self.first_chunk).ok()?;
        self.chunks.get(chunk).unwrap_or(current).iter().nth(event.index)
    }

    /// Adds an event of the chunk being read.
    pub(super) fn add(&mut self, id: EventId, index: usize, line: u64) {
        let chunk = self.first_chunk + self.chunks.len() as u64;
        self.events.insert(id, BodyEvent { chunk, index, line });
        self.is_current = true;
    }

    /// The chunk being read is closed, and on its way to the log; ids that have arrived there, as
    /// `snapshot` shows, are looked up there from now on.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(super) fn close(
        &mut self,
        content: &EncodedEvents,
        snapshot: &Snapshot,
    ) -> Result<(), ReadError> {
        if std::mem::take(&mut self.is_current) {
            self.chunks.push_back(content.clone());
        }
        while let Some(oldest) = self.chunks.front() {
            let Some(id) = ids(oldest).next() else { break };
            // A chunk is in the log as a whole or not at all.
            if snapshot.find_id(id)?.is_none() {
                break;
            }
            for id in ids(oldest) {
                self.events.remove(&id);
            }
            self.chunks.pop_front();
            self.first_chunk += 1;
        }
        Ok(())
    }
}

fn ids(events: &EncodedEvents) -> impl Iterator<Item = EventId> {
    events.iter().filter_map(|event| event.id())
}
