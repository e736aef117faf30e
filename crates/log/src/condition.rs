//! The one definition of an append condition's verdict, over any stretch of the log.
//!
//! A caller first judges everything durable, on its own thread and without a
//! lock; the sequencer then judges only what has been staged since. So an
//! expensive condition costs its own client, and what the sequencer's lock
//! covers is short however long the log is.

use crate::error::ReadError;
use crate::segments::Segment;
use crate::work::Work;
use std::sync::Arc;
use wellspring_types::{AppendCondition, Conflict, Position, Query};

/// A stretch of the log: after `low`, up to and including `high`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) low: Position,
    pub(crate) high: Position,
}

/// The first clause of the condition that an event in the stretch offends, if any.
pub(crate) fn judge(
    segments: &[Arc<Segment>],
    condition: &AppendCondition,
    stretch: Stretch,
    work: &mut Work,
) -> Result<Option<Conflict>, ReadError> {
    for (clause, query, after) in condition.clauses() {
        let low = stretch.low.max(after);
        let rest = Stretch { low, ..stretch };
        if let Some((position, item)) = newest_match(segments, query, rest, work)? {
            return Ok(Some(Conflict { position, clause, item }));
        }
    }
    Ok(None)
}

/// The newest event of the stretch that matches, and the lowest-numbered item it matches.
pub(crate) fn newest_match(
    segments: &[Arc<Segment>],
    query: &Query,
    stretch: Stretch,
    work: &mut Work,
) -> Result<Option<(Position, usize)>, ReadError> {
    if stretch.low >= stretch.high {
        return Ok(None);
    }
    if query.items.is_empty() {
        return Ok(Some((stretch.high, 0)));
    }
    for segment in segments.iter().rev() {
        if segment.base() > stretch.high {
            continue;
        }
        let mut newest: Option<(u32, usize)> = None;
        for (i, item) in query.items.iter().enumerate() {
            let mut range = segment.range(stretch.low, stretch.high);
            // Only an event newer than the best so far is of interest.
            range.start = range.start.max(newest.map_or(0, |(best, _)| best + 1));
            if range.is_empty() {
                continue;
            }
            if let Some(found) = segment.ask(|index| index.newest(item, range.clone(), work))? {
                newest = Some((found, i));
            }
        }
        if let Some((relative, item)) = newest {
            return Ok(Some((segment.base() + u64::from(relative), item)));
        }
        if segment.base() <= stretch.low + 1 {
            break;
        }
    }
    Ok(None)
}

/// Rough number of index entries that [`judge`] may visit.
pub(crate) fn cost(segments: &[Arc<Segment>], condition: &AppendCondition, high: Position) -> u64 {
    let mut total = 0u64;
    for (_, query, after) in condition.clauses() {
        // A client may name any number, up to the last there is.
        let after = after.min(high);
        for segment in segments.iter().rev() {
            let range = segment.range(after, high);
            if !range.is_empty() {
                let index = segment.index();
                let items = query.items.iter().map(|item| index.cost(item, range.clone()));
                total = total.saturating_add(items.sum());
            }
            if segment.base() <= after + 1 {
                break;
            }
        }
    }
    total
}

/// Position of the event with this id in the stretch.
pub(crate) fn find_id(
    segments: &[Arc<Segment>],
    id: &[u8; 16],
    stretch: Stretch,
) -> Result<Option<Position>, ReadError> {
    find(segments, stretch, |segment, range| segment.ask(|index| index.find_id(id, range.clone())))
}

/// Position of the first event of the newest request with this key in the stretch.
pub(crate) fn find_key(
    segments: &[Arc<Segment>],
    key: &str,
    stretch: Stretch,
) -> Result<Option<Position>, ReadError> {
    find(segments, stretch, |segment, range| {
        segment.ask(|index| index.find_key(key, range.clone()))
    })
}

fn find(
    segments: &[Arc<Segment>],
    stretch: Stretch,
    look: impl Fn(&Segment, std::ops::Range<u32>) -> Result<Option<u32>, ReadError>,
) -> Result<Option<Position>, ReadError> {
    for segment in segments.iter().rev() {
        let range = segment.range(stretch.low, stretch.high);
        if !range.is_empty()
            && let Some(found) = look(segment, range)?
        {
            return Ok(Some(segment.base() + u64::from(found)));
        }
        if segment.base() <= stretch.low + 1 {
            break;
        }
    }
    Ok(None)
}
