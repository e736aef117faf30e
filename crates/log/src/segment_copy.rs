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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment_reader::SegmentReader;
    use crate::{Append, EncodedEvents, HeadGate, Log, Options};
    use std::io::Read;
    use wellspring_types::Event;

    /// The bytes of a segment with batches of one to five events.
    fn segment() -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let gate = HeadGate::default();
        let options = Options { head_gate: gate.clone(), ..Options::default() };
        let log = Log::open(dir.path(), options).unwrap();
        for n in 1..=5 {
            let mut events = EncodedEvents::new();
            for _ in 0..n {
                events.push(&Event::json("T", &["a:1"], "{\"n\":0}").as_ref()).unwrap();
            }
            log.append(Append { events, ..Append::default() }).unwrap();
        }
        let extent = log.mark_extent(&gate.hold()).resolve();
        assert_eq!((extent.head, extent.segments.len()), (15, 1));
        let mut bytes = Vec::new();
        extent.segments[0].read_from(0).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn reader(bytes: &[u8]) -> SegmentReader<&[u8]> {
        SegmentReader::begin(bytes, "s", 1, bytes.len() as u64).unwrap()
    }

    /// A copy with another salt, if any, of as many events as there are or of these.
    fn copied(bytes: &[u8], salt: Option<u64>, events: u64) -> Vec<u8> {
        let mut read = reader(bytes);
        let mut copy = SegmentCopy::begin(Vec::new(), read.header(), salt).unwrap();
        while let Some(batch) = read.next_batch().unwrap() {
            if batch.header.last() <= events {
                copy.add(&batch).unwrap();
                continue;
            }
            let kept = (events + 1).saturating_sub(batch.header.first) as u32;
            if kept > 0 {
                copy.add_part(&batch, kept).unwrap();
            }
            break;
        }
        copy.finish().0
    }

    #[test]
    fn a_copy_is_the_same_bytes_unless_salt_or_length_differ() {
        let original = segment();
        assert_eq!(copied(&original, None, 15), original);
        let salted = copied(&original, Some(7), 15);
        assert_eq!(salted.len(), original.len());
        let mut read = reader(&salted);
        read.read_to_end().unwrap();
        assert_eq!((read.next_position(), read.header().salt), (16, 7));
        assert_eq!(copied(&salted, Some(reader(&original).header().salt), 15), original);
    }

    #[test]
    fn a_log_opens_from_a_copy_that_was_cut_at_any_event() {
        let original = segment();
        for events in 1..=15 {
            for salt in [None, Some(9)] {
                let dir = tempfile::tempdir().unwrap();
                let name = crate::segment::segment_name(1);
                std::fs::write(dir.path().join(name), copied(&original, salt, events)).unwrap();
                let log = Log::open(dir.path(), Options::default()).unwrap();
                assert_eq!(log.head(), events);
                let mut all = EncodedEvents::new();
                all.push(&Event::json("U", &[], "1").as_ref()).unwrap();
                let appended = log.append(Append { events: all, ..Append::default() }).unwrap();
                assert_eq!(appended.first, events + 1);
                log.close();
                let report = crate::inspect::verify(dir.path(), &mut |_, _| ()).unwrap();
                assert!(report.is_sound(), "{events}: {report:?}");
            }
        }
    }

    #[test]
    fn every_flipped_byte_of_a_segment_is_found() {
        let original = segment();
        for at in 0..original.len() {
            let mut bytes = original.clone();
            bytes[at] ^= 1;
            let found = SegmentReader::begin(&*bytes, "s", 1, bytes.len() as u64)
                .and_then(|mut read| read.read_to_end().map(|()| read.next_position()));
            assert!(found.is_err(), "byte {at}: {found:?}");
        }
        for len in 0..original.len() {
            let found = SegmentReader::begin(&original[..len], "s", 1, original.len() as u64)
                .and_then(|mut read| read.read_to_end());
            assert!(found.is_err(), "{len} bytes");
        }
    }
}
