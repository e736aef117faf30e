//! Logs when a log gets into trouble and when it recovers, even if no request fails: ingest keeps
//! accepted events, and a subscription that meets damage just ends.

use crate::http::Host;
use crate::trouble;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::{Corruption, Log};

/// Time between two checks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The state of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct WatchedLog {
    closed: Option<String>,
    full: bool,
    damage: Vec<Corruption>,
    /// Indexes that were rebuilt, and how often.
    mended_indexes: Vec<(String, u64)>,
    background_panics: u64,
}

impl WatchedLog {
    fn of(log: &Log, ingest_full: bool) -> WatchedLog {
        WatchedLog {
            closed: log.closed_reason(),
            full: log.is_full() || ingest_full,
            damage: log.damage(),
            mended_indexes: log.mended_indexes(),
            background_panics: log.background_panics(),
        }
    }
}

/// An event to log.
#[derive(Debug, PartialEq, Eq)]
enum Change<'a> {
    Closed(&'a str),
    Full,
    RoomAgain,
    Damaged(&'a Corruption),
    IndexMended(&'a str),
    Panicked(u64),
}

impl Change<'_> {
    /// `data` is the data folder, for the command that mends damage.
    fn tell(&self, log: &str, data: &str) {
        match self {
            Change::Closed(reason) => tracing::error!(
                log,
                reason,
                "the log accepts no appends until the server is restarted"
            ),
            Change::Full => tracing::error!(
                log,
                "the device is full: appends are refused, and so are events once memory is full"
            ),
            Change::RoomAgain => tracing::info!(log, "the device has free space again"),
            Change::Damaged(Corruption { file, offset, what }) => {
                let mend = format!("wellspring mend --from BACKUP --data {data} --log {log}");
                tracing::error!(log, file, offset, what, mend, "stored data is damaged");
            }
            Change::IndexMended(file) => {
                tracing::warn!(log, file, "a damaged index was rebuilt; no data was lost");
            }
            Change::Panicked(panics) => tracing::error!(
                log,
                panics,
                "a thread that writes indexes panicked; it is restarted, and no data was lost"
            ),
        }
    }
}

/// The changes of a log since the last check.
fn changes<'a>(before: &WatchedLog, now: &'a WatchedLog) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    if let (None, Some(reason)) = (&before.closed, &now.closed) {
        changes.push(Change::Closed(reason));
    }
    match (before.full, now.full) {
        (false, true) => changes.push(Change::Full),
        (true, false) => changes.push(Change::RoomAgain),
        (true, true) | (false, false) => {}
    }
    let new = now.damage.iter().filter(|damage| !before.damage.contains(damage));
    changes.extend(new.map(Change::Damaged));
    let new = now.mended_indexes.iter().filter(|mended| !before.mended_indexes.contains(mended));
    changes.extend(new.map(|(file, _)| Change::IndexMended(file)));
    // The count of a log that was emptied starts again.
    let panics = now.background_panics.saturating_sub(before.background_panics);
    changes.extend((panics > 0).then_some(Change::Panicked(panics)));
    changes
}

/// Starts watching, and reporting requests whose failures were only counted.
pub(crate) fn start(host: &Arc<Host>) {
    tokio::spawn(keep(Arc::clone(host)));
    tokio::spawn(tell_passed_over(Arc::clone(host)));
}

/// Checks all logs periodically until the server stops.
async fn keep(host: Arc<Host>) {
    let mut before: BTreeMap<String, WatchedLog> = BTreeMap::new();
    let data = host.process.data.display().to_string();
    while !host.is_stopping() {
        let mut now = BTreeMap::new();
        for (name, log) in host.node.all() {
            let ingest_full = host.node.account(&name).is_some_and(|account| account.full);
            let watched = WatchedLog::of(&log, ingest_full);
            let known = before.remove(&name).unwrap_or_default();
            changes(&known, &watched).iter().for_each(|change| change.tell(&name, &data));
            now.insert(name, watched);
        }
        before = now;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Reports counted failures of requests that were not followed by others.
async fn tell_passed_over(host: Arc<Host>) {
    loop {
        tokio::time::sleep(trouble::TELL_EVERY).await;
        host.stats.troubles.tell_passed_over(host.clock.monotonic_us());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
        let (quiet, mut bad) = (WatchedLog::default(), WatchedLog::default());
        bad.full = true;
        bad.closed = Some("broken".into());
        bad.damage = vec![Corruption { file: "1.seg".into(), offset: 7, what: "x".into() }];
        bad.mended_indexes = vec![("1.idx".into(), 1), ("9.idx".into(), 2)];
        bad.background_panics = 1;
        let told = changes(&quiet, &bad);
        let expected = [
            Change::Closed("broken"),
            Change::Full,
            Change::Damaged(&bad.damage[0]),
            Change::IndexMended("1.idx"),
            Change::IndexMended("9.idx"),
            Change::Panicked(1),
        ];
        assert_eq!(told, expected);
        assert_eq!(changes(&bad, &bad), []);
        assert_eq!(changes(&bad, &quiet), [Change::RoomAgain]);
        let mut again = bad.clone();
        again.mended_indexes[1].1 = 3;
        assert_eq!(changes(&bad, &again), [Change::IndexMended("9.idx")]);
    }
}
