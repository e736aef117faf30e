//! Turns lines into chunks, each of which is either appended or known.

use super::super::event_json::{EventReader, RECORDED_AT, RecordedTimes};
use super::chain::{Anchor, Chain, Digest, OPENING_EVENTS, event_digest};
use super::chunk::{Chunk, Comparison};
use super::flights::{ChunkOrder, NewChunk, Waypoint};
use super::settings::{BadLine, Ending, Settings};
use crate::problems;
use std::io::BufRead as _;
use wellspring_host::wire::problem::Problem;
use wellspring_log::{Ack, Append, Log, RequestKey, StoredRequest};
use wellspring_types::{Position, limits};

/// A chunk is closed when its events reach this size, in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Longest line: the largest payload as base64, and room for the rest of the event.
pub(super) const MAX_LINE_BYTES: usize = limits::MAX_DATA_BYTES / 3 * 4 + (512 << 10);
/// Number of bad lines that an answer describes.
const SHOWN_FAULTS: usize = 20;

/// The request key in the log for a chunk of this name.
pub(super) type KeyOf = Box<dyn Fn(&Digest) -> String + Send>;

/// What is known of the chunk being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkKnowledge {
    /// It has no event yet.
    Unasked,
    /// No import has appended it, up to this position.
    New(Position),
    /// An import has appended one that begins here; or other content has taken its place.
    Known(StoredRequest),
}

/// Why an import stops.
pub(super) enum Stop {
    /// A line of the body: complete lines before it are still appended.
    Line(Box<Problem>),
    /// The log, or its content: nothing further is appended.
    Log(Box<Problem>),
}

impl From<Box<Problem>> for Stop {
    fn from(problem: Box<Problem>) -> Stop {
        Stop::Log(problem)
    }
}

/// A skipped line.
pub(super) struct SkippedLine {
    /// Its number in the body, from 1.
    pub(super) line: u64,
    /// What is wrong with it.
    pub(super) detail: String,
}

/// An import in progress: one body of it.
pub(super) struct Intake {
    log: Log,
    key_of: KeyOf,
    settings: Settings,
    /// The content before the chunk.
    chain: Chain,
    chunk: Chunk,
    fate: ChunkKnowledge,
    /// Digests of the content's first two events, as far as the chunk contains them.
    opening: Vec<Digest>,
    lines: u64,
    /// The line of each event of the chunk, from 1.
    event_lines: Vec<u64>,
    /// The end of the last chunk that was closed.
    closed: Waypoint,
    /// Orders for closed chunks.
    pub(super) orders: Vec<ChunkOrder>,
    pub(super) oddities: LineCounts,
    /// The counts of the lines before the chunk.
    settled: LineCounts,
    pub(super) faults: Vec<SkippedLine>,
}

/// Irregularities in lines that were accepted nevertheless.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineCounts {
    /// Bad lines skipped.
    pub(super) skipped: u64,
    /// Repeated tags of events.
    pub(super) folded: u64,
}

impl Intake {
    /// Nothing read yet.
    pub(super) fn new(log: Log, key_of: KeyOf, settings: Settings) -> Intake {
        Intake {
            closed: Waypoint { lines: 0, chain: settings.start },
            orders: Vec::new(),
            chain: settings.start,
            log,
            key_of,
            settings,
            chunk: Chunk::default(),
            fate: ChunkKnowledge::Unasked,
            opening: Vec::new(),
            lines: 0,
            event_lines: Vec::new(),
            oddities: LineCounts::default(),
            settled: LineCounts::default(),
            faults: Vec::new(),
        }
    }

    /// Parses whole lines; the last may lack its end.
    ///
    /// # Errors
    /// Why the import stops. Complete lines before that stand.
    pub(super) fn take(&mut self, block: &[u8]) -> Result<(), Stop> {
        let mut reader = EventReader::importing(self.settings.kept, self.settings.times);
        // Checked as a whole, which is faster than line by line; if it fails, lines are checked
        // separately.
        let text = std::str::from_utf8(block);
        let mut taken = Ok(());
        let mut rest = block;
        while !rest.is_empty() && taken.is_ok() {
            let at = block.len() - rest.len();
            let line_bytes = rest.skip_until(b'\n').unwrap_or(rest.len());
            let line = &block[at..at + line_bytes];
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            self.lines += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let checked = text.ok().map(|text| &text[at..at + line.len()]);
            taken = self.line(&mut reader, line, checked);
        }
        taken
    }

    fn line<'a>(
        &mut self,
        reader: &mut EventReader<'a>,
        line: &'a [u8],
        checked: Option<&'a str>,
    ) -> Result<(), Stop> {
        let start = self.chunk.content().byte_len();
        reader.folded = 0;
        match self.chunk.read(reader, line, checked) {
            Ok(()) => {
                self.oddities.folded += reader.folded;
                self.event_lines.push(self.lines);
                Ok(self.grown(start)?)
            }
            Err(problem) => {
                let number = self.lines;
                if self.settings.bad_line == BadLine::Skipped && !self.is_of_time(&problem) {
                    self.oddities.skipped += 1;
                    if self.faults.len() < SHOWN_FAULTS {
                        self.faults.push(SkippedLine { line: number, detail: problem.detail });
                    }
                    return Ok(());
                }
                self.lines -= 1;
                let mut problem = problem.with("line", number.to_string());
                problem.detail = format!("line {number}: {}", problem.detail);
                Err(Stop::Line(problem))
            }
        }
    }

    /// Whether the fault of a line is that its time cannot be kept. The line is an event, which
    /// must not be skipped for that.
    fn is_of_time(&self, problem: &Problem) -> bool {
        self.settings.times == RecordedTimes::Kept && problem.field.as_deref() == Some(RECORDED_AT)
    }

    /// Continues after an event was added to the chunk, whose content begins at `start`.
    fn grown(&mut self, start: usize) -> Result<(), Box<Problem>> {
        let events = self.chunk.events.len() as u64;
        if self.chain.events == 0 && events <= OPENING_EVENTS {
            self.opening.push(event_digest(&self.chunk.content().bytes()[start..]));
        }
        if self.fate == ChunkKnowledge::Unasked {
            self.fate = self.ask()?;
        }
        match self.fate {
            ChunkKnowledge::Known(stored) if events == stored.events => self.compare(stored),
            ChunkKnowledge::New(_) if self.chain.events == 0 && events < OPENING_EVENTS => Ok(()),
            ChunkKnowledge::New(absent_through) if self.chain.events == 0 => {
                self.look_around()?;
                self.append(absent_through);
                Ok(())
            }
            ChunkKnowledge::New(absent_through)
                if self.chunk.events.len() >= self.settings.batch
                    || self.chunk.content().byte_len() >= CHUNK_BYTES =>
            {
                self.append(absent_through);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn key(&self, anchor: Anchor) -> String {
        (self.key_of)(&self.settings.scope.name(anchor))
    }

    fn anchor(&self) -> Anchor {
        self.chain.anchor(|| self.opening[0])
    }

    /// Looks up the chunk that begins with the event just read.
    fn ask(&self) -> Result<ChunkKnowledge, Box<Problem>> {
        let head = self.log.head();
        let stored = self.log.request_with_key(&self.key(self.anchor()))?;
        Ok(stored.map_or(ChunkKnowledge::New(head), ChunkKnowledge::Known))
    }

    /// The first event is new, but the log contains a chunk that continues it: the beginning of the
    /// file was changed.
    fn look_around(&self) -> Result<(), Box<Problem>> {
        let &[first, second] = &self.opening[..] else { return Ok(()) };
        for (anchor, what) in [
            (Anchor::Second(second), "its first event differs"),
            (Anchor::First(second), "an event precedes the former first event"),
            (Anchor::Second(first), "the former first event is missing"),
        ] {
            let Some(stored) = self.log.request_with_key(&self.key(anchor))? else { continue };
            return Err(changed(what, self.event_lines[0], stored.first, stored));
        }
        Ok(())
    }

    /// Compares the chunk with the one in the log.
    fn compare(&mut self, stored: StoredRequest) -> Result<(), Box<Problem>> {
        let digest = self.chain.digest(self.chunk.content().bytes());
        if digest != stored.digest {
            let (line, position) = self.first_difference(stored)?;
            return Err(changed("this event differs", line, position, stored));
        }
        self.chunk = Chunk::default();
        let through = self.close(digest, stored.events);
        self.orders.push(ChunkOrder::Pass(stored.first, stored.events, through));
        Ok(())
    }

    /// The line and the position of the first event of the chunk that differs from the one in the
    /// log.
    fn first_difference(&self, stored: StoredRequest) -> Result<(u64, Position), Box<Problem>> {
        let content = self.chunk.content();
        assert_eq!(self.event_lines.len(), content.len(), "an event stands on a line");
        let snapshot = self.log.snapshot();
        for comparison in [Comparison::Content, Comparison::Time] {
            for ((mine, &line), position) in
                content.iter().zip(&self.event_lines).zip(stored.first..)
            {
                let same = snapshot.at(position, |theirs| comparison.is_same(&mine, theirs))?;
                if same != Some(true) {
                    return Ok((line, position));
                }
            }
        }
        Ok((self.event_lines[0], stored.first))
    }

    fn append(&mut self, absent_through: Position) {
        let digest = self.chain.digest(self.chunk.content().bytes());
        let key = Some(RequestKey { key: self.key(self.anchor()), digest });
        let bytes = self.chunk.events.byte_len();
        let chunk = Chunk::with_capacity(bytes + bytes / 8);
        let events = std::mem::replace(&mut self.chunk, chunk).events;
        let lines = std::mem::take(&mut self.event_lines);
        let through = self.close(digest, events.len() as u64);
        let append = Append { events, condition: None, ack: Ack::Durable, key, fence: None };
        let chunk = NewChunk { append, absent_through, lines, through };
        self.orders.push(ChunkOrder::Stage(Box::new(chunk)));
    }

    /// Starts the next chunk.
    fn close(&mut self, digest: Digest, events: u64) -> Waypoint {
        self.chain = self.chain.behind(digest, events, self.opening.get(1).copied());
        self.opening.clear();
        self.event_lines.clear();
        self.fate = ChunkKnowledge::Unasked;
        self.settled = self.oddities;
        self.closed = Waypoint { lines: self.lines, chain: self.chain };
        self.closed
    }

    /// Closes the last chunk: the body has ended.
    ///
    /// # Errors
    /// An earlier import appended a longer chunk here.
    pub(super) fn finish(&mut self) -> Result<(), Box<Problem>> {
        match self.fate {
            ChunkKnowledge::New(absent_through) if !self.is_half_an_opening() => {
                self.append(absent_through)
            }
            ChunkKnowledge::Known(stored) if self.settings.ending == Ending::Here => {
                let next = stored.first + self.chunk.events.len() as u64;
                return Err(changed("it ends earlier", self.lines, next, stored));
            }
            // The rest of the chunk comes in the next request, with these lines again.
            ChunkKnowledge::New(_) | ChunkKnowledge::Known(_) => {
                self.oddities = self.settled;
                self.faults.retain(|fault| fault.line <= self.closed.lines);
                return Ok(());
            }
            ChunkKnowledge::Unasked => {}
        }
        // Trailing lines without events belong to no chunk.
        self.orders.push(ChunkOrder::Lines(self.lines));
        Ok(())
    }

    /// Whether the chunk is the first and its second event is still missing: both become durable
    /// together, or a change of the first could not be detected.
    fn is_half_an_opening(&self) -> bool {
        let events = self.chain.events + self.chunk.events.len() as u64;
        self.settings.ending == Ending::Later && events < OPENING_EVENTS
    }

    /// Closes the chunk before a bad line, or where the body ended early: complete lines are
    /// appended (a first event only with the second), the rest of a known chunk is not required.
    pub(super) fn stop(&mut self) {
        self.settings.ending = Ending::Later;
        let stopped = self.finish();
        assert!(stopped.is_ok(), "what goes on later is not compared");
    }
}

/// `line` is the first that differs, `position` that of the event in the log.
fn changed(what: &str, line: u64, position: Position, stored: StoredRequest) -> Box<Problem> {
    let (first, last) = (stored.first, stored.first + stored.events - 1);
    problems::IMPORT_CHANGED
        .because(format!(
            "line {line}: this content was imported before and has changed since: {what}, where the \
             log holds position {position} (positions {first} to {last} were imported as one). Give \
             a label to import it as something new"
        ))
        .with("line", line.to_string())
        .with("first", first.to_string())
        .with("last", last.to_string())
}
