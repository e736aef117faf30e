//! The batches of a segment, verified one by one as its bytes arrive: from a file, a socket, an
//! archive. The one reader of batches.
//!
//! What a batch means that fails its checks depends on where the bytes come from ([`Ending`]).
//! Those that were durable once are damaged. The last segment of a log is as a crash left it, some
//! sectors of the last write written and others not. A 512-byte sector is assumed to be written
//! atomically, and the file held zeros before the batch. A batch that fails its checksum is
//! therefore *torn*, and was never acknowledged, if more of its sector slices are zero than its
//! header says, or if the header itself misses a slice, or if the file ends within it. Otherwise
//! every sector was written and some byte has changed since: *rot*. Rot is an error, because the
//! batch may have been acknowledged. Moreover, no batch after a torn one may claim that a barrier
//! covered it.

use crate::batch::{BATCH_HEADER_BYTES, BATCH_MAGIC, BatchHeader, SECTOR_BYTES, zero_slices};
use crate::damage::Corruption;
use crate::record::{RecordView, read_u32};
use crate::segment::{HeaderFault, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::verified_batch::PlacedRecords;
pub use crate::verified_batch::VerifiedBatch;
use std::fmt;
use std::io::{self, Read};
use wellspring_types::Position;

/// What a batch is that fails its checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Damage: the bytes were durable once.
    Durable,
    /// The torn end of a crash, unless it was written completely.
    Crashed,
}

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With its last batch, or with zeros after it.
    Clean,
    /// With a write interrupted by a crash; none of it was acknowledged as durable.
    Torn,
}

/// Bytes that are looked through at once behind a torn batch.
const WINDOW_BYTES: usize = 1 << 20;
/// Memory for records that have not arrived yet.
const READ_AHEAD_BYTES: u64 = 1 << 20;
/// Most bytes of records in a batch. A longer one is damage that would cost memory.
const LARGEST_BODY_BYTES: u32 = 1 << 30;

/// Why the bytes cannot be used.
#[derive(Debug)]
pub enum SegmentFault {
    /// They are damaged. A retry helps only if the damage came with the transport.
    Corrupt(Corruption),
    /// A newer version wrote them.
    UnknownVersion(u32),
    /// They could not be read, or end too early (`UnexpectedEof`).
    Io(io::Error),
}

impl fmt::Display for SegmentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentFault::Corrupt(corruption) => corruption.fmt(f),
            SegmentFault::UnknownVersion(version) => {
                write!(
                    f,
                    "the segment has format version {version}, which this version does not support"
                )
            }
            SegmentFault::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SegmentFault {}

/// Reads a segment; see the module's documentation.
#[derive(Debug)]
pub struct SegmentReader<R> {
    source: R,
    name: String,
    ending: Ending,
    tail: Tail,
    header: SegmentHeader,
    /// The number of bytes of the segment.
    bytes: u64,
    /// Offset of the next batch.
    at: u64,
    next: Position,
    last_crc: u32,
    last_recorded_at_us: u64,
    header_bytes: [u8; BATCH_HEADER_BYTES],
    body: Vec<u8>,
    /// Of everything read so far.
    crc: u32,
}

impl<R: Read> SegmentReader<R> {
    /// Reads the header of a segment of `bytes` bytes, whose first event has position `base`.
    /// `name` is for errors.
    ///
    /// # Errors
    /// [`SegmentFault`].
    pub fn begin(
        mut source: R,
        name: &str,
        base: Position,
        bytes: u64,
    ) -> Result<Self, SegmentFault> {
        let mut encoded = [0; SEGMENT_HEADER_BYTES];
        source.read_exact(&mut encoded).map_err(SegmentFault::Io)?;
        let corrupt = |offset, what: String| {
            SegmentFault::Corrupt(Corruption { file: name.into(), offset, what })
        };
        let header = SegmentHeader::decode(&encoded).map_err(|fault| match fault {
            HeaderFault::Damaged => corrupt(0, "the segment header fails its checksum".into()),
            HeaderFault::Version(version) => SegmentFault::UnknownVersion(version),
        })?;
        if header.base != base {
            let what = format!("the segment begins with position {}, not {base}", header.base);
            return Err(corrupt(16, what));
        }
        if bytes < SEGMENT_HEADER_BYTES as u64 {
            return Err(corrupt(bytes, "the segment ends within its header".into()));
        }
        let mut read = SegmentReader::resume(source, name, header, bytes, Ending::Durable);
        read.crc = crc32c::crc32c(&encoded);
        Ok(read)
    }

    /// Reads the batches of a segment of `bytes` bytes with this header, which has been read.
    pub fn resume(
        source: R,
        name: &str,
        header: SegmentHeader,
        bytes: u64,
        ending: Ending,
    ) -> SegmentReader<R> {
        SegmentReader {
            source,
            name: name.into(),
            ending,
            tail: Tail::Clean,
            header,
            bytes,
            at: SEGMENT_HEADER_BYTES as u64,
            next: header.base,
            last_crc: 0,
            last_recorded_at_us: 0,
            header_bytes: [0; BATCH_HEADER_BYTES],
            body: Vec::new(),
            crc: 0,
        }
    }

    /// The segment's header.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Position after the last event that was read.
    #[must_use]
    pub fn next_position(&self) -> Position {
        self.next
    }

    /// Offset after the last batch that was read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// When the last event that was read was recorded, µs since 1970 UTC; 0 if there was none.
    #[must_use]
    pub fn last_recorded_at_us(&self) -> u64 {
        self.last_recorded_at_us
    }

    /// The checksum in the last record that was read, which tells the content of the segment from
    /// another one of the same length: it covers the record's time. 0 if there was none.
    #[must_use]
    pub fn last_record_checksum(&self) -> u32 {
        let (mut at, mut checksum) = (0, 0);
        while let Some(len) = RecordView::length(&self.body[at.min(self.body.len())..]) {
            checksum = self.body.get(at + 4..at + 8).map_or(0, |_| read_u32(&self.body, at + 4));
            at += len;
        }
        checksum
    }

    /// How the segment ends, once all batches are read.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// CRC32C of all bytes read so far, of bytes that were durable.
    #[must_use]
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// The next batch; `None` at the end. Zeros may follow the last batch of a full segment.
    ///
    /// # Errors
    /// [`SegmentFault`]. Nothing more can be read then.
    pub fn next_batch(&mut self) -> Result<Option<VerifiedBatch<'_>>, SegmentFault> {
        let offset = self.at;
        let left = self.bytes.saturating_sub(offset);
        if left < BATCH_HEADER_BYTES as u64 {
            return self.ends_within_header(left).map(|()| None);
        }
        if !self.read_header()? {
            return Ok(None);
        }
        if self.ending == Ending::Durable {
            self.crc = crc32c::crc32c_append(self.crc, &self.header_bytes);
        }
        let Some(header) = BatchHeader::decode(&self.header_bytes, self.header.salt) else {
            return self.has_no_header(left).map(|()| None);
        };
        if header.first != self.next || header.previous_crc != self.last_crc {
            return Err(self.corrupt(offset, "an unexpected batch"));
        }
        let is_long = header.body_bytes > LARGEST_BODY_BYTES;
        match self.ending {
            Ending::Crashed if header.total_bytes() > left => {
                return self.is_shorter(true).map(|()| None);
            }
            Ending::Durable if header.total_bytes() > left || is_long => {
                return Err(self.corrupt(offset, "the segment ends within a batch"));
            }
            Ending::Crashed | Ending::Durable => {}
        }
        // Memory grows with what arrives: the length may be a lie.
        let bytes = u64::from(header.body_bytes);
        self.body.clear();
        self.body.reserve(bytes.min(READ_AHEAD_BYTES) as usize);
        let got = (&mut self.source).take(bytes).read_to_end(&mut self.body);
        if got.map_err(SegmentFault::Io)? < header.body_bytes as usize {
            return self.is_shorter(true).map(|()| None);
        }
        if crc32c::crc32c(&self.body) != header.body_crc {
            return self.fails_checksum(&header).map(|()| None);
        }
        if self.ending == Ending::Durable {
            self.crc = crc32c::crc32c_append(self.crc, &self.body);
        }
        self.at += header.total_bytes();
        self.next = header.last() + 1;
        self.last_crc = read_u32(&self.header_bytes, 4);
        self.last_recorded_at_us = header.recorded_at_us;
        let (header_bytes, body) = (&self.header_bytes, &*self.body);
        Ok(Some(VerifiedBatch { header, header_bytes, body, offset }))
    }

    /// Reads the bytes of a header; says whether all of them were there.
    fn read_header(&mut self) -> Result<bool, SegmentFault> {
        let mut count = 0;
        while count < BATCH_HEADER_BYTES {
            match self.source.read(&mut self.header_bytes[count..]) {
                Ok(0) => {
                    let is_torn = self.header_bytes[..count].iter().any(|&byte| byte != 0);
                    return self.is_shorter(is_torn).map(|()| false);
                }
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SegmentFault::Io(error)),
            }
        }
        Ok(true)
    }

    /// The segment ends within what was to be read.
    fn is_shorter(&mut self, is_torn: bool) -> Result<(), SegmentFault> {
        if self.ending == Ending::Durable {
            return Err(SegmentFault::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        if is_torn {
            self.tail = Tail::Torn;
        }
        self.bytes = self.at;
        Ok(())
    }

    /// Fewer bytes are left than a header has.
    fn ends_within_header(&mut self, left: u64) -> Result<(), SegmentFault> {
        if self.ending == Ending::Durable {
            return self.zeros(left);
        }
        let mut rest = Vec::new();
        (&mut self.source).take(left).read_to_end(&mut rest).map_err(SegmentFault::Io)?;
        if rest.iter().any(|&byte| byte != 0) {
            self.tail = Tail::Torn;
        }
        self.bytes = self.at;
        Ok(())
    }

    /// No valid header follows the valid batches: the end of the segment, a torn header, or damage.
    fn has_no_header(&mut self, left: u64) -> Result<(), SegmentFault> {
        let (at, header_bytes) = (self.at, BATCH_HEADER_BYTES as u64);
        if self.ending == Ending::Durable {
            if self.header_bytes.iter().any(|&byte| byte != 0) {
                return Err(self.corrupt(at, "neither a batch nor the zeros after the last one"));
            }
            return self.zeros(left - header_bytes);
        }
        // A slice that the header shares with records is judged as a whole, because a header may
        // end with zeros.
        let mut around = self.header_bytes.to_vec();
        let to = (at + header_bytes).next_multiple_of(SECTOR_BYTES as u64);
        let more = to - at - header_bytes;
        (&mut self.source).take(more).read_to_end(&mut around).map_err(SegmentFault::Io)?;
        if zero_slices(&around, at) > 0 {
            // The header's sectors were not all written; the other sectors do not matter.
            return self.is_torn(around, at + header_bytes);
        }
        Err(self.corrupt(at, "neither a batch nor the zeros that follow the last one"))
    }

    /// The records read are not those of their header.
    fn fails_checksum(&mut self, header: &BatchHeader) -> Result<(), SegmentFault> {
        let offset = self.at;
        if self.ending == Ending::Durable {
            return Err(self.corrupt(offset, "a batch fails its checksum"));
        }
        let whole = [&self.header_bytes[..], &self.body].concat();
        if zero_slices(&whole, offset) > header.zero_slices {
            return self.is_torn(whole, offset + header.total_bytes());
        }
        // Told by its first damaged record, as a read of that record does.
        let what = "a batch fails its checksum although it was written completely";
        let mut records = PlacedRecords::of(header, offset, &self.body);
        let Some(missing) = records.find_map(Result::err) else {
            return Err(self.corrupt(offset, what));
        };
        let record = missing.corruption(&self.name);
        let what = format!("{}: {what}, which begins at byte {offset}", record.what);
        Err(SegmentFault::Corrupt(Corruption { what, ..record }))
    }

    /// The batch after the valid ones is torn, unless something after `from` proves that a barrier
    /// covered it. `read` is what has been read of it and behind it.
    fn is_torn(&mut self, read: Vec<u8>, from: u64) -> Result<(), SegmentFault> {
        let (mut window, mut start) = (read, self.at);
        if from >= self.bytes {
            self.tail = Tail::Torn;
        }
        // A header may begin at any byte; windows overlap by one header.
        while from < self.bytes {
            let room = WINDOW_BYTES.saturating_sub(window.len()) as u64;
            let more = (&mut self.source).take(room).read_to_end(&mut window);
            let is_last = (more.map_err(SegmentFault::Io)? as u64) < room;
            if window.iter().any(|&byte| byte != 0) {
                self.tail = Tail::Torn;
                self.check_no_later_batch(&window, start, from)?;
            }
            if is_last {
                break;
            }
            let passed = window.len() - BATCH_HEADER_BYTES;
            window.drain(..passed);
            start += passed as u64;
        }
        self.bytes = self.at;
        Ok(())
    }

    fn check_no_later_batch(
        &self,
        window: &[u8],
        start: u64,
        from: u64,
    ) -> Result<(), SegmentFault> {
        let magic = BATCH_MAGIC.to_le_bytes();
        for (i, candidate) in window.windows(BATCH_HEADER_BYTES).enumerate() {
            let offset = start + i as u64;
            if candidate[0] != magic[0] || candidate[..4] != magic || offset < from {
                continue;
            }
            let bytes = candidate.try_into().expect("windows have the header's size");
            if let Some(later) = BatchHeader::decode(bytes, self.header.salt)
                && u64::from(later.synced_to) > self.at
            {
                let what = format!(
                    "a batch is missing or damaged, yet the batch at byte {offset} was written after it was durable"
                );
                return Err(self.corrupt(self.at, &what));
            }
        }
        Ok(())
    }

    /// Reads everything that is left.
    ///
    /// # Errors
    /// [`SegmentFault`].
    pub fn read_to_end(&mut self) -> Result<(), SegmentFault> {
        while self.next_batch()?.is_some() {}
        Ok(())
    }

    /// Reads the rest of the segment, which has to be zero.
    fn zeros(&mut self, mut left: u64) -> Result<(), SegmentFault> {
        let mut chunk = [0; 4096];
        while left > 0 {
            let part = &mut chunk[..left.min(4096) as usize];
            self.source.read_exact(part).map_err(SegmentFault::Io)?;
            self.crc = crc32c::crc32c_append(self.crc, part);
            if part.iter().any(|&byte| byte != 0) {
                return Err(
                    self.corrupt(self.at, "something other than zeros follows the last batch")
                );
            }
            left -= part.len() as u64;
        }
        self.bytes = self.at;
        Ok(())
    }

    fn corrupt(&self, offset: u64, what: &str) -> SegmentFault {
        SegmentFault::Corrupt(Corruption { file: self.name.clone(), offset, what: what.into() })
    }
}

const _: () = assert!(BATCH_HEADER_BYTES < SECTOR_BYTES);
