//! Interprets the bytes of a segment. Recovery depends on the bytes alone: the same bytes give the
//! same result on any disk.
//!
//! The end of the last segment needs care, because a crash during a write leaves some sectors
//! written and others not. A 512-byte sector is assumed to be written atomically, and the file held
//! zeros before the batch. A batch that fails its checksum is therefore *torn*, and was never
//! acknowledged, if more of its sector slices are zero than its header says, or if the header
//! itself misses a slice, or if the file ends within it. Otherwise every sector was written and
//! some byte has changed since: *rot*. Rot is an error, because the batch may have been
//! acknowledged. Moreover, no batch after a torn one may claim that a barrier covered it.

use crate::error::{Corruption, OpenError};
use crate::shared::Place;
use crate::shared::entry::BatchId;
use crate::storage::StorageFile;
use std::io;
use wellspring_format::batch::{
    BATCH_HEADER_BYTES, BATCH_MAGIC, BatchHeader, SECTOR_BYTES, zero_slices,
};
use wellspring_format::record::{RecordView, read_u32};
use wellspring_format::segment::{
    HeaderFault, SEGMENT_HEADER_BYTES, SegmentHeader, parse_segment_name,
};
use wellspring_types::Position;

/// A batch found by [`scan`], with a valid checksum.
#[derive(Debug)]
pub struct ScannedBatch<'a> {
    /// Its header.
    pub header: BatchHeader,
    /// Offset of its header in the segment.
    pub offset: u64,
    /// The records.
    pub body: &'a [u8],
}

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With its last batch, or with zeros after it.
    Clean,
    /// With a write interrupted by a crash; none of it was acknowledged as durable.
    Torn,
}

/// The result of [`scan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScannedSegment {
    /// The segment's header.
    pub header: SegmentHeader,
    /// Position after the last event.
    pub next: Position,
    /// Offset after the last valid batch.
    pub end: u64,
    /// Header CRC of the last valid batch, 0 if there is none.
    pub last_crc: u32,
    /// When the last event was recorded, µs since 1970 UTC; 0 if there is none.
    pub recorded_at_us: u64,
    /// Offset that a barrier had certainly covered when the last valid batch was written.
    pub synced_to: u64,
    /// The greatest epoch in the headers of the segment and its valid batches.
    pub epoch: u64,
    /// In a copy: the place of the last valid batch in the shared log, or the place after which the
    /// first one is found.
    pub place: Place,
    /// In a copy: the chain up to the last valid batch.
    pub chain: u32,
    /// Number of valid batches.
    pub batches: u64,
    /// What follows them.
    pub tail: Tail,
}

struct Scanner<'f> {
    file: &'f dyn StorageFile,
    name: &'f str,
    len: u64,
}

/// Reads the header of a segment. A file named as a segment has to hold the one that its name says.
///
/// # Errors
/// [`OpenError`]: damaged, the header of another segment, unknown version, or I/O.
pub fn read_header(file: &dyn StorageFile, name: &str) -> Result<SegmentHeader, OpenError> {
    let mut bytes = [0u8; SEGMENT_HEADER_BYTES];
    let got = file.read_at(&mut bytes, 0).map_err(|error| reading(name, error))?;
    let damaged = |what: &str| {
        OpenError::Corrupt(Corruption { file: name.into(), offset: got as u64, what: what.into() })
    };
    if got < SEGMENT_HEADER_BYTES {
        return Err(damaged("the file ends within the segment header"));
    }
    let header = SegmentHeader::decode(&bytes).map_err(|fault| match fault {
        HeaderFault::Damaged => OpenError::Corrupt(Corruption {
            file: name.into(),
            offset: 0,
            what: "the segment header fails its checksum".into(),
        }),
        HeaderFault::Version(version) => OpenError::UnknownVersion { file: name.into(), version },
    })?;
    if parse_segment_name(name).is_some_and(|base| base != header.base) {
        let what = format!("the file's name and its header ({}) disagree", header.base);
        return Err(OpenError::Corrupt(Corruption { file: name.into(), offset: 16, what }));
    }
    Ok(header)
}

/// Passes all valid batches of a segment to `visit` in order and classifies what follows them.
///
/// # Errors
/// [`OpenError::Corrupt`] with file and offset if acknowledged bytes are damaged, or an error of
/// `visit`.
pub fn scan(
    file: &dyn StorageFile,
    name: &str,
    visit: &mut dyn FnMut(&ScannedBatch<'_>) -> Result<(), OpenError>,
) -> Result<ScannedSegment, OpenError> {
    let mut found = ScannedSegment::empty(read_header(file, name)?);
    found.walk(file, name, visit)?;
    Ok(found)
}

/// The valid batches of a damaged segment, up to the first one that fails its checksum or contains
/// an invalid record.
///
/// # Errors
/// [`OpenError`] if not even the segment's header can be read.
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
            let what = format!("no valid record for position {position}");
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
            return Err(self.corrupt(at, "an unexpected batch"));
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

    /// Reports a batch that fails its checksum by its first damaged record, as a read of that
    /// record does.
    fn rotten(&self, batch: &ScannedBatch<'_>) -> Corruption {
        let what = "a batch fails its checksum although it was written completely";
        match records(self.name, batch).find_map(Result::err) {
            Some(record) => {
                let what =
                    format!("{}: {what}, which begins at byte {}", record.what, batch.offset);
                Corruption { what, ..record }
            }
            None => Corruption { file: self.name.into(), offset: batch.offset, what: what.into() },
        }
    }

    /// No valid header follows the valid batches: the end of the segment, a torn header, or rot.
    fn no_header(&self, found: &ScannedSegment, bytes: &[u8]) -> Result<Next, OpenError> {
        let at = found.end;
        if bytes.len() < BATCH_HEADER_BYTES {
            let clean = bytes.iter().all(|&byte| byte == 0);
            return Ok(Next::End(if clean { Tail::Clean } else { Tail::Torn }));
        }
        // A slice that the header shares with records is judged as a whole, because a header may
        // end with zeros.
        let mut around = [0u8; BATCH_HEADER_BYTES + SECTOR_BYTES];
        let to = (at + BATCH_HEADER_BYTES as u64).next_multiple_of(SECTOR_BYTES as u64);
        let got = self.read(&mut around[..(to - at) as usize], at)?;
        if zero_slices(&around[..got], at) > 0 {
            // The header's sectors were not all written; the other sectors do not matter.
            return self.torn(found, at + BATCH_HEADER_BYTES as u64);
        }
        Err(self.corrupt(at, "neither a batch nor the zeros that follow the last one"))
    }

    /// The batch after the valid ones is torn, unless something after `from` proves that a barrier
    /// covered it.
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
