//! The events of a chunk: how they are stored, and what they count as.
//!
//! An event of an export comes with the time at which it was recorded. Whatever becomes of that
//! ([`RecordedTimes`](super::super::event_json::RecordedTimes)), the event counts as one with the
//! time in its metadata. So the same content is known again under any setting (decision 0039).

use super::super::event_json::{EventReader, RECORDED_AT, Style};
use super::super::sealing::EventSealer;
use super::intake::MAX_LINE_BYTES;
use wellspring_host::clock::push_rfc3339;
use wellspring_host::wire::json::Cursor;
use wellspring_host::wire::problem::{self, Problem, of_line_fault};
use wellspring_log::{EncodedEvents, RecordView, Savepoint};

/// Events to append together.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// As they are stored.
    pub(super) events: EncodedEvents,
    /// What they count as, if it is something else.
    content: Option<EncodedEvents>,
}

/// A point to which a [`Chunk`] can be rewound.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkSavepoint {
    events: Savepoint,
    /// Of what the events count as, if it was something else already.
    content: Option<Savepoint>,
}

impl ChunkSavepoint {
    /// The point in what the events count as.
    pub(super) fn content(&self) -> Savepoint {
        self.content.unwrap_or(self.events)
    }
}

impl Chunk {
    /// No events yet, with room for these bytes.
    pub(super) fn with_capacity(bytes: usize) -> Chunk {
        Chunk { events: EncodedEvents::with_capacity(bytes), content: None }
    }

    /// What the events count as.
    pub(super) fn content(&self) -> &EncodedEvents {
        self.content.as_ref().unwrap_or(&self.events)
    }

    /// A point to [`rewind`](Self::rewind) to.
    pub(super) fn savepoint(&self) -> ChunkSavepoint {
        let content = self.content.as_ref().map(EncodedEvents::savepoint);
        ChunkSavepoint { events: self.events.savepoint(), content }
    }

    /// Removes what was read since.
    pub(super) fn rewind(&mut self, before: ChunkSavepoint) {
        self.events.rewind(before.events);
        match before.content {
            None => self.content = None,
            Some(before) => self.content.iter_mut().for_each(|content| content.rewind(before)),
        }
    }

    /// Parses a line, which is one event, and adds it; `checked` is the line if it is known to be
    /// UTF-8.
    ///
    /// # Errors
    /// What is wrong with the line. Nothing is added then.
    pub(super) fn read<'a>(
        &mut self,
        reader: &mut EventReader<'a>,
        line: &'a [u8],
        checked: Option<&'a str>,
        sealer: &mut EventSealer<'_>,
    ) -> Result<(), Box<Problem>> {
        if line.len() > MAX_LINE_BYTES {
            let detail = format!("it is longer than {MAX_LINE_BYTES} bytes");
            return Err(problem::TOO_LARGE.because(detail).limit(MAX_LINE_BYTES as u64));
        }
        let before = self.events.savepoint();
        let out = &mut self.events;
        let cursor = checked.map_or_else(|| Cursor::new(line), |text| Ok(Cursor::of_text(text)));
        let read = cursor.and_then(|mut cursor| {
            reader.read(&mut cursor, Style::Import, sealer, out)?;
            cursor.end()
        });
        if let Err(fault) = read {
            // A line must contain exactly one event.
            self.events.rewind(before);
            return Err(sealer.problem(&fault, of_line_fault(&fault, line)));
        }
        let counts_as = reader.content.take();
        if self.content.is_none() && counts_as.is_some() {
            let mut content = self.events.clone();
            content.rewind(before);
            self.content = Some(content);
        }
        if let Some(content) = &mut self.content {
            match counts_as {
                Some(event) => content.extend(&event),
                None => content.extend(&self.events.after(before)),
            }
        }
        Ok(())
    }
}

/// What two events are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Everything but the time at which they were recorded.
    Content,
    /// That time alone.
    Time,
}

impl Comparison {
    /// Whether the event of a content is the one that the log holds.
    pub(super) fn is_same(self, mine: &RecordView<'_>, theirs: &RecordView<'_>) -> bool {
        let timeless = |(name, _): &(&str, &str)| *name != RECORDED_AT;
        match self {
            Comparison::Content => {
                mine.event_type() == theirs.event_type()
                    && mine.id() == theirs.id()
                    && mine.kind() == theirs.kind()
                    && mine.data() == theirs.data()
                    && mine.sealed_parts().eq(theirs.sealed_parts())
                    && mine.tags().eq(theirs.tags())
                    && mine.metadata().filter(timeless).eq(theirs.metadata().filter(timeless))
            }
            Comparison::Time => time(mine).is_none_or(|mine| {
                time(theirs).map_or_else(
                    || mine.as_bytes() == written(theirs.recorded_at_us()),
                    |theirs| mine == theirs,
                )
            }),
        }
    }
}

fn time<'a>(event: &RecordView<'a>) -> Option<&'a str> {
    event.metadata().find(|(name, _)| *name == RECORDED_AT).map(|(_, time)| time)
}

fn written(us: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(27);
    push_rfc3339(&mut text, us);
    text
}
