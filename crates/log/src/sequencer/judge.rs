//! Is a request allowed, or is it a retry of one that was?
//!
//! Pure over the index: says what would be so, changes nothing.

use crate::condition::{Stretch, find_id, find_key, judge};
use crate::error::{AppendError, ReadError};
use crate::log::{Append, Appended};
use crate::read::Snapshot;
use crate::record::RequestKey;
use crate::segments::Segment;
use crate::work::Work;
use std::sync::Arc;
use wellspring_types::{EventId, Position};

/// What judging a stretch of the log came to.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Nothing in the stretch speaks against it.
    Allowed,
    /// A request with its key, or an event with one of its ids, begins here.
    SeenBefore(Position),
    /// It is refused.
    Refused(AppendError),
}

/// Judges a request against one stretch of the log.
///
/// # Errors
/// [`ReadError`]; [`ReadError::Stopped`] if the work ended first.
pub(crate) fn over(
    segments: &[Arc<Segment>],
    append: &Append,
    ids: &[EventId],
    stretch: Stretch,
    work: &mut Work,
) -> Result<Verdict, ReadError> {
    if stretch.low >= stretch.high {
        return Ok(Verdict::Allowed);
    }
    // A retry of a request that succeeded must find itself before its own condition does.
    if let Some(key) = &append.key
        && let Some(position) = find_key(segments, &key.key, stretch)?
    {
        return Ok(Verdict::SeenBefore(position));
    }
    for id in ids {
        if let Some(position) = find_id(segments, &id.0, stretch)? {
            return Ok(Verdict::SeenBefore(position));
        }
    }
    if let Some(condition) = &append.condition
        && let Some(conflict) = judge(segments, condition, stretch, work)?
    {
        return Ok(Verdict::Refused(AppendError::Conflict(conflict)));
    }
    Ok(Verdict::Allowed)
}

/// The ids of a request's events.
pub(crate) fn ids(append: &Append) -> Vec<EventId> {
    append.events.iter().filter_map(|record| record.id()).collect()
}

/// The answer to a request of which a key or id was found durable at `position`.
pub(crate) fn replay(
    snapshot: &Snapshot,
    append: &Append,
    position: Position,
) -> Result<Appended, AppendError> {
    let count = append.events.len() as u64;
    let mut first = position;
    if let Some(key) = &append.key {
        let stored = snapshot
            .at(position, |record| {
                record.request_key().map(|(text, digest, count)| {
                    (text == key.key, digest == key.digest, u64::from(count))
                })
            })
            .map_err(AppendError::Read)?;
        match stored.flatten() {
            Some((true, true, stored_count)) if stored_count == count => {
                return Ok(replayed(snapshot, position, count));
            }
            Some((true, ..)) => return Err(AppendError::KeyReused { first: position }),
            _ => {}
        }
    }
    // Found by an id. The request is a retry if its events, all of them and in
    // order, are those that stand there. If not, an event whose id is taken is named.
    for (i, record) in append.events.iter().enumerate() {
        let taken = match record.id() {
            Some(id) => snapshot.find_id(id).map_err(AppendError::Read)?,
            None => None,
        };
        if i == 0 {
            first = taken.unwrap_or(position);
        }
        let expected = first + i as u64;
        let same = taken == Some(expected)
            && snapshot
                .at(expected, |stored| {
                    stored.event_type() == record.event_type()
                        && stored.tags().eq(record.tags())
                        && stored.kind() == record.kind()
                        && stored.data() == record.data()
                        && stored.metadata().eq(record.metadata())
                })
                .map_err(AppendError::Read)?
                .unwrap_or(false);
        if !same {
            let (event, position) = match taken {
                Some(position) => (i, position),
                None => first_taken(snapshot, append, position)?,
            };
            return Err(AppendError::IdReused { event, position });
        }
    }
    Ok(replayed(snapshot, first, count))
}

/// The append with this key, if there was one, whatever it appended.
pub(crate) fn find_request(
    snapshot: &Snapshot,
    key: &RequestKey,
) -> Result<Option<Appended>, AppendError> {
    let stretch = Stretch { low: 0, high: snapshot.head() };
    let found = find_key(snapshot.segments(), &key.key, stretch).map_err(AppendError::Read)?;
    let Some(position) = found else { return Ok(None) };
    let stored = snapshot
        .at(position, |record| record.request_key().map(|(_, digest, count)| (digest, count)))
        .map_err(AppendError::Read)?;
    match stored.flatten() {
        Some((digest, count)) if digest == key.digest => {
            Ok(Some(replayed(snapshot, position, count.into())))
        }
        _ => Err(AppendError::KeyReused { first: position }),
    }
}

/// The first event of the request whose id is in the log, where an event with one was found.
fn first_taken(
    snapshot: &Snapshot,
    append: &Append,
    found: Position,
) -> Result<(usize, Position), AppendError> {
    for (i, record) in append.events.iter().enumerate() {
        if let Some(id) = record.id()
            && let Some(position) = snapshot.find_id(id).map_err(AppendError::Read)?
        {
            return Ok((i, position));
        }
    }
    Ok((0, found))
}

fn replayed(snapshot: &Snapshot, first: Position, count: u64) -> Appended {
    Appended { first, last: first + count - 1, head: snapshot.head(), replayed: true }
}
