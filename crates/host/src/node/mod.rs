//! The logs of this process: where they are, which exist, opening and dropping them.

mod account;
mod config;
mod problem;
pub mod readiness;
mod views;

pub use account::IngestAccount;
pub(crate) use config::StorageConfig;
pub use views::{NoView, Views};

use crate::names::{MAIN, SYSTEM_LOG, is_name};
use crate::private_folder::keep_private;
use crate::view::{Figures, Progress, ViewedLog};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use views::{AttachedView, LogView, LogViews};
use wellspring_log::batcher::{self, Batcher};
use wellspring_log::{Clock, Log, LogStats, OpenError, Options};

/// Dropped logs carry this before their name until their files are gone. No valid name begins with it.
const DROPPED: &str = ".dropped-";
/// How often a folder that another process holds is tried again, and after what time.
const LOCKED_TRIES: u32 = 30;
const LOCKED_PAUSE: Duration = Duration::from_millis(100);

/// Why a log could not be made, opened or dropped.
#[derive(Debug)]
pub enum NodeError {
    /// There is no log of that name.
    NotFound,
    /// There are as many logs as there may be.
    TooMany(usize),
    /// The log itself would not open.
    Open {
        /// Its name.
        log: String,
        /// Its folder.
        dir: PathBuf,
        /// Why.
        error: OpenError,
    },
    /// A view of the log could not be begun.
    View(String),
    /// The file system refused.
    Io {
        /// What was being done.
        doing: String,
        /// What the file system said.
        error: std::io::Error,
    },
}

/// Why a log has no batcher.
#[derive(Debug)]
pub enum NoBatcher {
    /// There is no log of that name.
    NoLog,
    /// It is being closed, perhaps to be emptied. A retry may help.
    Closing,
    /// The system gives no thread. A retry may help.
    NoThread(std::io::Error),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::NotFound => write!(f, "there is no such log"),
            NodeError::TooMany(limit) => {
                write!(f, "there are {limit} logs, the most that max_logs allows")
            }
            NodeError::Open { log, error: OpenError::Locked { dir }, .. } => {
                let data = Path::new(dir).ancestors().nth(2).unwrap_or(Path::new(dir)).display();
                write!(
                    f,
                    "the data folder {data} is in use: another process holds the log {log} in it, and \
                     has not given it back within {} s; stop that, or choose another folder (--data)",
                    LOCKED_TRIES * LOCKED_PAUSE.as_millis() as u32 / 1_000
                )
            }
            NodeError::Open { log, dir, error: error @ OpenError::Corrupt(_) } => {
                let data = dir.ancestors().nth(2).unwrap_or(dir);
                write!(
                    f,
                    "the log {log} does not open. In {}, {error}. Nothing was changed; `wellspring verify \
                     --data {} --log {log}` lists all damage. Keep this folder as it is, put a backup of \
                     it in its place and start again",
                    dir.display(),
                    data.display()
                )
            }
            NodeError::Open { log, dir, error } => {
                write!(f, "the log {log} in {} does not open: {error}", dir.display())
            }
            NodeError::View(reason) => f.write_str(reason),
            NodeError::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

/// Opens a log. A process that was just killed may hold its folder a moment longer: that is waited for.
fn open_when_free(path: &Path, options: &Options) -> Result<Log, OpenError> {
    for _ in 0..LOCKED_TRIES {
        match Log::open(path, options.clone()) {
            Err(OpenError::Locked { .. }) => std::thread::sleep(LOCKED_PAUSE),
            done => return done,
        }
    }
    Log::open(path, options.clone())
}

/// All logs of this process.
pub struct Node {
    dir: PathBuf,
    options: Options,
    max_logs: usize,
    batching: batcher::Options,
    logs: RwLock<BTreeMap<String, Entry>>,
    /// Held while logs are made or dropped, so that readers of `logs` never wait for the disk.
    changes: Mutex<Changes>,
}

/// What only those who make or drop logs look at.
#[derive(Default)]
struct Changes {
    /// Logs dropped by this process.
    dropped: u64,
    /// The views to be opened with logs.
    views: Vec<AttachedView>,
}

/// A log and, once something was taken in for it, its batcher.
#[derive(Clone)]
struct Entry {
    log: Log,
    batching: Arc<Mutex<Batching>>,
    /// The views folded from it.
    views: Arc<LogViews>,
}

/// What a log has of a batcher.
#[derive(Default)]
enum Batching {
    /// None yet.
    #[default]
    Idle,
    /// This one.
    Started(Batcher),
    /// None any more. What it had is there for its figures.
    Closed(Option<Batcher>),
}

impl Batching {
    fn batcher(&self) -> Option<&Batcher> {
        match self {
            Batching::Idle => None,
            Batching::Started(batcher) => Some(batcher),
            Batching::Closed(batcher) => batcher.as_ref(),
        }
    }
}

impl Node {
    /// Opens every log under the data folder, `main` and the system log in any case.
    ///
    /// # Errors
    /// [`NodeError`]: a log that does not open stops the start, because serving without it would hide it.
    pub(crate) fn open(
        data: &Path,
        config: &StorageConfig,
        batching: batcher::Options,
        clock: Arc<dyn Clock>,
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
        keep_private(&dir).map_err(io(&dir, "making the folder"))?;
        let node = Node {
            dir,
            options,
            max_logs: config.max_logs.max(1),
            batching,
            logs: RwLock::default(),
            changes: Mutex::default(),
        };
        let entries = fs::read_dir(&node.dir).map_err(io(&node.dir, "listing"))?;
        for entry in entries {
            let entry = entry.map_err(io(&node.dir, "listing"))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(DROPPED) {
                fs::remove_dir_all(entry.path()).map_err(io(&entry.path(), "removing"))?;
            } else if is_name(&name) {
                node.create(&name)?;
            } else {
                tracing::warn!(name, "not a log's name; left alone");
            }
        }
        node.create(MAIN)?;
        node.create(SYSTEM_LOG)?;
        Ok(node)
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

    /// The batcher in front of a log, started if need be.
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
                let batcher = entry.log.batcher(self.batching).map_err(NoBatcher::NoThread)?;
                *batching = Batching::Started(batcher.clone());
                Ok(batcher)
            }
        }
    }

    /// The batcher in front of a log, if anything was ever taken in for it.
    pub fn started_batcher(&self, name: &str) -> Option<Batcher> {
        let entry = self.entry(name)?;
        let batching = entry.batching.lock().unwrap_or_else(PoisonError::into_inner);
        batching.batcher().cloned()
    }

    /// How far each open view is: log, view, progress.
    pub fn views(&self) -> Vec<(String, &'static str, Progress)> {
        let figures = self.view_figures().into_iter();
        figures.map(|(log, view, figures)| (log, view, figures.progress)).collect()
    }

    /// What each open view costs, and how far it is: log, view, figures.
    pub(crate) fn view_figures(&self) -> Vec<(String, &'static str, Figures)> {
        self.figures_of_views(|_| true)
    }

    /// How far each view is that the server is not ready without.
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

    fn entry(&self, name: &str) -> Option<Entry> {
        self.logs.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn entries(&self) -> Vec<(String, Entry)> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        logs.iter().map(|(name, entry)| (name.clone(), entry.clone())).collect()
    }

    /// What was accepted for a log, and what became of it.
    pub fn account(&self, name: &str) -> Option<IngestAccount> {
        self.entry(name).map(|entry| entry.account())
    }

    /// Segments of all logs. Asks no device.
    pub(crate) fn segments(&self) -> u64 {
        self.entries().iter().map(|(_, entry)| entry.log.segments()).sum()
    }

    /// The figures and the account of every log, by name. Asks the file system.
    pub(crate) fn figures(&self) -> Vec<(String, LogStats, IngestAccount)> {
        let entries = self.entries().into_iter();
        entries.map(|(name, entry)| (name, entry.log.stats(), entry.account())).collect()
    }

    /// Makes a log and tells whether it is new. Blocks on the disk. `name` must be a name.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn create(&self, name: &str) -> Result<bool, NodeError> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.get(name).is_some() {
            return Ok(false);
        }
        let own = self.get(SYSTEM_LOG).iter().count();
        if name != SYSTEM_LOG && self.all().len() - own >= self.max_logs {
            return Err(NodeError::TooMany(self.max_logs));
        }
        self.open_log(name, &changes)?;
        Ok(true)
    }

    /// Drops a log with everything in it. Blocks on the disk.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn drop_log(&self, name: &str) -> Result<(), NodeError> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = self.logs.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        let entry = entry.ok_or(NodeError::NotFound)?;
        let attached = changes.views.iter().filter(|attached| attached.concerns(name));
        attached.for_each(|attached| attached.view.forget());
        self.discard(name, &entry, &mut changes)
    }

    /// Puts an empty log in the place of one. Appends on their way to the old one are refused as closed.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn empty(&self, name: &str) -> Result<(), NodeError> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.entry(name).ok_or(NodeError::NotFound)?;
        self.discard(name, &old, &mut changes)?;
        self.open_log(name, &changes)
    }

    /// Takes no more appends anywhere, makes durable what is staged or accepted. Tells how many
    /// accepted events could not be stored.
    pub fn close(&self) -> u64 {
        self.entries().iter().map(|(name, entry)| entry.close(name)).sum()
    }

    fn open_log(&self, name: &str, changes: &Changes) -> Result<(), NodeError> {
        let path = self.dir.join(name);
        keep_private(&path).map_err(io(&path, "keeping others out of"))?;
        let mut options = self.options.clone();
        if name == SYSTEM_LOG {
            // What was revoked stays so after a power loss.
            options.sync = wellspring_log::Sync::Always;
        }
        let log = open_when_free(&path, &options).map_err(|error| NodeError::Open {
            log: name.to_owned(),
            dir: path.clone(),
            error,
        })?;
        // The folder's own entry must survive a power loss, or acknowledged events would go with it.
        sync_dir(&self.dir)?;
        let viewed = ViewedLog { name, log: &log, dir: &path, clock: &self.options.clock };
        let (views, shows) = views::open_due(&changes.views, viewed).map_err(NodeError::View)?;
        let views = Arc::new(views);
        let mut logs = self.logs.write().unwrap_or_else(PoisonError::into_inner);
        logs.insert(name.to_owned(), Entry { log, batching: Arc::default(), views });
        shows.into_iter().for_each(|show| show());
        Ok(())
    }

    /// The name is given up first and durably, so that a crash meanwhile never leaves half a log under it.
    fn discard(&self, name: &str, entry: &Entry, changes: &mut Changes) -> Result<(), NodeError> {
        entry.views.end().iter().for_each(|view| view.forbid_snapshots());
        entry.close(name);
        changes.dropped += 1;
        let count = changes.dropped;
        let (from, to) = (self.dir.join(name), self.dir.join(format!("{DROPPED}{count}-{name}")));
        fs::rename(&from, &to).map_err(io(&from, "renaming"))?;
        sync_dir(&self.dir)?;
        fs::remove_dir_all(&to).map_err(io(&to, "removing"))
    }
}

impl Entry {
    fn account(&self) -> IngestAccount {
        let log = self.log.accepted_stats();
        let batching = self.batching.lock().unwrap_or_else(PoisonError::into_inner);
        IngestAccount::new(log, batching.batcher())
    }

    /// Stores what was accepted, then closes the log. Tells how many accepted events are lost.
    fn close(&self, name: &str) -> u64 {
        let mut batching = self.batching.lock().unwrap_or_else(PoisonError::into_inner);
        let batcher = batching.batcher().cloned();
        *batching = Batching::Closed(batcher.clone());
        drop(batching);
        let mut events_lost = 0;
        if let Some(batcher) = batcher {
            batcher.close();
            let lost = batcher.figures().lost_possible();
            events_lost = lost.events;
            if lost.events > 0 {
                tracing::error!(
                    log = name,
                    events = lost.events,
                    bytes = lost.bytes,
                    "accepted events could not be stored and are lost"
                );
            }
        }
        self.log.close();
        self.views.end().iter().for_each(|view| view.close());
        events_lost
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

fn sync_dir(dir: &Path) -> Result<(), NodeError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io(dir, "syncing the folder"))
}

fn io(path: &Path, doing: &str) -> impl FnOnce(std::io::Error) -> NodeError {
    let doing = format!("{doing} {}", path.display());
    move |error| NodeError::Io { doing, error }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod views_tests;
