//! A batch whose checksum is right, and its records.

use crate::batch::{BATCH_HEADER_BYTES, BatchHeader};
use crate::damage::Corruption;
use crate::record::RecordView;
use wellspring_types::Position;

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
        let placed = PlacedRecords::of(&self.header, self.offset, self.body);
        placed.map(|found| found.ok().map(|(_, record)| record))
    }

    /// The records with their offsets in the segment, whose name is for errors.
    ///
    /// # Errors
    /// The iterator yields [`Corruption`] and then ends if a record is damaged or out of place.
    pub fn records_of(
        &self,
        name: &'a str,
    ) -> impl Iterator<Item = Result<(u64, RecordView<'a>), Corruption>> + 'a {
        let placed = PlacedRecords::of(&self.header, self.offset, self.body);
        placed.map(|found| found.map_err(|missing| missing.corruption(name)))
    }
}

/// The verified records of a batch.
pub(crate) struct PlacedRecords<'a> {
    body: &'a [u8],
    /// Offset of the next record in the segment.
    offset: u64,
    position: Position,
    last: Position,
    ended: bool,
}

/// No valid record is where one has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MissingRecord {
    offset: u64,
    position: Position,
}

impl MissingRecord {
    pub(crate) fn corruption(self, file: &str) -> Corruption {
        let what = format!("no valid record for position {}", self.position);
        Corruption { file: file.into(), offset: self.offset, what }
    }
}

impl<'a> PlacedRecords<'a> {
    /// Those of a body with this header, which lies at this offset in the segment.
    pub(crate) fn of(header: &BatchHeader, offset: u64, body: &'a [u8]) -> PlacedRecords<'a> {
        let offset = offset + BATCH_HEADER_BYTES as u64;
        let (position, last) = (header.first, header.last());
        PlacedRecords { body, offset, position, last, ended: false }
    }
}

impl<'a> Iterator for PlacedRecords<'a> {
    type Item = Result<(u64, RecordView<'a>), MissingRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let PlacedRecords { body, offset, position, .. } = *self;
        if self.ended || (body.is_empty() && position == self.last + 1) {
            return None;
        }
        let record = RecordView::length(body)
            .and_then(|len| body.get(..len))
            .and_then(|bytes| RecordView::verify(bytes).ok())
            .filter(|record| record.position() == position && position <= self.last);
        let Some(record) = record else {
            self.ended = true;
            return Some(Err(MissingRecord { offset, position }));
        };
        self.body = &body[record.byte_len()..];
        self.offset += record.byte_len() as u64;
        self.position += 1;
        Some(Ok((offset, record)))
    }
}
