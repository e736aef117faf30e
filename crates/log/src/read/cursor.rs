//! The matching events of one run, record by record. Stored bytes are read in windows; neighbouring
//! records come from the same window, and a read of everything is a walk through the files.

use crate::batch::{BATCH_HEADER_BYTES, BATCH_MAGIC};
use crate::error::{Corruption, ReadError};
use crate::index::{Candidates, IndexError};
use crate::query::CompiledQuery;
use crate::record::{Layout, RecordView, read_u32};
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::segments::{OpenSegment, Run};
use crate::work::Work;
use std::ops::Range;
use std::sync::Arc;
use wellspring_types::Position;

/// Candidates looked up at a time.
const CHUNK: usize = 256;
/// The smallest and largest stretch of file read at a time. A walk starts small and doubles.
const SMALL_WINDOW: usize = 4 << 10;
const LARGE_WINDOW: usize = 256 << 10;
/// Bytes of a record that count as a step, as a power of two: verifying and writing them out takes
/// about as long as a look at an index.
const STEP_BYTES_LOG2: u32 = 9;
/// Records further apart than this are read one by one.
const GAP: u32 = 8 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct RunCursor {
    run: Arc<Run>,
    /// The place in the run of the segment that was last read from.
    place: usize,
    query: Arc<CompiledQuery>,
    first: Position,
    last: Position,
    path: Path,
    window: Window,
    /// The record last advanced to, in the window.
    current: Range<usize>,
    /// Where the parts of that record begin.
    layout: Layout,
}

/// Why a cursor could not be opened, or go on.
pub(crate) enum CursorFault {
    /// The index, which can be made anew unless that is the system's fault.
    Index(IndexError),
    Read(ReadError),
}

impl From<ReadError> for CursorFault {
    fn from(error: ReadError) -> CursorFault {
        CursorFault::Read(error)
    }
}

impl CursorFault {
    /// What a reader is told of it.
    pub(crate) fn into_read(self, run: &Run) -> ReadError {
        match self {
            CursorFault::Read(error) => error,
            CursorFault::Index(fault) => ReadError::Io {
                doing: format!("reading the index of {}", run.segments()[0].name()),
                error: fault.to_string(),
            },
        }
    }
}

#[derive(Debug)]
enum Path {
    /// Every event: the next position, and where its record or the batch header before it begins.
    Walk { next: Position, offset: u64 },
    /// The events the index names.
    Pick { candidates: Candidates, chunk: Vec<u32>, offsets: Vec<u32>, at: usize, more: bool },
}

#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    start: u64,
    /// How much the next walk reads.
    stride: usize,
}

impl RunCursor {
    /// Events `first` to `last`, both in the run and published.
    pub(crate) fn open(
        run: Arc<Run>,
        query: &Arc<CompiledQuery>,
        first: Position,
        last: Position,
        descending: bool,
        work: &mut Work,
    ) -> Result<RunCursor, CursorFault> {
        let index = run.index();
        let range = run.range(first - 1, last);
        let path = if query.is_all() && !descending {
            let offset = index.offset(range.start).map_err(CursorFault::Index)?;
            Path::Walk { next: first, offset: u64::from(offset) }
        } else {
            let mut candidates = index.cursor(query, range, descending);
            match candidates.prepare(work) {
                // The first chunk does what is left of it.
                Ok(()) | Err(IndexError::Stopped(_)) => {}
                Err(fault) => return Err(CursorFault::Index(fault)),
            }
            Path::Pick { candidates, chunk: Vec::new(), offsets: Vec::new(), at: 0, more: true }
        };
        let place = run.place_of(first);
        run.segments()[place].file().map_err(CursorFault::Read)?;
        let window = Window { stride: SMALL_WINDOW, ..Window::default() };
        let query = Arc::clone(query);
        Ok(RunCursor {
            run,
            place,
            query,
            first,
            last,
            path,
            window,
            current: 0..0,
            layout: Layout::default(),
        })
    }

    /// The run it reads.
    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// The positions it covers.
    pub(crate) fn span(&self) -> (Position, Position) {
        (self.first, self.last)
    }

    /// The record last advanced to.
    pub(crate) fn record(&self) -> RecordView<'_> {
        RecordView::again(&self.window.bytes[self.current.clone()], self.layout)
    }

    /// Moves to the next event and tells its position.
    ///
    /// # Errors
    /// [`CursorFault`]. After [`ReadError::Stopped`] the next call goes on; after any other the
    /// cursor is of no further use. A fault of the index leaves nothing out: a cursor opened behind
    /// the last event, once the index is mended, goes on where this one ended.
    pub(crate) fn advance(&mut self, work: &mut Work) -> Result<Option<Position>, CursorFault> {
        // The record before this one: how long the next is, is not known yet.
        let steps = 1 + (self.current.len() >> STEP_BYTES_LOG2) as u64;
        work.step(steps).map_err(|stopped| CursorFault::Read(ReadError::Stopped(stopped)))?;
        match &self.path {
            Path::Walk { .. } => self.walk().map_err(CursorFault::Read),
            Path::Pick { .. } => self.pick(work),
        }
    }

    fn walk(&mut self) -> Result<Option<Position>, ReadError> {
        let Path::Walk { next, mut offset } = self.path else { unreachable!("walk walks") };
        if next > self.last {
            return Ok(None);
        }
        if self.run.segments().get(self.place + 1).is_some_and(|after| after.base() == next) {
            self.place += 1;
            self.window.bytes.clear();
            offset = SEGMENT_HEADER_BYTES as u64;
        }
        let segment = &self.run.segments()[self.place];
        let mut range = self.window.stretch(segment, offset, 4, Hint::Walk)?;
        if read_u32(&self.window.bytes, range.start) == BATCH_MAGIC {
            offset += BATCH_HEADER_BYTES as u64;
            range = self.window.stretch(segment, offset, 4, Hint::Walk)?;
        }
        let len = self.record_len(range.start, offset)?;
        self.take(offset, len, Hint::Walk, next)?;
        self.path = Path::Walk { next: next + 1, offset: offset + len as u64 };
        Ok(Some(next))
    }

    fn pick(&mut self, work: &mut Work) -> Result<Option<Position>, CursorFault> {
        let run = Arc::clone(&self.run);
        let Path::Pick { candidates, chunk, offsets, at, more } = &mut self.path else {
            unreachable!("pick picks")
        };
        if *at == chunk.len() {
            if !*more {
                return Ok(None);
            }
            chunk.clear();
            offsets.clear();
            *at = 0;
            let filled = candidates.next_chunk(chunk, CHUNK, work).and_then(|more| {
                run.index().offsets(chunk, offsets)?;
                Ok(more)
            });
            match filled {
                Ok(still) => *more = still,
                Err(IndexError::Stopped(stopped)) => return Err(ReadError::Stopped(stopped).into()),
                Err(fault) => {
                    chunk.clear();
                    return Err(CursorFault::Index(fault));
                }
            }
            if chunk.is_empty() {
                return Ok(None);
            }
        }
        let i = *at;
        *at += 1;
        let position = run.base() + u64::from(chunk[i]);
        let offset = u64::from(offsets[i]);
        let place = run.place_of(position);
        if place != self.place {
            self.place = place;
            self.window.bytes.clear();
        }
        let hint = if self.window.holds_record(offset) {
            Hint::Span(offset, offset)
        } else {
            // The neighbours still to come that lie close together, in either direction.
            let here = run.rels_of(place);
            let close = |(pair, rel): &(&[u32], &u32)| {
                pair[0].abs_diff(pair[1]) <= GAP && here.contains(rel)
            };
            let ahead = offsets[i..].windows(2).zip(&chunk[i + 1..]).take_while(close);
            let far = u64::from(offsets[i + ahead.count()]);
            Hint::Span(far.min(offset), far.max(offset))
        };
        let range = self.window.stretch(&run.segments()[place], offset, 4, hint);
        let len = self.record_len(range.map_err(CursorFault::Read)?.start, offset);
        let taken = len.and_then(|len| self.take(offset, len, hint, position));
        taken.map_err(CursorFault::Read)?;
        let record = self.record();
        if !self.query.matches(record.event_type(), record.tags()) {
            let what = "the index names an event that does not match";
            return Err(self.corrupt(offset, what).into());
        }
        Ok(Some(position))
    }

    fn record_len(&self, at: usize, offset: u64) -> Result<usize, ReadError> {
        RecordView::length(&self.window.bytes[at..])
            .ok_or_else(|| self.corrupt(offset, "an impossible record length"))
    }

    /// Makes the record at `offset` the current one.
    fn take(
        &mut self,
        offset: u64,
        len: usize,
        hint: Hint,
        position: Position,
    ) -> Result<(), ReadError> {
        let segment = &self.run.segments()[self.place];
        let range = self.window.stretch(segment, offset, len, hint)?;
        match RecordView::verify(&self.window.bytes[range.clone()]) {
            Ok(record) if record.position() == position => {
                self.layout = record.layout();
                self.current = range;
                Ok(())
            }
            Ok(record) => {
                let what = format!("position {} where {position} belongs", record.position());
                Err(self.corrupt(offset, &what))
            }
            Err(fault) => Err(self.corrupt(offset, &format!("the record is damaged: {fault}"))),
        }
    }

    fn corrupt(&self, offset: u64, what: &str) -> ReadError {
        let segment = &self.run.segments()[self.place];
        segment.damaged(Corruption { file: segment.name(), offset, what: what.into() })
    }
}

/// What else will be wanted soon.
#[derive(Debug, Clone, Copy)]
enum Hint {
    /// What follows.
    Walk,
    /// Records that begin between these offsets.
    Span(u64, u64),
}

impl Window {
    /// The place in the window of `len` bytes at `offset` of the segment; reads them if they are
    /// not there.
    fn stretch(
        &mut self,
        segment: &OpenSegment,
        offset: u64,
        len: usize,
        hint: Hint,
    ) -> Result<Range<usize>, ReadError> {
        if let Some(range) = self.find(offset, len) {
            return Ok(range);
        }
        let (start, want) = match hint {
            Hint::Walk => {
                let want = self.stride;
                self.stride = (self.stride * 4).min(LARGE_WINDOW);
                (offset, want)
            }
            Hint::Span(low, high) if offset == low => {
                (low, ((high - low) as usize).min(LARGE_WINDOW) + SMALL_WINDOW)
            }
            // Backwards: the window ends with the record at `offset`.
            Hint::Span(low, _) => {
                let start = low.max(offset.saturating_sub(LARGE_WINDOW as u64));
                (start, (offset - start) as usize + SMALL_WINDOW)
            }
        };
        let want = want.max((offset - start) as usize + len);
        self.bytes.resize(want, 0);
        self.start = start;
        let file = segment.file()?;
        let got = file.read_at(&mut self.bytes, start).map_err(|error| {
            self.bytes.clear();
            ReadError::io(format!("reading {}", segment.name()), &error)
        })?;
        self.bytes.truncate(got);
        self.find(offset, len).ok_or_else(|| {
            let what = "the file ends within a record".into();
            segment.damaged(Corruption { file: segment.name(), offset, what })
        })
    }

    /// Whether a whole record begins at `offset` in the window, so that nothing has to be read.
    fn holds_record(&self, offset: u64) -> bool {
        let length =
            self.find(offset, 4).and_then(|at| RecordView::length(&self.bytes[at.start..]));
        length.is_some_and(|length| self.find(offset, length).is_some())
    }

    fn find(&self, offset: u64, len: usize) -> Option<Range<usize>> {
        let at = offset.checked_sub(self.start)? as usize;
        let end = at.checked_add(len)?;
        (end <= self.bytes.len()).then_some(at..end)
    }
}
