//! Views as the logs see them, without their types: opened with their log, closed with it.

use super::{Figures, Live, lock};
use crate::setup::SetupError;
use crate::view::contract::View;
use std::any::Any;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wellspring_log::{Clock, Log};
use wellspring_types::{Position, Query};

/// A wait for a view.
pub(crate) type ViewWait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A view of an open log, of any type.
pub(crate) trait LiveView: Send + Sync {
    /// The view's name.
    fn name(&self) -> &'static str;
    /// The view's cost and progress.
    fn figures(&self) -> Figures;
    /// Waits until it has reached a position, at most this long; the caller must check.
    fn wait_for(self: Arc<Self>, position: Position, most: Duration) -> ViewWait;
    /// Folds the rest, writes a snapshot and ends the thread. The log must accept no more appends.
    fn close(&self);
    /// Forbids further snapshots: the log is about to be dropped.
    fn forbid_snapshots(&self);
    /// Has another snapshot written: the one on disk was damaged and removed.
    fn renew_snapshot(&self);
    /// Ends the thread without another snapshot.
    fn discard(&self);
    /// The [`Live`], for downcasting.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<V: View> LiveView for Live<V> {
    fn name(&self) -> &'static str {
        V::NAME
    }

    fn figures(&self) -> Figures {
        Live::figures(self)
    }

    fn wait_for(self: Arc<Self>, position: Position, most: Duration) -> ViewWait {
        Box::pin(async move {
            let _ = self.caught_up(position, most).await;
        })
    }

    fn close(&self) {
        Live::close(self);
    }

    fn forbid_snapshots(&self) {
        Live::forbid_snapshots(self);
    }

    fn renew_snapshot(&self) {
        Live::renew_snapshot(self);
    }

    fn discard(&self) {
        Live::discard(self);
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// An open view that is not published yet.
pub struct OpenedView {
    /// The view.
    pub(crate) live: Arc<dyn LiveView>,
    /// Puts it into its slot, replacing the previous one.
    pub(crate) show: Publish,
}

/// Publishes a view.
pub(crate) type Publish = Box<dyn FnOnce() + Send>;

/// An open log, as needed to open views.
#[derive(Clone, Copy)]
pub struct ViewedLog<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// The log.
    pub(crate) log: &'a Log,
    /// The folder of its files.
    pub(crate) dir: &'a Path,
    /// The clock of the process.
    pub(crate) clock: &'a Arc<dyn Clock>,
}

impl ViewedLog<'_> {
    fn fold<V: View>(self, context: V::Context) -> Result<Arc<Live<V>>, SetupError> {
        Live::open(self.log.clone(), self.dir, context, Arc::clone(self.clock))
    }
}

/// Opens a view on a log each time the log is opened.
pub trait OpenView: Send + Sync {
    /// The view's name.
    fn name(&self) -> &'static str;

    /// The events that the view folds.
    fn query(&self) -> Query;

    /// Opens the view of a log. Publish it once the log is.
    ///
    /// # Errors
    /// A sentence: the system provides no thread, or the initial state could not be made.
    fn open(&self, log: ViewedLog<'_>) -> Result<OpenedView, SetupError>;

    /// Forgets the view: its log has been dropped.
    fn forget(&self);
}

/// The current view of a log that may be emptied, dropped and created again: each time it has
/// another view, and while there is no log it has none.
pub struct ViewSlot<V: View> {
    context: Box<dyn Fn() -> Result<V::Context, SetupError> + Send + Sync>,
    live: Arc<Mutex<Option<Arc<Live<V>>>>>,
}

impl<V: View> ViewSlot<V> {
    /// A slot without a view yet. The initial state is what `context` returns.
    pub fn new(
        context: impl Fn() -> Result<V::Context, SetupError> + Send + Sync + 'static,
    ) -> Arc<ViewSlot<V>> {
        Arc::new(ViewSlot { context: Box::new(context), live: Arc::default() })
    }

    /// The current view. Ask again once it [`is_closed`](Live::is_closed): the log may have been
    /// emptied.
    pub fn live(&self) -> Option<Arc<Live<V>>> {
        lock(&self.live).clone()
    }
}

impl<V: View> OpenView for ViewSlot<V> {
    fn name(&self) -> &'static str {
        V::NAME
    }

    fn query(&self) -> Query {
        V::query()
    }

    fn open(&self, log: ViewedLog<'_>) -> Result<OpenedView, SetupError> {
        let live = log.fold::<V>((self.context)()?)?;
        let (slot, shown) = (Arc::clone(&self.live), Arc::clone(&live));
        Ok(OpenedView { live, show: Box::new(move || *lock(&slot) = Some(shown)) })
    }

    fn forget(&self) {
        *lock(&self.live) = None;
    }
}

/// Opens a view on any log, on first use or with the log.
pub(crate) struct EachView<V: View> {
    context: Box<ContextOfLog<V>>,
}

/// The initial state, by the name of the log.
type ContextOfLog<V> = dyn Fn(&str) -> Result<<V as View>::Context, SetupError> + Send + Sync;

impl<V: View> EachView<V> {
    /// The initial state is what `context` returns for the log's name.
    pub(crate) fn new(
        context: impl Fn(&str) -> Result<V::Context, SetupError> + Send + Sync + 'static,
    ) -> EachView<V> {
        EachView { context: Box::new(context) }
    }
}

impl<V: View> OpenView for EachView<V> {
    fn name(&self) -> &'static str {
        V::NAME
    }

    fn query(&self) -> Query {
        V::query()
    }

    fn open(&self, log: ViewedLog<'_>) -> Result<OpenedView, SetupError> {
        let live = log.fold::<V>((self.context)(log.name)?)?;
        // Callers get it from the log.
        Ok(OpenedView { live, show: Box::new(|| {}) })
    }

    fn forget(&self) {}
}
