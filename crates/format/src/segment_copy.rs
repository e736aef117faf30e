//! Writes a segment anew from its verified batches: byte for byte, or with another salt, or only up
//! to a position.

use crate::batch::{BATCH_HEADER_BYTES, BatchHeader, seal};
use crate::record::read_u32;
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::segment_reader::VerifiedBatch;
use std::io::{self, Write};

/// A segment being written; see the module's documentation.
#[derive(Debug)]
pub struct SegmentCopy<W> {
    out: W,
    salt: u64,
    /// Whether headers have to be written anew, because the salt is another one.
    is_resalted: bool,
    at: u64,
    last_crc: u32,
    batch: Vec<u8>,
}

impl<W: Write> SegmentCopy<W> {
    /// Begins a copy of the segment with this header, with another salt if one is given.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn begin(mut out: W, header: &SegmentHeader, salt: Option<u64>) -> io::Result<Self> {
        let salted = SegmentHeader { salt: salt.unwrap_or(header.salt), ..*header };
        out.write_all(&salted.encode())?;
        Ok(SegmentCopy {
            out,
            salt: salted.salt,
            is_resalted: salted.salt != header.salt,
            at: SEGMENT_HEADER_BYTES as u64,
            last_crc: 0,
            batch: Vec::new(),
        })
    }

    /// Adds the next batch of the segment.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn add(&mut self, batch: &VerifiedBatch<'_>) -> io::Result<()> {
        assert_eq!(batch.offset, self.at, "batches follow each other");
        if self.is_resalted {
            return self.add_sealed(batch.header, batch.body);
        }
        self.out.write_all(batch.header_bytes)?;
        self.out.write_all(batch.body)?;
        self.at += batch.header.total_bytes();
        self.last_crc = read_u32(batch.header_bytes, 4);
        Ok(())
    }

    /// Adds the first `count` events of a batch, which must be fewer than it has and at least one.
    /// Nothing may follow.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn add_part(&mut self, batch: &VerifiedBatch<'_>, count: u32) -> io::Result<()> {
        assert!((1..batch.header.count).contains(&count), "a part of the batch");
        let (mut body_bytes, mut recorded_at_us) = (0, 0);
        for record in batch.records().flatten().take(count as usize) {
            body_bytes += record.byte_len();
            recorded_at_us = record.recorded_at_us();
        }
        let body = &batch.body[..body_bytes];
        let header = BatchHeader {
            count,
            body_bytes: body.len() as u32,
            body_crc: crc32c::crc32c(body),
            recorded_at_us,
            ..batch.header
        };
        self.add_sealed(header, body)
    }

    /// The writer, and the number of bytes written.
    pub fn finish(self) -> (W, u64) {
        (self.out, self.at)
    }

    fn add_sealed(&mut self, header: BatchHeader, body: &[u8]) -> io::Result<()> {
        self.batch.clear();
        self.batch.resize(BATCH_HEADER_BYTES, 0);
        self.batch.extend_from_slice(body);
        let header = BatchHeader { previous_crc: self.last_crc, ..header };
        self.last_crc = seal(&mut self.batch, self.at, header, self.salt);
        self.out.write_all(&self.batch)?;
        self.at += self.batch.len() as u64;
        Ok(())
    }
}
