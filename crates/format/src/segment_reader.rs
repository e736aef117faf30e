//! The batches of a segment, verified one by one as its bytes arrive: from a file, a socket, an
//! archive. For bytes that were durable once, so a batch that fails its checks is damage, never the
//! torn end of a crash (recovery tells these apart).

use crate::batch::{BATCH_HEADER_BYTES, BatchHeader};
use crate::damage::Corruption;
use crate::record::{RecordView, read_u32};
use crate::segment::{HeaderFault, SEGMENT_HEADER_BYTES, SegmentHeader};
use std::fmt;
use std::io::{self, Read};
use wellspring_types::Position;

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

/// A verified batch.
#[derive(Debug, Clone, Copy)]
pub struct VerifiedBatch<'a> {
    /// Its header.
    pub header: BatchHeader,
    /// The header's bytes.
    pub header_bytes: &'a [u8; BATCH_HEADER_BYTES],
    /// The records.
    pub body: &'a [u8],
    /// Offset of its header in the segment.
    pub offset: u64,
}

impl<'a> VerifiedBatch<'a> {
    /// The records, in order. Their bytes are covered by the batch's checksum, so only their
    /// lengths and positions are checked here.
    ///
    /// # Errors
    /// The iterator yields `None` in place of a record that is out of place, and ends.
    pub fn records(&self) -> impl Iterator<Item = Option<RecordView<'a>>> + 'a {
        let (body, header) = (self.body, self.header);
        let (mut at, mut position) = (0, header.first);
        let mut ended = false;
        std::iter::from_fn(move || {
            if ended || (at == body.len() && position == header.last() + 1) {
                return None;
            }
            let record = RecordView::length(&body[at..])
                .and_then(|len| body.get(at..at + len))
                .and_then(|bytes| RecordView::verify(bytes).ok())
                .filter(|record| record.position() == position && position <= header.last());
            match &record {
                Some(record) => {
                    at += record.byte_len();
                    position += 1;
                }
                None => ended = true,
            }
            Some(record)
        })
    }
}

/// Reads a segment; see the module's documentation.
#[derive(Debug)]
pub struct SegmentReader<R> {
    source: R,
    name: String,
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
        Ok(SegmentReader {
            source,
            name: name.into(),
            header,
            bytes,
            at: SEGMENT_HEADER_BYTES as u64,
            next: base,
            last_crc: 0,
            last_recorded_at_us: 0,
            header_bytes: [0; BATCH_HEADER_BYTES],
            body: Vec::new(),
            crc: crc32c::crc32c(&encoded),
        })
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

    /// CRC32C of all bytes read so far.
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
        let left = self.bytes - offset;
        if left == 0 {
            return Ok(None);
        }
        if left < BATCH_HEADER_BYTES as u64 {
            return self.zeros(left).map(|()| None);
        }
        self.source.read_exact(&mut self.header_bytes).map_err(SegmentFault::Io)?;
        self.crc = crc32c::crc32c_append(self.crc, &self.header_bytes);
        let Some(header) = BatchHeader::decode(&self.header_bytes, self.header.salt) else {
            if self.header_bytes.iter().any(|&byte| byte != 0) {
                return Err(
                    self.corrupt(offset, "neither a batch nor the zeros after the last one")
                );
            }
            return self.zeros(left - BATCH_HEADER_BYTES as u64).map(|()| None);
        };
        if header.first != self.next || header.previous_crc != self.last_crc {
            return Err(self.corrupt(offset, "an unexpected batch"));
        }
        if header.total_bytes() > left || header.body_bytes > LARGEST_BODY_BYTES {
            return Err(self.corrupt(offset, "the segment ends within a batch"));
        }
        // Memory grows with what arrives: the length may be a lie.
        let bytes = u64::from(header.body_bytes);
        self.body.clear();
        self.body.reserve(bytes.min(READ_AHEAD_BYTES) as usize);
        let got = (&mut self.source).take(bytes).read_to_end(&mut self.body);
        if got.map_err(SegmentFault::Io)? < header.body_bytes as usize {
            return Err(SegmentFault::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        let body_crc = crc32c::crc32c(&self.body);
        if body_crc != header.body_crc {
            return Err(self.corrupt(offset, "a batch fails its checksum"));
        }
        self.crc = crc32c::crc32c_append(self.crc, &self.body);
        self.at += header.total_bytes();
        self.next = header.last() + 1;
        self.last_crc = read_u32(&self.header_bytes, 4);
        self.last_recorded_at_us = header.recorded_at_us;
        let (header_bytes, body) = (&self.header_bytes, &*self.body);
        Ok(Some(VerifiedBatch { header, header_bytes, body, offset }))
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
