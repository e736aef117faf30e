//! The end of a restored log. A log does not record where an append ends, but all events of an
//! append have the same time. So a cut by time never splits an append. A cut by position between
//! two events of the same time is refused, with the nearest safe positions.

use crate::fault::{BackupError, BackupResult};
use crate::manifest::{LogBackup, Manifest};
use crate::store::Store;
use wellspring_format::segment_reader::{SegmentReader, VerifiedBatch};
use wellspring_types::Position;
use wellspring_types::moment::push_rfc3339;

/// The part of a log to restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// All of it.
    None,
    /// Up to this position.
    After(Position),
    /// Up to the last event recorded at this moment, µs since 1970 UTC, or before.
    At(u64),
}

/// How much of a batch is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchShare {
    All,
    /// Only its first events, and no later batch.
    First(u32),
    /// None of it, and no later batch.
    Nothing,
}

impl Cut {
    /// How much of a batch is kept.
    ///
    /// # Errors
    /// [`BackupError::Unfit`]: the position may be in the middle of an append.
    pub(crate) fn of(self, batch: &VerifiedBatch<'_>) -> BackupResult<BatchShare> {
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

/// Checks that a backup reaches the requested end of these logs. A time must leave an event in at
/// least one of them, and in each of `never_empty`.
pub(crate) fn check(
    cut: Cut,
    store: &mut dyn Store,
    manifest: &Manifest,
    chosen: &[&LogBackup],
    never_empty: &[String],
) -> BackupResult<()> {
    match cut {
        Cut::None => Ok(()),
        Cut::After(position) => check_position(position, chosen),
        Cut::At(moment_us) => {
            let latest_us = chosen.iter().map(|log| log.recorded_at_us).max().unwrap_or(0);
            let until_us = manifest.taken_at_us.max(latest_us);
            let from_us = earliest_us(store, chosen, never_empty)?;
            if (from_us..=until_us).contains(&moment_us) {
                return Ok(());
            }
            let (name, moment) = (&manifest.name, shown(moment_us));
            let (from, until) = (shown(from_us), shown(until_us));
            Err(BackupError::Unfit(format!(
                "the backup {name} does not hold the state of {moment}; it covers {from} to {until}"
            )))
        }
    }
}

/// A position requires a single log that reaches it.
fn check_position(position: Position, chosen: &[&LogBackup]) -> BackupResult<()> {
    let [log] = chosen else {
        let what = "a position is one of a single log: name it (a time fits all logs)";
        return Err(BackupError::Unfit(what.into()));
    };
    if position < log.first() && log.first() > 1 {
        let (name, first) = (&log.name, log.first());
        return Err(BackupError::Unfit(format!(
            "the backup holds the log {name} from position {first} on, not {position}"
        )));
    }
    if position > log.head {
        let (name, head) = (&log.name, log.head);
        return Err(BackupError::Unfit(format!(
            "the backup holds the log {name} up to position {head}, not {position}"
        )));
    }
    Ok(())
}

/// The first moment at which one of these logs had an event, and each of `never_empty` had.
fn earliest_us(
    store: &mut dyn Store,
    chosen: &[&LogBackup],
    never_empty: &[String],
) -> BackupResult<u64> {
    let (mut first_us, mut needed_us) = (None::<u64>, 0);
    for log in chosen {
        let Some(begun_us) = first_recorded_us(store, log)? else { continue };
        first_us = Some(first_us.map_or(begun_us, |us| us.min(begun_us)));
        if never_empty.contains(&log.name) {
            needed_us = needed_us.max(begun_us);
        }
    }
    Ok(first_us.unwrap_or(0).max(needed_us))
}

/// When the first event of a log was recorded.
fn first_recorded_us(store: &mut dyn Store, log: &LogBackup) -> BackupResult<Option<u64>> {
    let Some(segment) = log.segments.first() else { return Ok(None) };
    let file = segment.file(&log.history);
    let of_segment = |fault| BackupError::of_segment(&file, fault);
    let bytes = store.read(&file)?;
    let mut reader =
        SegmentReader::begin(bytes, &file, segment.base, segment.bytes).map_err(of_segment)?;
    let batch = reader.next_batch().map_err(of_segment)?;
    let first =
        batch.and_then(|batch| batch.records().flatten().next().map(|r| r.recorded_at_us()));
    Ok(first)
}

fn shown(us: u64) -> String {
    let mut text = Vec::new();
    push_rfc3339(&mut text, us);
    String::from_utf8_lossy(&text).into_owned()
}

/// Cuts a batch after a position in it. The events of an append have the same time, so between two
/// events of different times ends an append.
fn within(batch: &VerifiedBatch<'_>, position: Position) -> BackupResult<BatchShare> {
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
