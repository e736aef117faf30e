//! What the bytes of a segment say. Recovery looks at bytes alone: the same
//! bytes give the same answer, on whatever disk they lie.
//!
//! The end of the last segment needs judgement, because a crash in mid-write
//! leaves sectors that arrived and sectors that did not. The disk is assumed to
//! write a 512-byte sector wholly or not at all, and the file held zeros where
//! the batch was going. So a batch that fails its checksum is *torn*, and was
//! never acknowledged, if more of its sector slices are zero than its header
//! says, or if the header itself misses a slice, or if the file ends within it.
//! Otherwise every sector arrived and some byte has changed since: *rot*, which
//! is refused, because the batch may have been acknowledged. And nothing after
//! a torn batch may claim that a barrier had passed beyond it.

use crate::batch::{BATCH_HEADER_BYTES, BATCH_MAGIC, BatchHeader, SECTOR_BYTES, zero_slices};
use crate::error::{Corruption, OpenError};
use crate::record::{RecordView, read_u32};
use crate::segment::{HeaderFault, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::shared::Place;
use crate::shared::entry::BatchId;
use crate::storage::StorageFile;
use std::io;
use wellspring_types::Position;

/// A batch found by [`scan`], its checksum verified.
#[derive(Debug)]
pub struct ScannedBatch<'a> {
    /// Its header.
    pub header: BatchHeader,
    /// Where the header begins in the segment.
    pub offset: u64,
    /// The records.
    pub body: &'a [u8],
}

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With its last batch, or with zeros after it.
    Clean,
    /// With a write that a crash cut short; nothing of it was acknowledged as durable.
    Torn,
}

/// What [`scan`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScannedSegment {
    /// The segment's header.
    pub header: SegmentHeader,
    /// Position after the last event.
    pub next: Position,
    /// Offset after the last good batch.
    pub end: u64,
    /// Header CRC of the last good batch, 0 if there is none.
    pub last_crc: u32,
    /// When the last event was recorded, µs since 1970 UTC; 0 if there is none.
    pub recorded_at_us: u64,
    /// Offset before which a barrier had surely passed when the last good batch was written.
    pub synced_to: u64,
    /// The greatest epoch in the headers of the segment and its good batches.
    pub epoch: u64,
    /// In a copy: the place of the last good batch in the shared log, or that after which the first
    /// is found.
    pub place: Place,
    /// In a copy: the chain up to the last good batch.
    pub chain: u32,
    /// Good batches.
    pub batches: u64,
    /// What follows them.
    pub tail: Tail,
}

struct Scanner<'f> {
    file: &'f dyn StorageFile,
    name: &'f str,
    len: u64,
}

/// Reads the header of a segment.
///
/// # Errors
/// [`OpenError`]: damaged, unknown version, or I/O.
pub fn read_header(file: &dyn StorageFile, name: &str) -> Result<SegmentHeader, OpenError> {
    let mut bytes = [0u8; SEGMENT_HEADER_BYTES];
    let got = file.read_at(&mut bytes, 0).map_err(|error| reading(name, error))?;
    let damaged = |what: &str| {
        OpenError::Corrupt(Corruption { file: name.into(), offset: got as u64, what: what.into() })
    };
    if got < SEGMENT_HEADER_BYTES {
        return Err(damaged("the file ends within the segment header"));
    }
    SegmentHeader::decode(&bytes).map_err(|fault| match fault {
        HeaderFault::Damaged => OpenError::Corrupt(Corruption {
            file: name.into(),
            offset: 0,
            what: "the segment header fails its checksum".into(),
        }),
        HeaderFault::Version(version) => OpenError::UnknownVersion { file: name.into(), version },
    })
}

/// Walks all good batches of a segment in order and judges what follows them.
///
/// # Errors
/// [`OpenError::Corrupt`] with file and offset if acknowledged bytes are damaged, or whatever
/// `visit` returns.
pub fn scan(
    file: &dyn StorageFile,
    name: &str,
    visit: &mut dyn FnMut(&ScannedBatch<'_>) -> Result<(), OpenError>,
) -> Result<ScannedSegment, OpenError> {
    let mut found = ScannedSegment::empty(read_header(file, name)?);
    found.walk(file, name, visit)?;
    Ok(found)
}

/// The good batches of a damaged segment, up to the first that is not, or whose records are not.
///
/// # Errors
/// [`OpenError`], if not even the segment's header can be read.
pub(crate) fn scan_good(file: &dyn StorageFile, name: &str) -> Result<ScannedSegment, OpenError> {
    let mut found = ScannedSegment::empty(read_header(file, name)?);
    let walked = found.walk(file, name, &mut |batch| {
        records(name, batch).try_for_each(|found| found.map(drop)).map_err(OpenError::Corrupt)
    });
    match walked {
        Ok(()) | Err(OpenError::Corrupt(_)) => Ok(found),
        Err(other) => Err(other),
    }
}

impl ScannedSegment {
    fn empty(header: SegmentHeader) -> ScannedSegment {
        let source = header.source.unwrap_or_default();
        ScannedSegment {
            header,
            next: header.base,
            end: SEGMENT_HEADER_BYTES as u64,
            last_crc: 0,
            recorded_at_us: 0,
            synced_to: SEGMENT_HEADER_BYTES as u64,
            epoch: header.epoch,
            place: source.after,
            chain: source.chain,
            batches: 0,
            tail: Tail::Clean,
        }
    }

    fn walk(
        &mut self,
        file: &dyn StorageFile,
        name: &str,
        visit: &mut dyn FnMut(&ScannedBatch<'_>) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let len = file.len().map_err(|error| reading(name, error))?;
        let scanner = Scanner { file, name, len };
        let mut body = Vec::new();
        loop {
            match scanner.batch_at(self, &mut body)? {
                Next::Batch(header, crc) => {
                    visit(&ScannedBatch { header, offset: self.end, body: &body })?;
                    self.add(&header, crc);
                }
                Next::End(tail) => {
                    self.tail = tail;
                    return Ok(());
                }
            }
        }
    }

    fn add(&mut self, header: &BatchHeader, crc: u32) {
        if self.header.source.is_some() {
            let id = BatchId {
                epoch: header.epoch,
                first: header.first,
                count: header.count,
                recorded_at_us: header.recorded_at_us,
                begins_segment: self.batches == 0,
                body_bytes: header.body_bytes,
                body_crc: header.body_crc,
                previous: self.chain,
            };
            self.chain = id.chain();
            self.place = header.place;
        }
        self.next = header.last() + 1;
        self.end += header.total_bytes();
        self.last_crc = crc;
        self.recorded_at_us = header.recorded_at_us;
        self.synced_to = u64::from(header.synced_to);
        self.epoch = self.epoch.max(header.epoch);
        self.batches += 1;
    }
}

/// The records of a batch with their offsets in the segment, each verified.
///
/// # Errors
/// The iterator yields [`Corruption`] and then ends if a record is damaged or out of place.
pub fn records<'a>(
    name: &'a str,
    batch: &ScannedBatch<'a>,
) -> impl Iterator<Item = Result<(u64, RecordView<'a>), Corruption>> + 'a {
    let body = batch.body;
    let start = batch.offset + BATCH_HEADER_BYTES as u64;
    let header = batch.header;
    let mut at = 0usize;
    let mut position = header.first;
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended || (at == body.len() && position == header.last() + 1) {
            return None;
        }
        let offset = start + at as u64;
        let record = RecordView::length(&body[at..])
            .and_then(|len| body.get(at..at + len))
            .and_then(|bytes| RecordView::verify(bytes).ok())
            .filter(|record| record.position() == position && position <= header.last());
        let Some(record) = record else {
            ended = true;
            let what = format!("no good record for position {position}");
            return Some(Err(Corruption { file: name.into(), offset, what }));
        };
        at += record.byte_len();
        position += 1;
        Some(Ok((offset, record)))
    })
}

enum Next {
    Batch(BatchHeader, u32),
    End(Tail),
}

fn reading(name: &str, error: io::Error) -> OpenError {
    OpenError::Io { doing: format!("reading {name}"), error }
}

impl Scanner<'_> {
    fn batch_at(&self, found: &ScannedSegment, body: &mut Vec<u8>) -> Result<Next, OpenError> {
        let at = found.end;
        let mut bytes = [0u8; BATCH_HEADER_BYTES];
        let got = self.read(&mut bytes, at)?;
        let Some(header) = BatchHeader::decode(&bytes, found.header.salt) else {
            return self.no_header(found, &bytes[..got]);
        };
        if header.first != found.next || header.previous_crc != found.last_crc {
            return Err(self.corrupt(at, "a batch stands where another belongs"));
        }
        if at + header.total_bytes() > self.len {
            return self.torn(found, self.len);
        }
        body.resize(header.body_bytes as usize, 0);
        let got = self.read(body, at + BATCH_HEADER_BYTES as u64)?;
        if got < body.len() {
            return self.torn(found, self.len);
        }
        if crc32c::crc32c(body) == header.body_crc {
            return Ok(Next::Batch(header, read_u32(&bytes, 4)));
        }
        let mut whole = bytes.to_vec();
        whole.extend_from_slice(body);
        if zero_slices(&whole, at) > header.zero_slices {
            return self.torn(found, at + header.total_bytes());
        }
        let batch = ScannedBatch { header, offset: at, body };
        Err(OpenError::Corrupt(self.rotten(&batch)))
    }

    /// Names a batch that fails its checksum by its first damaged record: a read that meets the
    /// record names the same byte.
    fn rotten(&self, batch: &ScannedBatch<'_>) -> Corruption {
        let what = "a batch fails its checksum although all of it was written";
        match records(self.name, batch).find_map(Result::err) {
            Some(record) => {
                let what =
                    format!("{}: {what}, which begins at byte {}", record.what, batch.offset);
                Corruption { what, ..record }
            }
            None => Corruption { file: self.name.into(), offset: batch.offset, what: what.into() },
        }
    }

    /// There is no valid header at the end of the good batches: the end, a torn header, or rot.
    fn no_header(&self, found: &ScannedSegment, bytes: &[u8]) -> Result<Next, OpenError> {
        let at = found.end;
        if bytes.len() < BATCH_HEADER_BYTES {
            let clean = bytes.iter().all(|&byte| byte == 0);
            return Ok(Next::End(if clean { Tail::Clean } else { Tail::Torn }));
        }
        // A slice that the header shares with records is judged whole: a header may end with zeros.
        let mut around = [0u8; BATCH_HEADER_BYTES + SECTOR_BYTES];
        let to = (at + BATCH_HEADER_BYTES as u64).next_multiple_of(SECTOR_BYTES as u64);
        let got = self.read(&mut around[..(to - at) as usize], at)?;
        if zero_slices(&around[..got], at) > 0 {
            // The header's sectors did not all arrive; what else did is of no account.
            return self.torn(found, at + BATCH_HEADER_BYTES as u64);
        }
        Err(self.corrupt(at, "neither a batch nor the zeros that follow the last one"))
    }

    /// The batch at the end of the good ones is torn, unless something after `from` proves that a
    /// barrier had passed it.
    fn torn(&self, found: &ScannedSegment, from: u64) -> Result<Next, OpenError> {
        const WINDOW: usize = 1 << 20;
        let mut tail = Tail::Clean;
        if from >= self.len {
            return Ok(Next::End(Tail::Torn));
        }
        // A header may begin at any byte; windows overlap by one header.
        let mut start = found.end;
        let mut window = vec![0u8; WINDOW];
        while start < self.len {
            let got = self.read(&mut window, start)?;
            let bytes = &window[..got];
            if bytes.iter().any(|&byte| byte != 0) {
                tail = Tail::Torn;
                self.check_no_later_batch(found, bytes, start, from)?;
            }
            if got < WINDOW {
                break;
            }
            start += (WINDOW - BATCH_HEADER_BYTES) as u64;
        }
        Ok(Next::End(tail))
    }

    fn check_no_later_batch(
        &self,
        found: &ScannedSegment,
        window: &[u8],
        start: u64,
        from: u64,
    ) -> Result<(), OpenError> {
        let magic = BATCH_MAGIC.to_le_bytes();
        for (i, candidate) in window.windows(BATCH_HEADER_BYTES).enumerate() {
            let offset = start + i as u64;
            if candidate[0] != magic[0] || candidate[..4] != magic || offset < from {
                continue;
            }
            let bytes = candidate.try_into().expect("windows have the header's size");
            if let Some(later) = BatchHeader::decode(bytes, found.header.salt)
                && u64::from(later.synced_to) > found.end
            {
                let what = format!(
                    "a batch is missing or damaged, yet the batch at byte {offset} was written after it was durable"
                );
                return Err(self.corrupt(found.end, &what));
            }
        }
        Ok(())
    }

    fn read(&self, buf: &mut [u8], offset: u64) -> Result<usize, OpenError> {
        self.file.read_at(buf, offset).map_err(|error| reading(self.name, error))
    }

    fn corrupt(&self, offset: u64, what: &str) -> OpenError {
        OpenError::Corrupt(Corruption { file: self.name.into(), offset, what: what.into() })
    }
}

const _: () = assert!(BATCH_HEADER_BYTES < SECTOR_BYTES);
