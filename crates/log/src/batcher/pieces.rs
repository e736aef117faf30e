//! Splits the content of partitions into pieces of whole records.

use crate::handed_over::{HANDED_OVER_BYTES, HANDED_OVER_EVENTS};
use std::ops::Range;
use wellspring_format::record::RecordView;

/// Maximum size of a piece, which bounds how long other appends wait for the staging lock.
const PIECE_BYTES: usize = 256 << 10;
const PIECE_EVENTS: u32 = 1000;

/// Records that are staged together.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The part that contains them, and their range in it.
    part: usize,
    at: Range<usize>,
    pub(super) events: u32,
}

impl Piece {
    pub(super) fn bytes(&self) -> usize {
        self.at.len()
    }

    pub(super) fn records<'a>(&self, parts: &[&'a [u8]]) -> &'a [u8] {
        &parts[self.part][self.at.clone()]
    }
}

/// The pieces of these parts.
pub(super) fn pieces(parts: &[&[u8]]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (part, records) in parts.iter().enumerate() {
        let mut start = 0;
        while start < records.len() {
            let (bytes, events) = first(&records[start..]);
            assert!(events > 0, "a partition of a log holds records");
            pieces.push(Piece { part, at: start..start + bytes, events });
            start += bytes;
        }
    }
    pieces
}

/// The first records of `records`, at least one: their size and number.
fn first(records: &[u8]) -> (usize, u32) {
    let (mut bytes, mut events) = (0, 0);
    while let Some(len) = RecordView::length(&records[bytes..]) {
        if events > 0 && (bytes + len > PIECE_BYTES || events == PIECE_EVENTS) {
            break;
        }
        bytes += len;
        events += 1;
    }
    (bytes, events)
}

/// The first pieces that are handed over together, joined into one, and their number.
pub(super) fn joined(pieces: &[Piece]) -> Option<(Piece, usize)> {
    let (first, rest) = pieces.split_first()?;
    let (mut joined, mut count) = (first.clone(), 1);
    for next in rest {
        let bytes = joined.bytes() + next.bytes();
        let events = joined.events + next.events;
        if next.part != joined.part
            || bytes > HANDED_OVER_BYTES
            || events as usize > HANDED_OVER_EVENTS
        {
            break;
        }
        debug_assert_eq!(joined.at.end, next.at.start, "the pieces of a part are adjacent");
        joined.at.end = next.at.end;
        joined.events = events;
        count += 1;
    }
    Some((joined, count))
}
