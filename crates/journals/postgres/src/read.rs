//! Reads the entries of all of a node's logs with one repeated query.

use crate::fault::describe;
use crate::rows::{Cursor, RowsState};
use crate::session::Session;
use crate::shared::NodeShared;
use crate::state::{Delivery, gone};
use crate::statements::LOOK_ENTRIES;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Error, Row};
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
            Ok(ReadAmount::More) => {
                pause = SHORTEST_PAUSE;
                continue;
            }
            Ok(ReadAmount::All) => pause = SHORTEST_PAUSE,
            Ok(ReadAmount::Nothing) => {}
            Err(error) => return error,
        }
        tokio::select! {
            () = node.look.notified() => pause = SHORTEST_PAUSE,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

/// The result of a read.
enum ReadAmount {
    Nothing,
    /// Entries, and no more at that moment. Reading again at once would find a busy leader's next
    /// entry, and another, at the price of a query for each.
    All,
    /// As much as a query returns.
    More,
}

async fn look(node: &NodeShared, session: &Session) -> Result<ReadAmount, Error> {
    let logs = node.logs();
    let logs: Vec<_> =
        logs.iter().filter_map(|log| Some((log, log.reads_after()?.0 as i64))).collect();
    if logs.is_empty() {
        return Ok(ReadAmount::Nothing);
    }
    let names: Vec<&str> = logs.iter().map(|(log, _)| log.name.as_str()).collect();
    let after: Vec<i64> = logs.iter().map(|(_, after)| *after).collect();
    let rows =
        session.reader.query(&session.reading.entries, &[&names, &after, &LOOK_BYTES]).await?;
    // All of a log at once: each delivery wakes its reader.
    let mut found = vec![Vec::new(); logs.len()];
    for row in &rows {
        found[row.get::<_, i64>(0) as usize - 1].push(placed(row));
    }
    let mut result = ReadAmount::Nothing;
    for ((log, _), entries) in logs.iter().zip(found) {
        let bytes: usize = entries.iter().map(|(_, entry)| entry.len()).sum();
        let is_full = entries.len() >= LOOK_ENTRIES || bytes as i64 >= LOOK_BYTES;
        if !entries.is_empty() && log.read(entries) == Delivery::Delivered {
            let is_more = is_full || matches!(result, ReadAmount::More);
            result = if is_more { ReadAmount::More } else { ReadAmount::All };
        }
    }
    Ok(result)
}

fn placed(row: &Row) -> PlacedEntry {
    (Place(row.get::<_, i64>(1) as u64), Arc::from(row.get::<_, &[u8]>(2)))
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
    let entries: Vec<PlacedEntry> = rows.iter().map(placed).collect();
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
