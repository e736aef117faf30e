//! The sectors of a WAL file, each of which says whether it was written, and by which write:
//! `docs/format.md` has the fields.
//!
//! A disk writes a sector as a whole or not at all, so one that fails its checksum is damaged,
//! never torn. One that a torn write did not reach has the number of an earlier file, because files
//! are reused under greater numbers, or is all zero.

use super::fault::WalFault;
use super::record::file_name;
use crate::plants::{Plant, planted};
use std::io;
use std::sync::Arc;
use wellspring_format::batch::SECTOR_BYTES;
use wellspring_format::record::read_u32;
use wellspring_log::storage::{DeviceReader, StorageFile};

const HEADER_BYTES: usize = 12;
const PAYLOAD_BYTES: u64 = (SECTOR_BYTES - HEADER_BYTES) as u64;
/// What is written at a time: a page, so that the system never has to read one first.
pub(super) const BLOCK_BYTES: usize = 4096;
/// What is read at a time.
const WINDOW_BYTES: usize = 64 << 10;

/// Bytes of records that fit into a file.
pub(super) fn capacity(file_bytes: u64) -> u64 {
    (file_bytes / SECTOR_BYTES as u64 - 1) * PAYLOAD_BYTES
}

/// The sector in which this byte of the records is, or will be.
fn sector_of(offset: u64) -> u64 {
    1 + offset / PAYLOAD_BYTES
}

/// Where the sector of this byte of the records begins in its file.
pub(super) fn place_of(offset: u64) -> u64 {
    sector_of(offset) * SECTOR_BYTES as u64
}

/// The length of a file that ends with the block in which the records end.
pub(super) fn blocks_up_to(end: u64) -> u64 {
    let sectors = sector_of(end) + u64::from(!end.is_multiple_of(PAYLOAD_BYTES));
    (sectors * SECTOR_BYTES as u64).next_multiple_of(BLOCK_BYTES as u64)
}

/// What a sector says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectorState {
    /// By this write, in this life of the file.
    Written {
        write: u32,
    },
    /// Not in this life of the file.
    Unwritten,
    Damaged,
}

fn state(sector: &[u8], file: u32) -> SectorState {
    if sector.iter().all(|byte| *byte == 0) {
        return SectorState::Unwritten;
    }
    if read_u32(sector, 0) != crc32c::crc32c(&sector[4..]) || read_u32(sector, 4) > file {
        return SectorState::Damaged;
    }
    if read_u32(sector, 4) < file && !planted(Plant::TakesFormerLife) {
        return SectorState::Unwritten;
    }
    SectorState::Written { write: read_u32(sector, 8) }
}

/// Lays out records in the sectors of a file.
#[derive(Debug)]
pub(super) struct SectorWriter {
    file: u32,
    /// Where `bytes` begin in the file: a multiple of a block.
    at: u64,
    /// From the beginning of the block in which the last write ended.
    bytes: Vec<u8>,
    /// Where in `bytes` the first sector is that the next write changes.
    changed: usize,
}

impl SectorWriter {
    /// A writer of a file with this header and without records.
    pub(super) fn new(file: u32, header: &[u8; SECTOR_BYTES]) -> SectorWriter {
        SectorWriter { file, at: 0, bytes: header.to_vec(), changed: SECTOR_BYTES }
    }

    /// How many bytes of records there are up to here.
    pub(super) fn offset(&self) -> u64 {
        let bytes = self.at + self.bytes.len() as u64;
        let in_last = (bytes % SECTOR_BYTES as u64).saturating_sub(HEADER_BYTES as u64);
        (bytes / SECTOR_BYTES as u64 - 1) * PAYLOAD_BYTES + in_last
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.bytes.len().is_multiple_of(SECTOR_BYTES) {
                self.bytes.extend([0; HEADER_BYTES]);
            }
            let room = SECTOR_BYTES - self.bytes.len() % SECTOR_BYTES;
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.bytes.extend_from_slice(now);
            bytes = rest;
        }
    }

    /// Gives what was pushed since the last write to `write_at`, in whole blocks, and their place.
    pub(super) fn write(
        &mut self,
        write: u32,
        write_at: impl FnOnce(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let used = self.bytes.len();
        self.bytes.resize(used.next_multiple_of(BLOCK_BYTES), 0);
        let changed = self.changed..used.next_multiple_of(SECTOR_BYTES);
        for sector in self.bytes[changed].chunks_exact_mut(SECTOR_BYTES) {
            sector[4..8].copy_from_slice(&self.file.to_le_bytes());
            sector[8..HEADER_BYTES].copy_from_slice(&write.to_le_bytes());
            let crc = crc32c::crc32c(&sector[4..]);
            sector[..4].copy_from_slice(&crc.to_le_bytes());
        }
        write_at(&self.bytes, self.at)?;
        let full = used - used % BLOCK_BYTES;
        self.bytes.truncate(used);
        self.bytes.drain(..full);
        self.at += full as u64;
        self.changed = self.bytes.len() - self.bytes.len() % SECTOR_BYTES;
        Ok(())
    }
}

/// Where the bytes of a file are read.
#[derive(Debug)]
pub(super) enum Source {
    /// On the device, as the page cache is no witness of what a failed barrier has left.
    Device(DeviceReader),
    /// Wherever the system has them.
    Cache(Arc<dyn StorageFile>),
}

impl Source {
    pub(super) fn device(file: &Arc<dyn StorageFile>) -> Source {
        file.past_cache().map_or_else(|| Source::Cache(Arc::clone(file)), Source::Device)
    }

    /// Fills `into`, with zeros behind the end of the file.
    pub(super) fn fill(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let count = match self {
            Source::Device(device) => device.read_at(into, at),
            Source::Cache(file) => file.read_at(into, at),
        }?;
        into[count..].fill(0);
        Ok(())
    }
}

/// Why there is no record.
#[derive(Debug)]
pub(super) enum NoRecord {
    /// Nothing was written here in this life of the file, or not all of a record: the sector at
    /// `place` is where it ends.
    Unwritten {
        place: u64,
    },
    /// The sector at `place` fails its checksum, or what was written there is no record.
    Damaged {
        place: u64,
        what: &'static str,
    },
    Io(io::Error),
}

impl From<io::Error> for NoRecord {
    fn from(error: io::Error) -> NoRecord {
        NoRecord::Io(error)
    }
}

impl NoRecord {
    /// The fault, where a record has to be.
    pub(super) fn fault(self, number: u32) -> WalFault {
        let (place, what) = match self {
            NoRecord::Unwritten { place } => (place, "a record is missing"),
            NoRecord::Damaged { place, what } => (place, what),
            NoRecord::Io(error) => return WalFault::io("reading the WAL")(error),
        };
        WalFault::damaged(&file_name(number), place, what)
    }
}

/// Reads the records of a file from its sectors.
#[derive(Debug)]
pub(super) struct SectorReader {
    source: Source,
    file: u32,
    window: Vec<u8>,
    /// The first sector of the window.
    first: u64,
    /// The last sector whose state was looked at.
    known: (u64, SectorState),
}

impl SectorReader {
    pub(super) fn new(source: Source, file: u32) -> SectorReader {
        let known = (0, SectorState::Unwritten);
        SectorReader { source, file, window: Vec::new(), first: 0, known }
    }

    fn sector(&mut self, number: u64) -> io::Result<&[u8]> {
        let sectors = (self.window.len() / SECTOR_BYTES) as u64;
        if number < self.first || number >= self.first + sectors {
            self.window.resize(WINDOW_BYTES, 0);
            self.source.fill(&mut self.window, number * SECTOR_BYTES as u64)?;
            self.first = number;
        }
        let at = (number - self.first) as usize * SECTOR_BYTES;
        Ok(&self.window[at..at + SECTOR_BYTES])
    }

    fn state(&mut self, number: u64) -> io::Result<SectorState> {
        if self.known.0 != number {
            let file = self.file;
            self.known = (number, state(self.sector(number)?, file));
        }
        Ok(self.known.1)
    }

    /// Reads bytes of the records from `offset` on, if all of their sectors are written.
    pub(super) fn read(&mut self, mut offset: u64, mut into: &mut [u8]) -> Result<(), NoRecord> {
        while !into.is_empty() {
            let (number, place) = (sector_of(offset), place_of(offset));
            match self.state(number)? {
                SectorState::Written { .. } => {}
                SectorState::Unwritten => return Err(NoRecord::Unwritten { place }),
                SectorState::Damaged => {
                    let what = "a sector fails its checksum";
                    return Err(NoRecord::Damaged { place, what });
                }
            }
            let from = HEADER_BYTES + (offset % PAYLOAD_BYTES) as usize;
            let count = (SECTOR_BYTES - from).min(into.len());
            let (now, rest) = into.split_at_mut(count);
            now.copy_from_slice(&self.sector(number)?[from..from + count]);
            (into, offset) = (rest, offset + count as u64);
        }
        Ok(())
    }

    /// Whether a later write than this one has left a sector behind the one at `place`.
    pub(super) fn is_followed(&mut self, place: u64, write: u32, bytes: u64) -> io::Result<bool> {
        let behind = place / SECTOR_BYTES as u64 + 1..bytes.div_ceil(SECTOR_BYTES as u64);
        for number in behind {
            if let SectorState::Written { write: found } = self.state(number)?
                && found > write
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
