//! Before a server starts: whether its logs still reach as far as in its backups. A folder that a
//! snapshot of its disk has put back cannot tell that it was.
//!
//! Without the backups, two things in a folder know more than its last segment: an index, which is
//! written only once the next segment holds a batch, and the snapshot of a view, which names the
//! last durable event when it was written. Either refuses the start of a log of files, and a
//! damaged one is no evidence. With delayed barriers a power loss legitimately takes events that a
//! snapshot knows, so there it is an error in the log and no refusal.
//!
//! An unreachable place of backups costs a start 10 s and an error in the log, not the start.

use super::Backups;
use super::destination::Destination;
use crate::names::SYSTEM_LOG;
use crate::node::Node;
use crate::setup::SetupError;
use crate::threads::spawn_yielding;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use wellspring_backup::{BackupResult, KnownEnds, LogEnd};
use wellspring_log::{Log, LostEnd, Sync};

/// How long a start waits for the place of backups.
const PATIENCE: Duration = Duration::from_secs(10);

impl Backups {
    /// Refuses a start with a log that ends before where a backup of the same history has it end:
    /// it would give positions that consumers have seen to other events. With delayed barriers a
    /// power loss may have taken them, as the operator accepts; then an error in the server's log
    /// tells. So it does if the place of backups cannot be read: the logs are served without it.
    ///
    /// # Errors
    /// A sentence about each such log, with what to do.
    pub(crate) fn refuse_lost_ends(&self, node: &Node, sync: Sync) -> Result<(), SetupError> {
        let Some(destination) = self.destination.clone() else { return Ok(()) };
        let to = &self.config.backup_to;
        let known = match known_ends(destination)? {
            Some(Ok(known)) => {
                self.note_unreadable(known.unreadable());
                known
            }
            Some(Err(error)) => {
                tracing::error!(%error, to, "cannot read backups, so ends of logs are not compared");
                return Ok(());
            }
            None => {
                let waited_s = PATIENCE.as_secs();
                tracing::error!(
                    to,
                    waited_s,
                    "backups do not answer, so ends of logs are not compared"
                );
                return Ok(());
            }
        };
        let mut refused = Vec::new();
        for (name, log) in node.all() {
            let Some(mut lost) = lost_end(&known, &log) else { continue };
            if sync != Sync::Always && name != SYSTEM_LOG {
                tell(&name, &lost);
                continue;
            }
            lost.known_from = format!("{} in {to}", lost.known_from);
            refused.push((name, lost));
        }
        match refused.as_slice() {
            [] => Ok(()),
            refused => Err(refusal(refused, node.data(), to).into()),
        }
    }
}

/// A sentence about each log that has lost its end, and what to do.
fn refusal(refused: &[(String, LostEnd)], data: &Path, place: &str) -> String {
    let data = data.display();
    let mut told =
        "cannot start, because logs end before where their backups have them end:".to_owned();
    let mut logs = String::new();
    for (name, lost) in refused {
        let _ = write!(told, " log {name} {lost}.");
        let _ = write!(logs, " --log {name}");
    }
    let _ = write!(
        told,
        " Put the events back with a backup: `wellspring mend --from {place} --data {data} --log \
         NAME`. If a snapshot of the disk was put back, or to go on without them: `wellspring restore \
         --rolled-back --data {data}{logs}`"
    );
    told
}

/// What the backups tell; `None` if they take too long, as a place on a dead network does.
fn known_ends(destination: Destination) -> Result<Option<BackupResult<KnownEnds>>, SetupError> {
    let (told, known) = sync_channel(1);
    let read = move || match destination.existing()? {
        Some(mut store) => KnownEnds::of(&mut *store),
        None => Ok(KnownEnds::default()),
    };
    spawn_yielding("backup-ends".to_owned(), move || drop(told.send(read())))?;
    match known.recv_timeout(PATIENCE) {
        Ok(known) => Ok(Some(known)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err("reading backups failed".into()),
    }
}

fn lost_end(known: &KnownEnds, log: &Log) -> Option<LostEnd> {
    let extent = log.extent_now();
    let last = extent.segments.last();
    let end = LogEnd {
        head: extent.head,
        last_base: last.map_or(1, |segment| segment.base()),
        // What cannot be read is not called short.
        last_bytes: last.map_or(0, |segment| segment.byte_len().unwrap_or(u64::MAX)),
    };
    known.lost_end(&log.history()?.to_string(), end)
}

/// Tells of a log that has lost its end and is served.
pub(super) fn tell(log: &str, lost: &LostEnd) {
    let LostEnd { head, known_from, known_end, .. } = lost;
    tracing::error!(
        log,
        head,
        known_from,
        known_end,
        "the log has lost its last events: a snapshot of the disk was put back, or delayed barriers \
         and a power loss; its consumers are not told, unless `wellspring restore --rolled-back` \
         gives it another history"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_every_log_and_claims_nothing_untrue() {
        let lost = |head, known| LostEnd {
            head,
            last_base: 1,
            known_from: "the backup 20261125T214438Z in /backup".to_owned(),
            known_end: Some(known),
        };
        let refused = [("main".to_owned(), lost(2000, 3000)), ("orders".to_owned(), lost(7, 9))];
        let told = refusal(&refused, Path::new("/data"), "/backup");
        for part in [
            "log main ends at position 2000, and the events after it are missing (known from the \
             backup 20261125T214438Z in /backup, which knows of events up to 3000).",
            "log orders ends at position 7, and",
            "`wellspring mend --from /backup --data /data --log NAME`",
            "`wellspring restore --rolled-back --data /data --log main --log orders`",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        // The opening has raised the epochs of all logs.
        assert!(!told.contains("Nothing was changed"), "{told}");
    }
}
