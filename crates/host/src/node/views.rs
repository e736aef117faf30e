//! The views of a log: those attached to it by name, and those of each log. The latter are opened
//! when they are first requested, or together with a log that holds their events.

use super::{Node, NodeError};
use crate::names::SYSTEM_LOG;
use crate::setup::SetupError;
use crate::view::contract::View;
use crate::view::{EachView, Live, LiveView, OpenView, OpenedView, Publish, ViewedLog};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_log::{Log, Order, ReadError, Snapshot};
use wellspring_types::{Position, Query};

/// A view to be opened on logs.
pub(super) struct AttachedView {
    pub(super) scope: Scope,
    pub(super) view: Arc<dyn OpenView>,
}

/// On which logs a view is opened, and when.
pub(super) enum Scope {
    /// On the log of this name, together with it.
    Log(String),
    /// On any log: together with it if it contains a match for this, otherwise on first use.
    Each(Query),
}

impl AttachedView {
    /// Whether the view is ever opened on this log.
    pub(super) fn concerns(&self, name: &str) -> bool {
        match &self.scope {
            Scope::Log(log) => log == name,
            // Only the server writes its own log, and only for its own views.
            Scope::Each(_) => name != SYSTEM_LOG,
        }
    }

    /// Whether the view is opened with this log.
    fn is_due(&self, name: &str, log: &Log) -> bool {
        self.concerns(name)
            && match &self.scope {
                Scope::Log(_) => true,
                // If the log cannot be read, its view will report the fault.
                Scope::Each(query) => !matches!(first_match(&log.snapshot(), query), Ok(None)),
            }
    }

    /// Whether both may be opened on one log.
    fn meets(&self, other: &AttachedView) -> bool {
        match &other.scope {
            Scope::Log(log) => self.concerns(log),
            Scope::Each(_) => !matches!(&self.scope, Scope::Log(log) if log == SYSTEM_LOG),
        }
    }
}

/// Position of the first matching event that a log still has.
///
/// # Errors
/// [`ReadError`].
pub(super) fn first_match(
    snapshot: &Snapshot,
    query: &Query,
) -> Result<Option<Position>, ReadError> {
    let mut events = snapshot.read_kept(query, Order::Ascending);
    Ok(events.next()?.map(|event| event.position()))
}

/// When a view was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenedAt {
    /// With its log, or when it was attached: readiness requires it.
    TheStart,
    /// On first use. Its callers are told its progress; nothing else waits.
    FirstUse,
}

/// A view of an open log.
#[derive(Clone)]
pub(super) struct LogView {
    pub(super) live: Arc<dyn LiveView>,
    opened_at: OpenedAt,
}

impl LogView {
    /// Whether readiness requires it.
    pub(super) fn is_awaited(&self) -> bool {
        self.opened_at == OpenedAt::TheStart
    }
}

/// The views of an open log.
#[derive(Default)]
pub(super) struct LogViews {
    open: Mutex<OpenViews>,
}

#[derive(Default)]
struct OpenViews {
    views: Vec<LogView>,
    /// No more are opened: the log is being closed.
    is_ended: bool,
}

impl LogViews {
    fn lock(&self) -> MutexGuard<'_, OpenViews> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All open views.
    pub(super) fn all(&self) -> Vec<LogView> {
        self.lock().views.clone()
    }

    /// Opens a view with the log. Returns what publishes it.
    ///
    /// # Errors
    /// As [`OpenView::open`].
    fn open(&self, view: &dyn OpenView, log: ViewedLog<'_>) -> Result<Publish, SetupError> {
        let mut open = self.lock();
        if open.is_ended {
            return Err(format!("the log {} is being closed", log.name).into());
        }
        let OpenedView { live, show } = view.open(log)?;
        open.views.push(LogView { live, opened_at: OpenedAt::TheStart });
        Ok(show)
    }

    /// The view of this name, opened on demand.
    ///
    /// # Errors
    /// [`NoView`].
    fn get(&self, view: &dyn OpenView, log: ViewedLog<'_>) -> Result<Arc<dyn LiveView>, NoView> {
        let mut open = self.lock();
        if let Some(found) = open.views.iter().find(|found| found.live.name() == view.name()) {
            return Ok(Arc::clone(&found.live));
        }
        if open.is_ended {
            return Err(NoView::Closing);
        }
        let OpenedView { live, show } = view.open(log).map_err(NoView::NotOpened)?;
        open.views.push(LogView { live: Arc::clone(&live), opened_at: OpenedAt::FirstUse });
        show();
        Ok(live)
    }

    /// Opens none from now on. Returns the open ones.
    pub(super) fn end(&self) -> Vec<Arc<dyn LiveView>> {
        let mut open = self.lock();
        open.is_ended = true;
        open.views.iter().map(|view| Arc::clone(&view.live)).collect()
    }
}

/// Why there is no view of a log.
#[derive(Debug)]
pub enum NoView {
    /// No log has this name, or it is the server's own.
    NoLog,
    /// The log is being closed, perhaps to be emptied. A retry may help.
    Closing,
    /// The system provides no thread, or the view's initial state could not be made. A retry may
    /// help.
    NotOpened(SetupError),
}

impl fmt::Display for NoView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoView::NoLog => write!(f, "no such log"),
            NoView::Closing => write!(f, "the log is being closed"),
            NoView::NotOpened(reason) => reason.fmt(f),
        }
    }
}

/// The views of one kind, on any log but the server's own.
pub struct Views<V: View> {
    node: Arc<Node>,
    each: Arc<dyn OpenView>,
    shows: PhantomData<fn() -> V>,
}

impl<V: View> Views<V> {
    /// The view of the log as it is now, opened on demand. It belongs to this log, not to a
    /// replacement: ask again with each request. Takes no longer than starting a thread.
    ///
    /// # Errors
    /// [`NoView`].
    pub fn get(&self, log: &str) -> Result<Arc<Live<V>>, NoView> {
        let entry = self.node.entry(log).filter(|_| log != SYSTEM_LOG).ok_or(NoView::NoLog)?;
        let dir = self.node.dir.join(log);
        let viewed = ViewedLog {
            name: log,
            log: &entry.log,
            dir: &dir,
            clock: &self.node.opening.options.clock,
        };
        let live = entry.views.get(&*self.each, viewed)?;
        // No other view of this name can be attached to the log.
        Ok(Arc::downcast(live.into_any()).unwrap_or_else(|_| unreachable!("one view of a name")))
    }

    /// The open views, with the names of their logs.
    #[must_use]
    pub fn opened(&self) -> Vec<(String, Arc<Live<V>>)> {
        let opened = |(log, entry): (String, super::Entry)| {
            let views = entry.views.all();
            let view = views.iter().find(|view| view.live.name() == V::NAME)?;
            let live = Arc::downcast(Arc::clone(&view.live).into_any()).ok()?;
            Some((log, live))
        };
        self.node.entries().into_iter().filter_map(opened).collect()
    }
}

impl Node {
    /// Attaches a view to the log of this name, opened now if the log is open and each time it is
    /// opened.
    ///
    /// # Errors
    /// [`NodeError::View`].
    pub fn attach(&self, log: &str, view: Arc<dyn OpenView>) -> Result<(), NodeError> {
        self.attach_view(AttachedView { scope: Scope::Log(log.to_owned()), view })
    }

    /// Attaches a view to every log, opened on first use; or with the log, now and each time, if
    /// that contains an event of these types. The initial state is what `context` returns for the
    /// log's name, on the caller's thread.
    ///
    /// # Errors
    /// [`NodeError::View`].
    pub fn attach_each<V: View>(
        self: &Arc<Self>,
        types: &[&str],
        context: impl Fn(&str) -> Result<V::Context, SetupError> + Send + Sync + 'static,
    ) -> Result<Views<V>, NodeError> {
        let each: Arc<dyn OpenView> = Arc::new(EachView::<V>::new(context));
        let scope = Scope::Each(Query::item(types, &[]));
        self.attach_view(AttachedView { scope, view: Arc::clone(&each) })?;
        Ok(Views { node: Arc::clone(self), each, shows: PhantomData })
    }

    fn attach_view(&self, attached: AttachedView) -> Result<(), NodeError> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let name = attached.view.name();
        let is_same = |other: &&AttachedView| other.view.name() == name && other.meets(&attached);
        if let Some(other) = changes.views.iter().find(is_same) {
            let log = match (&attached.scope, &other.scope) {
                (Scope::Log(log), _) | (_, Scope::Log(log)) => log,
                (Scope::Each(_), Scope::Each(_)) => "every log",
            };
            let what = format!(
                "{log} already has a view {name}; names of views are unique because snapshots use \
                 them"
            );
            return Err(NodeError::View(what.into()));
        }
        for (log, entry) in self.entries() {
            if attached.is_due(&log, &entry.log) {
                let dir = self.dir.join(&log);
                let viewed = ViewedLog {
                    name: &log,
                    log: &entry.log,
                    dir: &dir,
                    clock: &self.opening.options.clock,
                };
                let show = entry.views.open(&*attached.view, viewed).map_err(NodeError::View)?;
                show();
            }
        }
        changes.views.push(attached);
        Ok(())
    }
}

/// Opens the views that are due with a newly opened log. Returns what publishes them, once the log
/// is there.
///
/// # Errors
/// A sentence: one of them failed; the others are closed then.
pub(super) fn open_due(
    attached: &[AttachedView],
    log: ViewedLog<'_>,
) -> Result<(LogViews, Vec<Publish>), SetupError> {
    let views = LogViews::default();
    let mut shows = Vec::new();
    for attached in attached.iter().filter(|attached| attached.is_due(log.name, log.log)) {
        match views.open(&*attached.view, log) {
            Ok(show) => shows.push(show),
            Err(reason) => {
                // Their threads hold the log, which is never published.
                views.end().iter().for_each(|view| view.discard());
                return Err(reason);
            }
        }
    }
    Ok((views, shows))
}
