//! Iterates over the matching events of one run. Bytes are read in windows; neighbouring records
//! share a window, and a read of everything walks through the files.

use crate::error::{Corruption, ReadError};
use crate::index::{Candidates, IndexError};
use crate::query::CompiledQuery;
use crate::segments::{OpenSegment, Run};
use crate::work::Work;
use std::ops::Range;
use std::sync::Arc;
use wellspring_format::batch::{BATCH_HEADER_BYTES, BATCH_MAGIC};
use wellspring_format::record::{Layout, RecordView, read_u32};
use wellspring_format::segment::SEGMENT_HEADER_BYTES;
use wellspring_types::Position;

/// Number of candidates looked up at a time.
const CHUNK: usize = 256;
/// Smallest and largest window in bytes. A walk starts small and doubles.
const SMALL_WINDOW: usize = 4 << 10;
const LARGE_WINDOW: usize = 256 << 10;
/// Bytes of a record that count as a step, as a power of two: verifying and writing them out takes
/// about as long as one index access.
const STEP_BYTES_LOG2: u32 = 9;
/// Records further apart than this are read individually.
const GAP: u32 = 8 << 10;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct RunCursor {
    run: Arc<Run>,
    /// Index in the run of the segment that was last read.
    place: usize,
    query: Arc<CompiledQuery>,
    first: Position,
    last: Position,
    path: Path,
    window: Window,
    /// The current record, in the window.
    current: Range<usize>,
    /// The layout of the current record.
    layout: Layout,
}

/// Why a cursor could not be opened, or continue.
pub(crate) enum CursorFault {
    /// A fault of the index, which can be rebuilt unless the system failed.
    Index(IndexError),
    Read(ReadError),
}

impl From<ReadError> for CursorFault {
    fn from(error: ReadError) -> CursorFault {
        CursorFault::Read(error)
    }
}

impl CursorFault {
    /// Converts it to a reader's error.
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
    /// Every event: the next position, and the offset of its record or of the batch header before
    /// it.
    Walk { next: Position, offset: u64 },
    /// The events listed by the index.
    Pick { candidates: Candidates, chunk: Vec<u32>, offsets: Vec<u32>, at: usize, more: bool },
}

#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    start: u64,
    /// Size of the walk's next window.
    stride: usize,
}

impl RunCursor {
    /// A cursor over events `first` to `last`, both in the run and published.
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
                // The first chunk continues the search.
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

    /// The run that it reads.
    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// The positions that it covers.
    pub(crate) fn span(&self) -> (Position, Position) {
        (self.first, self.last)
    }

    /// The current record.
    pub(crate) fn record(&self) -> RecordView<'_> {
        RecordView::again(&self.window.bytes[self.current.clone()], self.layout)
    }

    /// Advances to the next event and returns its position.
    ///
    /// # Errors
    /// [`CursorFault`]. After [`ReadError::Stopped`] the next call continues; after any other error
    /// the cursor is unusable. A fault of the index omits nothing: a cursor opened after the last
    /// event, once the index has been rebuilt, continues where this one ended.
    pub(crate) fn advance(&mut self, work: &mut Work) -> Result<Option<Position>, CursorFault> {
        // Charged for the previous record: the next one's length is not known yet.
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
        let mut range = self.window.locate(segment, offset, 4, Hint::Walk)?;
        if read_u32(&self.window.bytes, range.start) == BATCH_MAGIC {
            offset += BATCH_HEADER_BYTES as u64;
            range = self.window.locate(segment, offset, 4, Hint::Walk)?;
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
            // The upcoming neighbours that are close together, in either direction.
            let here = run.rels_of(place);
            let close = |(pair, rel): &(&[u32], &u32)| {
                pair[0].abs_diff(pair[1]) <= GAP && here.contains(rel)
            };
            let ahead = offsets[i..].windows(2).zip(&chunk[i + 1..]).take_while(close);
            let far = u64::from(offsets[i + ahead.count()]);
            Hint::Span(far.min(offset), far.max(offset))
        };
        let range = self.window.locate(&run.segments()[place], offset, 4, hint);
        let len = self.record_len(range.map_err(CursorFault::Read)?.start, offset);
        let taken = len.and_then(|len| self.take(offset, len, hint, position));
        taken.map_err(CursorFault::Read)?;
        let record = self.record();
        if !self.query.matches(record.event_type(), record.tags()) {
            let what = "the index lists an event that does not match";
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
        let range = self.window.locate(segment, offset, len, hint)?;
        match RecordView::verify(&self.window.bytes[range.clone()]) {
            Ok(record) if record.position() == position => {
                self.layout = record.layout();
                self.current = range;
                Ok(())
            }
            Ok(record) => {
                let what = format!("position {} instead of {position}", record.position());
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

/// What will be read soon.
#[derive(Debug, Clone, Copy)]
enum Hint {
    /// The following bytes.
    Walk,
    /// Records that begin between these offsets.
    Span(u64, u64),
}

impl Window {
    /// The location in the window of `len` bytes at `offset` of the segment; reads them if
    /// necessary.
    fn locate(
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

    /// Whether the window holds a whole record at `offset`, so that nothing must be read.
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
