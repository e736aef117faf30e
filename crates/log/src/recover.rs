//! Interprets the bytes of a segment after a crash. Recovery depends on the bytes alone: the same
//! bytes give the same result on any disk. What is torn and what is damaged is decided by
//! [`segment_reader`](wellspring_format::segment_reader).

use crate::error::{Corruption, OpenError};
use crate::shared::Place;
use crate::shared::entry::BatchId;
use crate::storage::StorageFile;
use std::io::{self, Read};
use wellspring_format::batch::BatchHeader;
use wellspring_format::record::read_u32;
use wellspring_format::segment::{
    HeaderFault, SEGMENT_HEADER_BYTES, SegmentHeader, parse_segment_name,
};
pub use wellspring_format::segment_reader::Tail;
use wellspring_format::segment_reader::{Ending, SegmentFault, SegmentReader, VerifiedBatch};
use wellspring_types::Position;

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
    visit: &mut dyn FnMut(&VerifiedBatch<'_>) -> Result<(), OpenError>,
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
        batch.records_of(name).try_for_each(|found| found.map(drop)).map_err(OpenError::Corrupt)
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
        visit: &mut dyn FnMut(&VerifiedBatch<'_>) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let len = file.len().map_err(|error| reading(name, error))?;
        let source = FileBytes { file, at: SEGMENT_HEADER_BYTES as u64 };
        let mut batches = SegmentReader::resume(source, name, self.header, len, Ending::Crashed);
        while let Some(batch) = batches.next_batch().map_err(|fault| refused(name, fault))? {
            visit(&batch)?;
            self.add(&batch.header, read_u32(batch.header_bytes, 4));
        }
        self.tail = batches.tail();
        Ok(())
    }

    fn add(&mut self, header: &BatchHeader, crc: u32) {
        if self.header.source.is_some() {
            self.chain = batch_id(header, self.batches == 0, self.chain).chain();
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

/// The identity of a batch of a copy, after one with this chain.
pub(crate) fn batch_id(header: &BatchHeader, begins_segment: bool, previous: u32) -> BatchId {
    BatchId {
        epoch: header.epoch,
        first: header.first,
        count: header.count,
        recorded_at_us: header.recorded_at_us,
        begins_segment,
        body_bytes: header.body_bytes,
        body_crc: header.body_crc,
        previous,
    }
}

/// The bytes of a file, from an offset on.
pub(crate) struct FileBytes<'f> {
    pub(crate) file: &'f dyn StorageFile,
    pub(crate) at: u64,
}

impl Read for FileBytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

fn reading(name: &str, error: io::Error) -> OpenError {
    OpenError::Io { doing: format!("reading {name}"), error }
}

fn refused(name: &str, fault: SegmentFault) -> OpenError {
    match fault {
        SegmentFault::Corrupt(corruption) => OpenError::Corrupt(corruption),
        SegmentFault::UnknownVersion(version) => {
            OpenError::UnknownVersion { file: name.into(), version }
        }
        SegmentFault::Io(error) => reading(name, error),
    }
}
