//! Opening a log: the files of a folder, or the copy of a shared log.

use super::NodeError;
use super::error::{LOCKED_PAUSE, LOCKED_TRIES};
use crate::cluster::sealed_log::SealedLog;
use crate::cluster::{Cluster, LogRows};
use crate::foreign_files::remedy;
use crate::names::SYSTEM_LOG;
use crate::view::{SnapshotAhead, snapshot_ahead};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::shared::{Claims, SharedLog};
use wellspring_log::storage::DiskStorage;
use wellspring_log::{Log, LostEnd, OpenError, Options, Role, SharedOptions, Sync};
use wellspring_types::Position;

/// How long a copy may take to reach the end of its journal while its log is opened.
const CATCH_UP: Duration = Duration::from_secs(60);
/// Time between two checks of an awaited role, in case a change is missed.
const LOOK: Duration = Duration::from_millis(100);

/// How to open logs.
pub(super) struct Opening {
    pub(super) options: Options,
    pub(super) cluster: Option<Arc<Cluster>>,
}

impl Opening {
    /// Opens a log. A process that was just killed may hold its folder a moment longer, so this
    /// waits for it. A copy is returned once it has reached the end that its journal had.
    ///
    /// # Errors
    /// [`NodeError::Open`], [`NodeError::Unavailable`].
    pub(super) fn open(&self, name: &str, incarnation: u64, path: &Path) -> Result<Log, NodeError> {
        let mut options = self.options.clone();
        if name == SYSTEM_LOG {
            // Revocations survive a power loss.
            options.sync = Sync::Always;
        }
        let open = || match &self.cluster {
            None => Log::open(path, options.clone()),
            Some(cluster) => open_copy(cluster, name, incarnation, path, options.clone()),
        };
        let mut tried = 0;
        let opened = loop {
            match open() {
                Err(OpenError::Locked { .. }) if tried < LOCKED_TRIES => tried += 1,
                done => break done,
            }
            std::thread::sleep(LOCKED_PAUSE);
        };
        let log = opened.map_err(|error| NodeError::Open {
            log: name.to_owned(),
            dir: path.to_owned(),
            error,
        })?;
        match &self.cluster {
            None => keeps_its_end(name, path, &log, options.sync).map(|()| log),
            Some(cluster) => caught_up(cluster, name, &log).map(|()| log),
        }
    }
}

/// Refuses a log of files that has lost its last events: it would give their positions to others.
/// Without a barrier for each batch a power loss may have taken them, as the operator accepts.
fn keeps_its_end(name: &str, path: &Path, log: &Log, sync: Sync) -> Result<(), NodeError> {
    let head = log.head();
    if sync != Sync::Always {
        return drop_ahead(name, path, head);
    }
    let Some(SnapshotAhead { file, end }) = snapshot_ahead(path, head) else { return Ok(()) };
    log.close();
    let last_base = log.extent_now().segments.last().map_or(1, |segment| segment.base());
    let lost = LostEnd { head, last_base, known_from: file, known_end: Some(end) };
    let error = OpenError::EndLost(lost);
    Err(NodeError::Open { log: name.to_owned(), dir: path.to_owned(), error })
}

/// Removes the snapshots that hold what a power loss has taken from a log, so that no view shows
/// it.
fn drop_ahead(name: &str, path: &Path, head: Position) -> Result<(), NodeError> {
    while let Some(SnapshotAhead { file, end }) = snapshot_ahead(path, head) {
        tracing::error!(
            log = name,
            head,
            file,
            end,
            "the log has lost its last events; with delayed barriers a power loss can take them"
        );
        let ahead = path.join(file);
        std::fs::remove_file(&ahead).map_err(io(&ahead, "removing"))?;
    }
    Ok(())
}

/// The name of a log in its journal: its name and incarnation.
pub(super) fn journal_name(name: &str, incarnation: u64) -> String {
    match incarnation {
        0 => name.to_owned(),
        // No log's name contains a dot.
        _ => format!("{name}.{incarnation}"),
    }
}

fn open_copy(
    cluster: &Cluster,
    name: &str,
    incarnation: u64,
    path: &Path,
    options: Options,
) -> Result<Log, OpenError> {
    let storage = DiskStorage::create(path)
        .map_err(|error| OpenError::Io { doing: format!("creating {}", path.display()), error })?;
    let journal_name = journal_name(name, incarnation);
    let (engine, claims): (Box<dyn SharedLog>, _) = if name == SYSTEM_LOG {
        // The operator of the journal must not read who has access.
        let engine = cluster.engine.shared_log(&journal_name, LogRows::Never);
        (Box::new(SealedLog::new(engine, &cluster.key, &journal_name)), Claims::BySilence)
    } else {
        (cluster.engine.shared_log(&journal_name, LogRows::AsConfigured), Claims::WhenTold)
    };
    let shared = SharedOptions {
        log: journal_name,
        node: cluster.node.to_string(),
        url: cluster.url.clone(),
        start: cluster.start,
        lead_timeout: cluster.lead_timeout.max(engine.limits().lead_timeout_min),
        claims,
    };
    Log::open_shared(Arc::new(storage), options, shared, engine)
}

/// Waits until a copy has reached the end that its journal had: a view opened sooner could be ahead
/// of what a power loss has left of the copy.
fn caught_up(cluster: &Cluster, name: &str, log: &Log) -> Result<(), NodeError> {
    let begun = Instant::now();
    let changes = log.role_changes();
    loop {
        let seen = changes.head();
        let Role::CatchingUp { place, end } = log.role() else { return Ok(()) };
        // Nodes that order the logs themselves wait for each other.
        if begun.elapsed() > CATCH_UP && cluster.engine.group().is_none() {
            let engine = cluster.engine.status();
            let end = end.map_or_else(
                || "its end is not known".to_owned(),
                |end| format!("it ends at {}", end.0),
            );
            let reason = format!(
                "after {} s the copy is at place {} of its journal, and {end}; {engine}",
                CATCH_UP.as_secs(),
                place.0
            );
            return Err(NodeError::Unavailable { log: name.to_owned(), reason });
        }
        changes.wait_past(seen, LOOK);
    }
}

/// Makes the entries of a folder survive a power loss.
pub(super) fn sync_dir(dir: &Path) -> Result<(), NodeError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io(dir, "syncing the folder"))
}

/// The file system's error, with the operation.
pub(super) fn io(path: &Path, doing: &str) -> impl FnOnce(std::io::Error) -> NodeError {
    let doing = format!("{doing} {}", path.display());
    // The folder of all logs is in the data folder.
    let logs = path.ancestors().find(|folder| folder.ends_with("logs"));
    let data = logs.and_then(Path::parent).unwrap_or(path).to_owned();
    move |error| match remedy(&data, &error) {
        remedy if remedy.is_empty() => NodeError::Io { doing, error },
        remedy => {
            let error = std::io::Error::new(error.kind(), format!("{error}{remedy}"));
            NodeError::Io { doing, error }
        }
    }
}
