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
    chunks: VecDeque<ClosedChunk>,
    /// Number of the first of these; the chunk being read is the one after the last.
    first_chunk: u64,
    /// The ids of the chunk being read.
    current: Vec<EventId>,
}

/// A chunk on its way to the log.
#[derive(Debug)]
struct ClosedChunk {
    /// Its ids, at least one.
    ids: Vec<EventId>,
    content: EncodedEvents,
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
        let content = self.chunks.get(chunk).map_or(current, |closed| &closed.content);
        content.iter().nth(event.index)
    }

    /// Adds an event of the chunk being read.
    pub(super) fn add(&mut self, id: EventId, index: usize, line: u64) {
        let chunk = self.first_chunk + self.chunks.len() as u64;
        self.events.insert(id, BodyEvent { chunk, index, line });
        self.current.push(id);
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
        if !self.current.is_empty() {
            let ids = std::mem::take(&mut self.current);
            self.chunks.push_back(ClosedChunk { ids, content: content.clone() });
        }
        while let Some(oldest) = self.chunks.front() {
            // A chunk is in the log as a whole or not at all.
            if snapshot.find_id(oldest.ids[0])?.is_none() {
                break;
            }
            for id in &oldest.ids {
                self.events.remove(id);
            }
            self.chunks.pop_front();
            self.first_chunk += 1;
        }
        Ok(())
    }
}
