//! Turns lines into chunks, each of which is either appended or known.

use super::super::event_json::EventReader;
use super::super::sealing::EventSealer;
use super::chain::{Anchor, Chain, Digest, OPENING_EVENTS, event_digest};
use super::chunk::{Chunk, ChunkSavepoint, Comparison};
use super::earlier_ids::{EarlierEvent, IdUse, IdsUnderWay};
use super::flights::{ChunkOrder, NewChunk, Waypoint};
use super::settings::{BadLine, Ending, Settings};
use crate::problems;
use std::io::BufRead as _;
use std::sync::Arc;
use wellspring_host::http::Host;
use wellspring_host::wire::json::without_mark;
use wellspring_host::wire::problem::{ID_REUSED, Problem};
use wellspring_log::{Append, Log, RecordView, RequestKey, Snapshot, StoredRequest};
use wellspring_subject_keys::SealedWith;
use wellspring_types::{EventId, Position, limits};

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

pub(super) struct SkippedLine {
    /// Its number in the body, from 1.
    pub(super) line: u64,
    /// What is wrong with it.
    pub(super) detail: String,
}

/// An import in progress: one body of it.
pub(super) struct Intake {
    log: Log,
    /// The log as it was when the block being parsed came.
    snapshot: Snapshot,
    key_of: KeyOf,
    settings: Settings,
    sealer: ChunkSealer,
    /// The content before the chunk.
    chain: Chain,
    chunk: Chunk,
    fate: ChunkKnowledge,
    /// Digests of the content's first two events, as far as the chunk contains them.
    opening: Vec<Digest>,
    ids: IdsUnderWay,
    /// The log had no event with an id of the chunk's up to here.
    ids_absent_through: Position,
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

/// Seals the events of one chunk after another.
pub(super) struct ChunkSealer {
    pub(super) sealer: EventSealer<'static>,
    /// None: it refuses to seal.
    pub(super) host: Option<Arc<Host>>,
}

impl ChunkSealer {
    /// The keys of a chunk, durable. On a thread that may block.
    fn close(&mut self) -> Result<SealedWith, Box<Problem>> {
        let Some(host) = &self.host else { return Ok(SealedWith::default()) };
        let sealed = self.sealer.take_held()?;
        if !sealed.are_durable() {
            host.persist_keys_now()?;
        }
        Ok(sealed)
    }
}

/// Lines that are no events of their own, and irregularities in those that are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineCounts {
    /// Bad lines skipped.
    pub(super) skipped: u64,
    /// Repeated tags of events.
    pub(super) folded: u64,
    /// Events that are there already under their id.
    pub(super) repeated: u64,
    /// Events of consumers and erasures: they tell of another log.
    pub(super) passed_over: u64,
    /// Events that were sealed for a data subject.
    pub(super) sealed: u64,
}

impl Intake {
    /// Nothing read yet.
    pub(super) fn new(log: Log, key_of: KeyOf, settings: Settings, sealer: ChunkSealer) -> Intake {
        Intake {
            sealer,
            closed: Waypoint { lines: 0, chain: settings.start },
            orders: Vec::new(),
            chain: settings.start,
            snapshot: log.snapshot(),
            log,
            key_of,
            settings,
            chunk: Chunk::default(),
            fate: ChunkKnowledge::Unasked,
            opening: Vec::new(),
            ids: IdsUnderWay::default(),
            ids_absent_through: Position::MAX,
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
        self.snapshot = self.log.snapshot();
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
            if without_mark(line).iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let checked = text.ok().map(|text| &text[at..at + line.len()]);
            taken = self.line(&mut reader, line, checked);
        }
        self.sealer.sealer.let_go();
        taken
    }

    fn line<'a>(
        &mut self,
        reader: &mut EventReader<'a>,
        line: &'a [u8],
        checked: Option<&'a str>,
    ) -> Result<(), Stop> {
        let start = self.chunk.content().byte_len();
        let before = self.chunk.savepoint();
        reader.folded = 0;
        let sealed = self.sealer.sealer.sealed;
        if let Err(problem) = self.chunk.read(reader, line, checked, &mut self.sealer.sealer) {
            return self.bad_line(problem);
        }
        if reader.is_passed_over {
            self.chunk.rewind(before);
            self.oddities.passed_over += 1;
            return Ok(());
        }
        let id_use = match reader.id {
            Some(id) => self.id_use(id, before, start)?,
            None => IdUse::New,
        };
        match id_use {
            IdUse::New => {
                self.oddities.folded += reader.folded;
                self.oddities.sealed += self.sealer.sealer.sealed - sealed;
                self.event_lines.push(self.lines);
                Ok(self.grown(start)?)
            }
            IdUse::Repeated => {
                self.chunk.rewind(before);
                self.oddities.repeated += 1;
                Ok(())
            }
            IdUse::Taken(earlier) => {
                self.chunk.rewind(before);
                self.bad_line(id_taken(earlier))
            }
        }
    }

    /// Skips the line just read, or stops at it.
    fn bad_line(&mut self, problem: Box<Problem>) -> Result<(), Stop> {
        let number = self.lines;
        if self.settings.bad_line == BadLine::Skipped {
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

    /// What the id of the event just read is to earlier events; the chunk was at `before` and its
    /// content at `start` before the event.
    fn id_use(
        &mut self,
        id: EventId,
        before: ChunkSavepoint,
        start: usize,
    ) -> Result<IdUse, Box<Problem>> {
        let content = self.chunk.content();
        let index = content.len() - 1;
        let is_same = |theirs: &RecordView<'_>| {
            let mine = content.after(before.content());
            mine.iter().next().is_some_and(|mine| Comparison::Content.is_same(&mine, theirs))
        };
        let repeats =
            |is_same, earlier| if is_same { IdUse::Repeated } else { IdUse::Taken(earlier) };
        if let Some(earlier) = self.ids.find(id) {
            let theirs = self.ids.content(earlier, content);
            let is_same = theirs.is_some_and(|theirs| is_same(&theirs));
            return Ok(repeats(is_same, EarlierEvent::Line(earlier.line)));
        }
        let Some(position) = self.snapshot.find_id(id)? else {
            self.ids_absent_through = self.ids_absent_through.min(self.snapshot.head());
            self.ids.add(id, index, self.lines);
            return Ok(IdUse::New);
        };
        let knowledge = match self.fate {
            ChunkKnowledge::Unasked => self.ask(|| event_digest(&content.bytes()[start..]))?,
            asked => asked,
        };
        // It may be the event itself, imported earlier.
        if let ChunkKnowledge::Known(stored) = knowledge
            && (stored.first + index as u64..stored.first + stored.events).contains(&position)
        {
            return Ok(IdUse::New);
        }
        let is_same = self.snapshot.at(position, is_same)? == Some(true);
        Ok(repeats(is_same, EarlierEvent::Position(position)))
    }

    /// Continues after an event was added to the chunk, whose content begins at `start`.
    fn grown(&mut self, start: usize) -> Result<(), Box<Problem>> {
        let events = self.chunk.events.len() as u64;
        if self.chain.events == 0 && events <= OPENING_EVENTS {
            self.opening.push(event_digest(&self.chunk.content().bytes()[start..]));
        }
        if self.fate == ChunkKnowledge::Unasked {
            self.fate = self.ask(|| self.opening[0])?;
        }
        match self.fate {
            ChunkKnowledge::Known(stored) if events == stored.events => self.compare(stored),
            ChunkKnowledge::New(_) if self.chain.events == 0 && events < OPENING_EVENTS => Ok(()),
            ChunkKnowledge::New(absent_through) if self.chain.events == 0 => {
                self.look_around()?;
                self.append(absent_through)
            }
            ChunkKnowledge::New(absent_through)
                if self.chunk.events.len() >= self.settings.batch
                    || self.chunk.content().byte_len() >= CHUNK_BYTES =>
            {
                self.append(absent_through)
            }
            _ => Ok(()),
        }
    }

    fn key(&self, anchor: Anchor) -> String {
        (self.key_of)(&self.settings.scope.name(anchor))
    }

    /// Looks up the chunk that begins with the event just read; `first` is the digest of that.
    fn ask(&self, first: impl FnOnce() -> Digest) -> Result<ChunkKnowledge, Box<Problem>> {
        let head = self.log.head();
        let stored = self.log.request_with_key(&self.key(self.chain.anchor(first)))?;
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
        self.ids.close(self.chunk.content(), &self.snapshot)?;
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

    fn append(&mut self, key_absent_through: Position) -> Result<(), Box<Problem>> {
        let sealed = self.sealer.close()?;
        let digest = self.chain.digest(self.chunk.content().bytes());
        let anchor = self.chain.anchor(|| self.opening[0]);
        let key = Some(RequestKey { key: self.key(anchor), digest });
        self.ids.close(self.chunk.content(), &self.snapshot)?;
        let bytes = self.chunk.events.byte_len();
        let chunk = Chunk::with_capacity(bytes + bytes / 8);
        let events = std::mem::replace(&mut self.chunk, chunk).events;
        let lines = std::mem::take(&mut self.event_lines);
        let through = self.close(digest, events.len() as u64);
        let append = Append { events, key, ..Append::default() };
        let ids_absent_through = self.ids_absent_through.min(key_absent_through);
        self.ids_absent_through = Position::MAX;
        let chunk =
            NewChunk { append, key_absent_through, ids_absent_through, lines, through, sealed };
        self.orders.push(ChunkOrder::Stage(Box::new(chunk)));
        Ok(())
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
                self.append(absent_through)?
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

/// The id of the line is that of an event with another content.
fn id_taken(earlier: EarlierEvent) -> Box<Problem> {
    let what = "has its id and another content; give the event an id of its own, or remove it";
    match earlier {
        EarlierEvent::Line(line) => ID_REUSED.because(format!("line {line} {what}")),
        EarlierEvent::Position(position) => ID_REUSED
            .because(format!("the event at position {position} {what}"))
            .with("position", position.to_string()),
    }
    .field("id")
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
