//! Where a restored log ends.

use crate::fault::{BackupError, Outcome};
use wellspring_log::segment_reader::VerifiedBatch;
use wellspring_types::Position;

/// Up to where a log is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// All of it.
    None,
    /// Up to this position.
    After(Position),
    /// What was recorded up to this moment, µs since 1970 UTC.
    At(u64),
}

/// How much of a batch is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchShare {
    All,
    /// The first events of it, and nothing that follows.
    First(u32),
    /// Nothing, nor anything that follows.
    Nothing,
}

impl Cut {
    /// How much of a batch is kept.
    ///
    /// # Errors
    /// [`BackupError::Unfit`]: the position may be in the middle of an append.
    pub(crate) fn of(self, batch: &VerifiedBatch<'_>) -> Outcome<BatchShare> {
        let header = &batch.header;
        match self {
            Cut::None => Ok(BatchShare::All),
            Cut::After(position) if position >= header.last() => Ok(BatchShare::All),
            Cut::After(position) if position < header.first => Ok(BatchShare::Nothing),
            Cut::After(position) => within(batch, position),
            Cut::At(moment_us) if header.recorded_at_us <= moment_us => Ok(BatchShare::All),
            // The events of an append have one time, so none is split.
            Cut::At(moment_us) => {
                let is_kept = |us: u64| us <= moment_us;
                let records = batch.records().flatten();
                match records.take_while(|record| is_kept(record.recorded_at_us())).count() {
                    0 => Ok(BatchShare::Nothing),
                    events => Ok(BatchShare::First(events as u32)),
                }
            }
        }
    }
}

/// Cuts a batch after a position in it. The events of an append have the same time, so between two
/// events of different times ends an append.
fn within(batch: &VerifiedBatch<'_>, position: Position) -> Outcome<BatchShare> {
    let first = batch.header.first;
    let times: Vec<u64> = batch.records().flatten().map(|record| record.recorded_at_us()).collect();
    let kept = (position - first + 1) as usize;
    if times[kept - 1] != times[kept] {
        return Ok(BatchShare::First(kept as u32));
    }
    let before = times[..kept].iter().rposition(|&us| us != times[kept]).map_or(0, |at| at + 1);
    let after = times[kept..].iter().position(|&us| us != times[kept]);
    let after = after.map_or(times.len(), |at| kept + at);
    Err(BackupError::Unfit(format!(
        "position {position} may be in the middle of an append: the events {} to {} were recorded \
         at the same time; restore up to {} or {}",
        first + before as u64,
        first + after as u64 - 1,
        first + before as u64 - 1,
        first + after as u64 - 1,
    )))
}
