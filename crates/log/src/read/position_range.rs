//! A range of the log, and look-ups of event ids and request keys in it.

use crate::error::ReadError;
use crate::segments::Run;
use crate::work::Work;
use std::sync::Arc;
use wellspring_types::Position;

/// A range of the log: after `low`, up to and including `high`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PositionRange {
    pub(crate) low: Position,
    pub(crate) high: Position,
}

impl PositionRange {
    /// Checks that no part of the range was cut off.
    ///
    /// # Errors
    /// [`ReadError::Trimmed`].
    pub(crate) fn require(self, runs: &[Arc<Run>]) -> Result<(), ReadError> {
        match runs.first() {
            Some(run) if self.low + 1 < run.base() => Err(ReadError::Trimmed { first: run.base() }),
            _ => Ok(()),
        }
    }
}

/// Position of the event with this id in the range.
pub(crate) fn find_id(
    runs: &[Arc<Run>],
    id: &[u8; 16],
    positions: PositionRange,
    work: &mut Work,
) -> Result<Option<Position>, ReadError> {
    find(runs, positions, |run, range| run.ask(work, |index, _| index.find_id(id, range.clone())))
}

/// Position of the first event of the newest request with this key in the range.
pub(crate) fn find_key(
    runs: &[Arc<Run>],
    key: &str,
    positions: PositionRange,
    work: &mut Work,
) -> Result<Option<Position>, ReadError> {
    find(runs, positions, |run, range| run.ask(work, |index, _| index.find_key(key, range.clone())))
}

fn find(
    runs: &[Arc<Run>],
    positions: PositionRange,
    mut look: impl FnMut(&Run, std::ops::Range<u32>) -> Result<Option<u32>, ReadError>,
) -> Result<Option<Position>, ReadError> {
    for run in runs.iter().rev() {
        let range = run.range(positions.low, positions.high);
        if !range.is_empty()
            && let Some(found) = look(run, range)?
        {
            return Ok(Some(run.base() + u64::from(found)));
        }
        if run.base() <= positions.low + 1 {
            break;
        }
    }
    Ok(None)
}
