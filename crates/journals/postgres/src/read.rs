//! Reads the entries of all of a node's logs with one repeated query.

use crate::fault::describe;
use crate::rows::{Cursor, RowsState};
use crate::session::Session;
use crate::shared::NodeShared;
use crate::state::{Delivery, gone};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Error;
use wellspring_log::shared::{Place, PlacedEntry, SharedLogError};

/// Pause between reads while other nodes write.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
/// Pause between reads while none do.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Approximate amount read per log and query; always at least one entry.
const LOOK_BYTES: i64 = 4 << 20;

/// Reads until the connection fails.
pub(crate) async fn read(node: &NodeShared, session: &Session) -> Error {
    let mut pause = SHORTEST_PAUSE;
    loop {
        match look(node, session).await {
            // There may be more.
            Ok(Delivery::Delivered) => {
                pause = SHORTEST_PAUSE;
                continue;
            }
            Ok(Delivery::Nothing) => {}
            Err(error) => return error,
        }
        tokio::select! {
            () = node.look.notified() => pause = SHORTEST_PAUSE,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

async fn look(node: &NodeShared, session: &Session) -> Result<Delivery, Error> {
    let logs = node.logs();
    let logs: Vec<_> =
        logs.iter().filter_map(|log| Some((log, log.reads_after()?.0 as i64))).collect();
    if logs.is_empty() {
        return Ok(Delivery::Nothing);
    }
    let names: Vec<&str> = logs.iter().map(|(log, _)| log.name.as_str()).collect();
    let after: Vec<i64> = logs.iter().map(|(_, after)| *after).collect();
    let rows =
        session.reader.query(&session.reading.entries, &[&names, &after, &LOOK_BYTES]).await?;
    let mut delivery = Delivery::Nothing;
    for row in rows {
        let at = row.get::<_, i64>(0) as usize - 1;
        let place = Place(row.get::<_, i64>(1) as u64);
        let entry: Arc<[u8]> = row.get::<_, &[u8]>(2).into();
        if logs[at].0.read(place, entry) == Delivery::Delivered {
            delivery = Delivery::Delivered;
        }
    }
    Ok(delivery)
}

/// Entries after a place, independent of those being delivered.
pub(crate) async fn fetch(
    session: &Session,
    log: &str,
    after: Place,
    max_bytes: usize,
) -> Result<Vec<PlacedEntry>, SharedLogError> {
    let names = [log];
    let places = [after.0 as i64];
    let most = i64::try_from(max_bytes).unwrap_or(i64::MAX).max(1);
    let rows = session
        .reader
        .query(&session.reading.entries, &[&&names[..], &&places[..], &most])
        .await
        .map_err(|error| SharedLogError::Unavailable { reason: describe(&error) })?;
    let entry = |row: tokio_postgres::Row| {
        (Place(row.get::<_, i64>(1) as u64), Arc::from(row.get::<_, &[u8]>(2)))
    };
    let entries: Vec<PlacedEntry> = rows.into_iter().map(entry).collect();
    match entries.first() {
        Some((first, _)) if first.0 != after.0 + 1 => {
            Err(SharedLogError::Unusable { reason: gone(after, *first) })
        }
        _ => Ok(entries),
    }
}

/// The state of the rule where a log's rows end.
pub(crate) async fn rows_cursor(session: &Session, log: &str) -> Result<RowsState, Error> {
    let row = session.reader.query_one(&session.reading.cursor, &[&log]).await?;
    Ok(RowsState::at(Cursor {
        place: Place(row.get::<_, i64>(0) as u64),
        epoch: row.get(1),
        head: row.get(2),
        chain: row.get(3),
        cluster: row.get(4),
    }))
}

/// After reconnecting, compares the last entry read of each log with the server's: another or a
/// restored server may have another history.
pub(crate) async fn check_anchors(node: &NodeShared, session: &Session) -> Result<(), Error> {
    for log in node.logs() {
        let Some((place, header)) = log.anchor() else { continue };
        let number = place.0 as i64;
        let row = session.reader.query_opt(&session.reading.header, &[&log.name, &number]).await?;
        if row.is_none_or(|row| row.get::<_, &[u8]>(0) != header) {
            log.found_other_past(place);
        }
    }
    Ok(())
}
