//! The batches of a copy as entries of the shared log that it follows: for other copies that lack
//! what that log has dropped.

use crate::error::{OpenError, ReadError};
use crate::log::Log;
use crate::recover::{self, FileBytes, batch_id};
use crate::role::Role;
use crate::segments::{OpenSegment, Segments};
use crate::shared::entry::{BatchPart, Entry};
use crate::shared::{Place, PlacedEntry};
use std::io::BufReader;
use std::sync::Arc;
use wellspring_format::segment::SEGMENT_HEADER_BYTES;
use wellspring_format::segment_reader::{Ending, SegmentFault, SegmentReader};
use wellspring_types::Position;

/// Read at a time.
const BUFFER_BYTES: usize = 256 << 10;

fn unreadable(segment: &OpenSegment, error: OpenError) -> ReadError {
    match error {
        OpenError::Corrupt(corruption) => segment.damaged(corruption),
        other => io_error(segment, other.to_string()),
    }
}

fn io_error(segment: &OpenSegment, error: String) -> ReadError {
    ReadError::Io { doing: format!("reading {}", segment.name()), error }
}

impl Log {
    /// The batches that this copy of a shared log has after a place, each as one entry, for
    /// [copies that lack them](crate::shared::Fetched::Accepted): at least one unless there is
    /// none, and about `max_bytes`. None from a log of files, or one that is
    /// [detached](Role::Detached).
    ///
    /// # Errors
    /// [`ReadError::Corrupt`] until the damage is repaired, and [`ReadError::Io`].
    pub fn accepted_after(
        &self,
        after: Place,
        max_bytes: usize,
    ) -> Result<Vec<PlacedEntry>, ReadError> {
        if self.shared_stats().is_none() || matches!(self.role(), Role::Detached { .. }) {
            return Ok(Vec::new());
        }
        accepted_after(&self.sequencer().segments, self.head(), after, max_bytes)
    }
}

/// The published batches after a place, each as one entry: at least one unless there is none, and
/// about `max_bytes`.
fn accepted_after(
    segments: &Segments,
    head: Position,
    after: Place,
    max_bytes: usize,
) -> Result<Vec<PlacedEntry>, ReadError> {
    let runs = segments.runs();
    let all: Vec<&Arc<OpenSegment>> = runs.iter().flat_map(|run| run.segments()).collect();
    let (mut found, mut bytes) = (Vec::new(), 0);
    for segment in &all[first_with(&all, after)?..] {
        if segment.base() > head {
            break;
        }
        let name = segment.name();
        let file = segment.file()?;
        let header = recover::read_header(&**file, &name).map_err(|e| unreadable(segment, e))?;
        let len = file.len().map_err(|error| io_error(segment, error.to_string()))?;
        let source = FileBytes { file: &**file, at: SEGMENT_HEADER_BYTES as u64 };
        let source = BufReader::with_capacity(BUFFER_BYTES, source);
        let mut batches = SegmentReader::resume(source, &name, header, len, Ending::Crashed);
        let mut chain = header.source.unwrap_or_default().chain;
        // What comes after the head may be half written.
        while batches.next_position() <= head {
            let batch = batches.next_batch().map_err(|fault| match fault {
                SegmentFault::Corrupt(corruption) => segment.damaged(corruption),
                SegmentFault::Io(error) => io_error(segment, error.to_string()),
                SegmentFault::UnknownVersion(_) => io_error(segment, "a newer version".into()),
            })?;
            let Some(batch) = batch else { break };
            let id = batch_id(&batch.header, batch.header.first == header.base, chain);
            chain = id.chain();
            if batch.header.place <= after {
                continue;
            }
            bytes += batch.body.len();
            if bytes > max_bytes && !found.is_empty() {
                return Ok(found);
            }
            let part = BatchPart { batch: id, part: 0, parts: 1, body: batch.body };
            found.push((batch.header.place, Entry::Batch(part).encode().into()));
        }
    }
    Ok(found)
}

/// The index of the segment that has the first batch after a place.
fn first_with(segments: &[&Arc<OpenSegment>], after: Place) -> Result<usize, ReadError> {
    let (mut low, mut high) = (0, segments.len());
    while high - low > 1 {
        let middle = low.midpoint(high);
        let segment = segments[middle];
        let header = recover::read_header(&**segment.file()?, &segment.name());
        let header = header.map_err(|error| unreadable(segment, error))?;
        if header.source.unwrap_or_default().after <= after { low = middle } else { high = middle }
    }
    Ok(low)
}
