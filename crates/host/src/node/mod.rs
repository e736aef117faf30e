//! The logs of this process: their folder, which exist, opening and dropping them.
//!
//! A log has views, a batcher and an account of what it accepted; a shared log has a role as well.
//! `readiness` says what is wrong with any of them.

mod account;
mod catalog;
mod config;
mod entry;
mod error;
pub mod hand_over;
mod ingest_watch;
mod members;
mod opening;
pub(crate) mod placement;
mod problem;
pub mod readiness;
mod shared;
pub mod status;
mod trim;
mod unopened_logs;
mod views;

pub use account::IngestAccount;
pub(crate) use config::StorageConfig;
pub use error::{NoBatcher, NodeError};
pub use members::Member;
pub use trim::{LogReader, TrimPlan, TrimTarget};
pub use views::{NoView, Views};

use crate::cluster::{Cluster, Group};
use crate::kept_file::KeptFile;
use crate::names::{MAIN, SYSTEM_LOG, is_name};
use crate::private_folder::keep_private;
use crate::view::{Figures, FoundSnapshot, Progress, ViewedLog};
use entry::{Batching, CLOSE_PATIENCE, DROP_PATIENCE, Entry};
use opening::{Opening, io, sync_dir};
use shared::SharedState;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;
use views::{AttachedView, LogView};
use wellspring_log::batcher::{self, Batcher};
use wellspring_log::storage::HeldFolder;
use wellspring_log::{Clock, HeadGate, Log, LogStats, Options};
use wellspring_types::Position;

/// Prefix of a dropped log's folder until its files are gone. No valid name starts with it.
const DROPPED: &str = ".dropped-";

/// Suffix of copies that were set aside. No valid name contains it.
const SET_ASIDE: &str = ".set-aside-";

/// All logs of this process.
pub struct Node {
    data: HeldFolder,
    dir: PathBuf,
    opening: Opening,
    max_logs: usize,
    batching: batcher::Options,
    logs: RwLock<BTreeMap<String, Entry>>,
    /// Held while logs are created or dropped, so that readers of `logs` never wait for the disk.
    changes: Mutex<Changes>,
    /// Additional state in a cluster.
    shared: Option<SharedState>,
}

/// State for creating and dropping logs.
#[derive(Default)]
struct Changes {
    /// Logs dropped by this process.
    dropped: u64,
    /// The views to be opened with logs.
    views: Vec<AttachedView>,
}

impl Node {
    /// Opens every log in the data folder, always including `main` and the system log; in a
    /// cluster, those in the catalog.
    ///
    /// # Errors
    /// [`NodeError`]: a log that cannot be opened stops the start, because serving without it would
    /// hide the problem.
    pub(crate) fn open(
        data: &Path,
        config: &StorageConfig,
        batching: batcher::Options,
        clock: Arc<dyn Clock>,
        cluster: Option<Arc<Cluster>>,
    ) -> Result<Node, NodeError> {
        let options = Options {
            sync: config.sync().unwrap_or(wellspring_log::Sync::Always),
            segment_bytes: config.segment_bytes,
            staged_bytes: config.staged_bytes,
            active_index_bytes: config.active_index_bytes,
            clock,
            ..Options::default()
        };
        wellspring_log::set_sealed_index_budget_bytes(config.sealed_index_bytes);
        let dir = data.join("logs");
        keep_private(&dir).map_err(io(&dir, "creating the folder"))?;
        let node = Node {
            data: HeldFolder::open(data).map_err(io(data, "opening the folder"))?,
            dir,
            shared: cluster.is_some().then(SharedState::default),
            opening: Opening { options, cluster },
            max_logs: config.max_logs.max(1),
            batching,
            logs: RwLock::default(),
            changes: Mutex::default(),
        };
        let found = node.folders()?;
        match node.shared {
            None => {
                let always = [MAIN, SYSTEM_LOG].map(str::to_owned);
                for name in found.into_iter().chain(always) {
                    node.create(&name)?;
                }
            }
            Some(_) => node.open_shared(&found)?,
        }
        Ok(node)
    }

    /// The names of logs with a folder. Remains of dropped logs are removed.
    fn folders(&self) -> Result<Vec<String>, NodeError> {
        let mut names = Vec::new();
        let entries = fs::read_dir(&self.dir).map_err(io(&self.dir, "listing"))?;
        for entry in entries {
            let entry = entry.map_err(io(&self.dir, "listing"))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(DROPPED) {
                fs::remove_dir_all(entry.path()).map_err(io(&entry.path(), "removing"))?;
            } else if is_name(&name) {
                names.push(name);
            } else if !name.contains(SET_ASIDE) {
                tracing::warn!(name, "not the name of a log; ignored");
            }
        }
        Ok(names)
    }

    /// The cluster this node belongs to, if any.
    pub fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.opening.cluster.as_ref()
    }

    /// The group, if the nodes of its cluster order their logs themselves.
    pub fn group(&self) -> Option<&dyn Group> {
        self.cluster()?.engine.group()
    }

    /// The data folder.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Checks that the data folder still has its path, so that what is written by the path gets
    /// into no other folder.
    ///
    /// # Errors
    /// `NotFound` if it was moved, removed or replaced; or an error of the file system.
    pub(crate) fn require_folder(&self) -> std::io::Result<()> {
        self.data.require_named()
    }

    /// What the heads of all logs pass when they move.
    pub fn head_gate(&self) -> HeadGate {
        self.opening.options.head_gate.clone()
    }

    /// The log of that name.
    pub fn get(&self, name: &str) -> Option<Log> {
        self.logs
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .map(|entry| entry.log.clone())
    }

    /// All logs, by name.
    pub fn all(&self) -> Vec<(String, Log)> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        logs.iter().map(|(name, entry)| (name.clone(), entry.log.clone())).collect()
    }

    /// The batcher of a log, started on demand.
    ///
    /// # Errors
    /// [`NoBatcher`].
    pub fn batcher(&self, name: &str) -> Result<Batcher, NoBatcher> {
        let entry = self.entry(name).ok_or(NoBatcher::NoLog)?;
        let mut batching = entry.batching.lock().unwrap_or_else(PoisonError::into_inner);
        match &*batching {
            Batching::Started(batcher) => Ok(batcher.clone()),
            Batching::Closed(_) => Err(NoBatcher::Closing),
            Batching::Idle => {
                let batcher = entry.start_batcher(name, self).map_err(NoBatcher::NoThread)?;
                *batching = Batching::Started(batcher.clone());
                Ok(batcher)
            }
        }
    }

    /// The batcher of a log, if anything was ever ingested into it.
    pub fn started_batcher(&self, name: &str) -> Option<Batcher> {
        let entry = self.entry(name)?;
        let batching = entry.batching.lock().unwrap_or_else(PoisonError::into_inner);
        batching.batcher().cloned()
    }

    /// The progress of each open view: log, view, progress.
    pub fn views(&self) -> Vec<(String, &'static str, Progress)> {
        let figures = self.view_figures().into_iter();
        figures.map(|(log, view, figures)| (log, view, figures.progress)).collect()
    }

    /// The cost and progress of each open view: log, view, figures.
    pub(crate) fn view_figures(&self) -> Vec<(String, &'static str, Figures)> {
        self.figures_of_views(|_| true)
    }

    /// The progress of each view that readiness requires.
    fn awaited_views(&self) -> Vec<(String, &'static str, Progress)> {
        let figures = self.figures_of_views(LogView::is_awaited).into_iter();
        figures.map(|(log, view, figures)| (log, view, figures.progress)).collect()
    }

    fn figures_of_views(
        &self,
        wanted: impl Fn(&LogView) -> bool,
    ) -> Vec<(String, &'static str, Figures)> {
        let mut figures = Vec::new();
        for (log, entry) in self.entries() {
            for view in entry.views.all().iter().filter(|view| wanted(view)) {
                figures.push((log.clone(), view.live.name(), view.live.figures()));
            }
        }
        figures
    }

    /// Waits until the views of a log have reached a position, at most this long in all.
    pub(crate) async fn shown(&self, name: &str, position: Position, most: Duration) {
        let Some(entry) = self.entry(name) else { return };
        for view in entry.views.all() {
            view.live.wait_for(position, most).await;
        }
    }

    /// The snapshots of a log's views, to be checked.
    pub(crate) fn snapshot_files(self: &Arc<Self>, name: &str) -> Vec<KeptFile> {
        let found = FoundSnapshot::list(&self.dir.join(name)).into_iter();
        let files = found.map(|snapshot| {
            let (node, log, view) = (Arc::clone(self), name.to_owned(), snapshot.view.clone());
            snapshot.kept_file(&format!("logs/{name}"), move || {
                let views = node.entry(&log).map(|entry| entry.views.all()).unwrap_or_default();
                let open = views.iter().find(|found| found.live.name() == view);
                open.inspect(|open| open.live.renew_snapshot());
            })
        });
        files.collect()
    }

    fn entry(&self, name: &str) -> Option<Entry> {
        self.logs.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn entries(&self) -> Vec<(String, Entry)> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        logs.iter().map(|(name, entry)| (name.clone(), entry.clone())).collect()
    }

    /// The account of a log.
    pub fn account(&self, name: &str) -> Option<IngestAccount> {
        self.entry(name).map(|entry| entry.account())
    }

    /// Segments of all logs, without disk access.
    pub(crate) fn segments(&self) -> u64 {
        self.entries().iter().map(|(_, entry)| entry.log.segments()).sum()
    }

    /// The figures and the account of every log, by name. Accesses the file system.
    pub(crate) fn figures(&self) -> Vec<(String, LogStats, IngestAccount)> {
        let entries = self.entries().into_iter();
        entries.map(|(name, entry)| (name, entry.log.stats(), entry.account())).collect()
    }

    /// Creates a log and tells whether it is new. Blocks on the disk. `name` must be valid.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn create(&self, name: &str) -> Result<bool, NodeError> {
        if let Some(shared) = &self.shared {
            return self.create_shared(shared, name);
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.get(name).is_some() {
            return Ok(false);
        }
        self.check_room(name)?;
        let is_new = !self.dir.join(name).exists();
        let opened = self.open_log(name, 0, &changes);
        if opened.is_err() && is_new {
            // Half a log would be opened at the next start, which fails if this did.
            let _ = self.remove_folder(name, &mut changes);
        }
        opened.map(|()| true)
    }

    /// Whether another log may be created.
    fn check_room(&self, name: &str) -> Result<(), NodeError> {
        let own = self.get(SYSTEM_LOG).iter().count();
        if name != SYSTEM_LOG && self.all().len() - own >= self.max_logs {
            return Err(NodeError::TooMany(self.max_logs));
        }
        Ok(())
    }

    /// Drops a log and all its events. Blocks on the disk.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn drop_log(&self, name: &str) -> Result<(), NodeError> {
        if let Some(shared) = &self.shared {
            return self.drop_shared(shared, name);
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.drop_here(name, &mut changes)
    }

    fn drop_here(&self, name: &str, changes: &mut Changes) -> Result<(), NodeError> {
        let entry = self.logs.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        let entry = entry.ok_or(NodeError::NotFound)?;
        let attached = changes.views.iter().filter(|attached| attached.concerns(name));
        attached.for_each(|attached| attached.view.forget());
        self.discard(name, &entry, changes)
    }

    /// Replaces a log by an empty one. Appends in progress to the old one are refused as closed.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn empty(&self, name: &str) -> Result<(), NodeError> {
        if let Some(shared) = &self.shared {
            return self.empty_shared(shared, name);
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.entry(name).ok_or(NodeError::NotFound)?;
        self.discard(name, &old, &mut changes)?;
        self.open_log(name, 0, &changes)
    }

    /// Accepts no more appends, and makes staged and accepted events durable. Returns how many
    /// accepted events could not be stored.
    pub fn close(&self) -> u64 {
        if let Some(shared) = &self.shared {
            shared.end();
        }
        // All logs share the time.
        let until = Instant::now() + CLOSE_PATIENCE;
        let left = || until.saturating_duration_since(Instant::now());
        self.entries().iter().map(|(name, entry)| entry.close(name, left())).sum()
    }

    fn open_log(&self, name: &str, incarnation: u64, changes: &Changes) -> Result<(), NodeError> {
        let path = self.dir.join(name);
        let is_new = !path.exists();
        keep_private(&path).map_err(io(&path, "locking"))?;
        let log = self.opening.open(name, incarnation, &path)?;
        // The folder's own entry must survive a power loss, or acknowledged events would be lost
        // with it. A new one does; an earlier process may have ended before this one did.
        if !is_new {
            sync_dir(&self.dir)?;
        }
        let viewed = ViewedLog { name, log: &log, dir: &path, clock: &self.opening.options.clock };
        let (views, shows) = views::open_due(&changes.views, viewed).map_err(NodeError::View)?;
        let views = Arc::new(views);
        let mut logs = self.logs.write().unwrap_or_else(PoisonError::into_inner);
        logs.insert(name.to_owned(), Entry { log, incarnation, batching: Arc::default(), views });
        shows.into_iter().for_each(|show| show());
        Ok(())
    }

    /// The name is given up first, durably, so that a crash never leaves half a log under it.
    fn discard(&self, name: &str, entry: &Entry, changes: &mut Changes) -> Result<(), NodeError> {
        entry.views.end().iter().for_each(|view| view.forbid_snapshots());
        let patience = if self.shared.is_some() { DROP_PATIENCE } else { CLOSE_PATIENCE };
        entry.close(name, patience);
        self.remove_folder(name, changes)
    }

    /// Removes the folder of a closed log.
    fn remove_folder(&self, name: &str, changes: &mut Changes) -> Result<(), NodeError> {
        changes.dropped += 1;
        let count = changes.dropped;
        let (from, to) = (self.dir.join(name), self.dir.join(format!("{DROPPED}{count}-{name}")));
        fs::rename(&from, &to).map_err(io(&from, "renaming"))?;
        sync_dir(&self.dir)?;
        fs::remove_dir_all(&to).map_err(io(&to, "removing"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Their threads hold the logs.
        for (_, entry) in self.entries() {
            entry.views.end().iter().for_each(|view| view.discard());
        }
    }
}

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod views_tests;
