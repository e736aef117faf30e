//! The logs of a node of a cluster, opened, dropped and led according to the log `system`.
//!
//! A thread maintains them: it opens and drops logs that were created or dropped on other nodes,
//! and has the leader of `system` place the others ([`placement`](super::placement)). The leader of
//! `system` is replaced after a silence (`log/shared/lead.rs`).

use super::catalog::{Catalog, CatalogChange};
use super::ingest_watch::IngestWatch;
use super::members::{self, Members};
use super::opening::{io, journal_name};
use super::placement::Placement;
use super::unopened_logs::UnopenedLogs;
use super::{Changes, Node, NodeError};
use crate::cluster::Cluster;
use crate::names::SYSTEM_LOG;
use crate::setup::SetupError;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::inspect::{CopyFound, Holding, copied_log, holding};
use wellspring_log::{Append, AppendError, Feed, Leader, Log, Role};
use wellspring_types::Position;

/// Attempts at a change of the catalog while others interfere.
const ATTEMPTS: u32 = 16;
/// Time between two checks of roles; new events of `system` are noticed at once.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two attempts to read the catalog.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Cluster state apart from the logs.
pub(super) struct SharedState {
    catalog: Mutex<Catalog>,
    /// Position of `system` that the logs of this node reflect, except those that cannot be opened.
    settled: Feed,
    /// Existing logs that cannot be opened here.
    pub(super) unopened: UnopenedLogs,
    /// The known nodes.
    pub(super) members: Arc<Members>,
    /// Which node is to lead which log.
    pub(super) placement: Arc<Placement>,
    /// The start of this node has been read from `system`: others know of it.
    joined: AtomicBool,
    ending: AtomicBool,
}

impl Default for SharedState {
    fn default() -> SharedState {
        SharedState {
            catalog: Mutex::new(Catalog::new()),
            settled: Feed::at(0),
            unopened: UnopenedLogs::default(),
            members: Arc::default(),
            placement: Arc::default(),
            joined: AtomicBool::new(false),
            ending: AtomicBool::new(false),
        }
    }
}

impl SharedState {
    /// Nothing is opened, dropped or claimed any more.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Opens the log `system`, and those that it lists. `found`: the existing folders.
    ///
    /// # Errors
    /// [`NodeError`].
    pub(super) fn open_shared(&self, found: &[String]) -> Result<(), NodeError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.open_log(SYSTEM_LOG, 0, &changes)?;
        let system = self.get(SYSTEM_LOG).ok_or(NodeError::NotFound)?;
        let mut catalog = shared.catalog();
        catalog.fold(&system).map_err(|error| NodeError::View(error.to_string().into()))?;
        for name in found {
            if catalog.incarnation(name).is_none() {
                self.remove_copy(name, &mut changes)?;
            }
        }
        let names: Vec<String> = catalog.names().map(str::to_owned).collect();
        for name in names.iter().filter(|name| *name != SYSTEM_LOG) {
            self.settle(name, &mut catalog, &mut changes)?;
        }
        shared.settled.publish(catalog.position());
        Ok(())
    }

    /// Removes the copy of a dropped log, also after a crash in the middle. A folder that is not a
    /// copy, or holds events of an unknown log, stays and stops the start.
    fn remove_copy(&self, name: &str, changes: &mut Changes) -> Result<(), NodeError> {
        let dir = self.dir.join(name);
        let found = holding(&dir).map_err(|error| NodeError::Open {
            log: name.to_owned(),
            dir: dir.clone(),
            error,
        })?;
        let is_ours = match found {
            Holding::Nothing => true,
            Holding::Copy(CopyFound { of, head, .. }) => of.is_some() || head == 0,
            Holding::Files => false,
        };
        if !is_ours {
            let what = "it is neither a log of this journal nor a copy of one; a node of a \
                        cluster starts with an empty data folder, and `wellspring export` and \
                        `import` transfer events"
                .to_owned();
            let error =
                wellspring_log::OpenError::OtherJournal { dir: dir.display().to_string(), what };
            return Err(NodeError::Open { log: name.to_owned(), dir, error });
        }
        tracing::info!(log = name, "was dropped meanwhile; its copy is removed");
        self.remove_folder(name, changes)
    }

    /// Brings a log into its catalog state here.
    fn settle(
        &self,
        name: &str,
        catalog: &mut Catalog,
        changes: &mut Changes,
    ) -> Result<(), NodeError> {
        let here = self.entry(name).map(|entry| entry.incarnation);
        let wanted = catalog.incarnation(name);
        if here != wanted {
            match (here, wanted) {
                (Some(_), Some(_)) => {
                    let old = self.entry(name).ok_or(NodeError::NotFound)?;
                    self.discard(name, &old, changes)?;
                }
                (Some(_), None) => self.drop_here(name, changes)?,
                (None, _) => {}
            }
            if let Some(incarnation) = wanted {
                let dir = self.dir.join(name);
                let copied = if dir.is_dir() { copied_log(&dir) } else { Ok(None) };
                let copied = copied.map_err(io(&dir, "reading"))?;
                if copied.is_some_and(|copied| copied != journal_name(name, incarnation)) {
                    tracing::info!(
                        log = name,
                        "was recreated meanwhile; the copy of the old log is removed"
                    );
                    self.remove_folder(name, changes)?;
                }
                self.open_log(name, incarnation, changes)?;
            }
        }
        catalog.settled(name);
        Ok(())
    }

    /// Brings the logs of this node into their catalog state. A log that cannot be opened is
    /// remembered and retried later, and does not keep others from opening.
    fn follow_catalog(&self, shared: &SharedState) -> Result<(), NodeError> {
        let Some(system) = self.get(SYSTEM_LOG) else { return Ok(()) };
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut catalog = shared.catalog();
        catalog.fold(&system).map_err(|error| NodeError::View(error.to_string().into()))?;
        if let Some(cluster) = self.cluster() {
            for (name, incarnation) in catalog.take_dropped() {
                cluster.engine.forget(&journal_name(&name, incarnation));
            }
        }
        for name in catalog.due() {
            if shared.is_ending() {
                return Ok(());
            }
            if !shared.unopened.is_to_be_tried(&name) {
                continue;
            }
            match self.settle(&name, &mut catalog, &mut changes) {
                Ok(()) => shared.unopened.opened(&name),
                Err(error) => {
                    shared.unopened.failed(&name, catalog.incarnation(&name), error.to_string());
                }
            }
        }
        shared.settled.publish(catalog.position());
        Ok(())
    }

    /// Position of `system` that the logs of this node reflect; `None` outside a cluster.
    pub fn catalog_settled(&self) -> Option<&Feed> {
        self.shared.as_ref().map(|shared| &shared.settled)
    }

    /// The incarnation of the log that is open here.
    pub fn incarnation(&self, name: &str) -> Option<u64> {
        self.entry(name).map(|entry| entry.incarnation)
    }

    /// The leader of a log, as far as this node knows: if the log itself knows none, the node that
    /// was told to lead it, or else the one that will tell one.
    pub fn leader_of(&self, name: &str, log: &Log) -> Option<Leader> {
        let shared = self.shared.as_ref()?;
        let system = self.get(SYSTEM_LOG).filter(|_| name != SYSTEM_LOG);
        leader_of((name, log), system.as_ref(), &shared.members, &shared.placement)
    }

    /// Which node is to lead which log; `None` outside a cluster.
    pub(crate) fn placement(&self) -> Option<&Placement> {
        self.shared.as_ref().map(|shared| &*shared.placement)
    }

    /// Has logs led by the node that leads `system`: connectors run there, and need those leads.
    pub fn lead_with_system(&self, logs: BTreeSet<String>) {
        self.placement().inspect(|placement| placement.lead_with_system(logs));
    }

    /// Waits until a node leads a log that was created here just now; the placer needs a moment.
    fn await_leader(&self, name: &str) {
        let (Some(cluster), Some(log)) = (self.cluster(), self.get(name)) else { return };
        let (begun, changes) = (Instant::now(), log.role_changes());
        let is_led = |log: &Log| match log.role() {
            Role::Following { leader } => leader.is_some(),
            role => role.leads(),
        };
        loop {
            let seen = changes.head();
            if is_led(&log) || changes.is_closed() || begun.elapsed() > cluster.lead_timeout {
                return;
            }
            cluster.engine.nudge();
            changes.wait_past(seen, LOOK);
        }
    }

    pub(super) fn create_shared(
        &self,
        shared: &SharedState,
        name: &str,
    ) -> Result<bool, NodeError> {
        if self.get(name).is_none() {
            self.check_room(name)?;
        }
        self.change_catalog(shared, name, CatalogChange::Create)
    }

    pub(super) fn drop_shared(&self, shared: &SharedState, name: &str) -> Result<(), NodeError> {
        if self.change_catalog(shared, name, CatalogChange::Drop)? {
            Ok(())
        } else {
            Err(NodeError::NotFound)
        }
    }

    pub(super) fn empty_shared(&self, shared: &SharedState, name: &str) -> Result<(), NodeError> {
        self.change_catalog(shared, name, CatalogChange::Replace).map(drop)
    }

    /// Makes a change, and tells whether there was anything to change. It is in effect here when
    /// this returns.
    fn change_catalog(
        &self,
        shared: &SharedState,
        name: &str,
        change: CatalogChange,
    ) -> Result<bool, NodeError> {
        let system = self.get(SYSTEM_LOG).ok_or(NodeError::NotFound)?;
        for _ in 0..ATTEMPTS {
            self.follow_catalog(shared)?;
            let Some((events, condition)) = shared.catalog().change(name, change) else {
                return Ok(false);
            };
            let append = Append { events, condition: Some(condition), ..Append::default() };
            match system.append(append) {
                Ok(_) => {
                    self.follow_catalog(shared)?;
                    self.await_leader(name);
                    return Ok(true);
                }
                Err(AppendError::Conflict(_) | AppendError::SetBack) => {}
                Err(error) => return Err(NodeError::NotRecorded(error)),
            }
        }
        Err(NodeError::NotRecorded(AppendError::Overloaded))
    }

    /// Announces in the log `system` that this node has started, with its URL, once it can be
    /// reached.
    pub(crate) fn join(&self) {
        let Some(cluster) = self.cluster() else { return };
        if self.group().is_some_and(|group| group.state().stopped.is_some()) {
            return;
        }
        let joined = match self.batcher(SYSTEM_LOG) {
            Ok(batcher) => members::join(cluster, &batcher),
            Err(_) => Err("the log system accepts no events".into()),
        };
        if let Err(reason) = joined {
            tracing::warn!("cannot announce this node to the others: {reason}");
        }
    }

    /// Existing logs that cannot be opened here, by name, with the reason.
    pub fn unopened_logs(&self) -> Vec<(String, String)> {
        let unopened = self.shared.as_ref().map(|shared| shared.unopened.all());
        unopened.unwrap_or_default().into_iter().map(|(name, log)| (name, log.reason)).collect()
    }

    /// Whether other nodes know of this one, or there are none.
    pub(super) fn has_joined(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.joined.load(Ordering::Acquire))
    }

    /// Maintains the logs of a node of a cluster, on a dedicated thread, until the node is closed.
    ///
    /// # Errors
    /// The system provides no thread.
    pub(crate) fn look_after_shared(self: &Arc<Self>) -> Result<(), SetupError> {
        let Some(cluster) = self.cluster().map(Arc::clone) else { return Ok(()) };
        let node = Arc::downgrade(self);
        crate::threads::spawn("cluster-logs".to_owned(), move || look_after(&node, &cluster))
            .map(drop)
    }
}

/// The leader of a log, known to the log itself or else to placement or to the log `system`, which
/// is `None` if this is that log.
///
/// Requests go there with the credentials of clients. Whoever writes to the engine can claim the
/// lead of a log under any URL, but not write to `system`, which is sealed: so the URL is the one
/// that `system` has for a node of this name.
pub(super) fn leader_of(
    (name, log): (&str, &Log),
    system: Option<&Log>,
    members: &Members,
    placement: &Placement,
) -> Option<Leader> {
    let followed = |log: &Log| match log.role() {
        Role::Following { leader } => Some(leader),
        _ => None,
    };
    let claimed = followed(log)?;
    let Some(system) = system else { return claimed };
    let of_system = followed(system).flatten();
    let named = || placement.named(name).map(|(node, _)| node);
    let (node, epoch) = match claimed {
        Some(claimed) => (claimed.node, claimed.epoch),
        None => match named() {
            Some(node) => (node, 0),
            None => return of_system,
        },
    };
    let url = match of_system.filter(|leader| leader.node == node) {
        Some(leader) => leader.url,
        None => members.url(system, &node)?,
    };
    Some(Leader { node, url, epoch })
}

/// The thread's work.
fn look_after(node: &Weak<Node>, cluster: &Cluster) {
    // The log `system` could not be read.
    let mut failed: Option<Instant> = None;
    let mut twin = Twin::Unknown;
    let mut ingest = IngestWatch::default();
    loop {
        let Some(node) = node.upgrade() else { return };
        let Some(shared) = node.shared.as_ref().filter(|shared| !shared.is_ending()) else {
            return;
        };
        let Some(system) = node.get(SYSTEM_LOG) else { return };
        let seen = system.head();
        if failed.is_none_or(|at| at.elapsed() > TRY_AGAIN) {
            let followed = node.follow_catalog(shared);
            failed = followed.as_ref().err().map(|_| Instant::now());
            if let Err(error) = followed {
                tracing::warn!("cannot list the logs: {error}");
            }
        }
        twin = twin.seen(&node, cluster, seen);
        if matches!(twin, Twin::None(_)) {
            shared.joined.store(true, Ordering::Release);
        }
        ingest.look(&node, cluster.leader_wait);
        shared.placement.look(&node, &system, cluster);
        let feed = system.feed().clone();
        drop((system, node));
        feed.wait_past(seen, LOOK);
    }
}

/// Whether another process uses this node's name.
#[derive(Debug, Clone, Copy)]
enum Twin {
    /// This node's own joining has not been seen yet.
    Unknown,
    /// It was the last of its name when the log `system` ended here.
    None(Position),
    /// There is one, and it was logged.
    Told,
}

impl Twin {
    /// The state when the log `system` has come to its end.
    fn seen(self, node: &Node, cluster: &Cluster, end: Position) -> Twin {
        if matches!(self, Twin::Told) || matches!(self, Twin::None(known) if known == end) {
            return self;
        }
        let Ok(members) = node.members() else { return self };
        match (self, members.iter().find(|member| member.node == cluster.node.as_str())) {
            (_, Some(own)) if own.start == cluster.start => Twin::None(end),
            (Twin::None(_), Some(other)) => {
                tracing::error!(
                    node = cluster.node.as_str(),
                    url = other.url,
                    "another process has started under the name of this node; give each node a \
                     unique name (--node), or stop one of the two"
                );
                Twin::Told
            }
            _ => self,
        }
    }
}
