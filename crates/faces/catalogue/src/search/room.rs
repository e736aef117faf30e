//! The indexing thread and its state.

use super::changes::{Changes, IndexerCall};
use super::index::{self, EarlierEntry, ItemText, Searcher, Writer};
use crate::view::{Catalogue, Folded, ItemId, ListenerState};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tantivy::TantivyError;
use wellspring_host::setup::SetupError;
use wellspring_host::stats::family::Family;
use wellspring_host::threads;
use wellspring_host::view::{Live, ViewSlot};
use wellspring_log::Feed;

/// How long changes are gathered before they are committed.
const GATHER: Duration = Duration::from_millis(100);
/// How often to check whether the log has been emptied.
const LOOK: Duration = Duration::from_millis(100);
/// Pause after the engine has failed.
const AFTER_FAULT: Duration = Duration::from_secs(1);
/// Items read from the view at a time, under its lock.
const AT_A_TIME: usize = 256;

/// The full-text index. The thread ends when this is dropped.
pub(crate) struct SearchRoom {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// Wakes the thread, whatever the view.
    changes: Arc<Changes>,
    standing: Mutex<IndexState>,
}

/// The state of the index.
#[derive(Clone)]
pub(super) enum IndexState {
    /// There is no view yet.
    NoView,
    /// It is being built.
    Building {
        indexed: usize,
        items: usize,
    },
    Ready(ViewIndex),
    /// The engine has failed; the index is being rebuilt.
    Failed(String),
}

/// The index of a view.
#[derive(Clone)]
pub(super) struct ViewIndex {
    live: Weak<Live<Catalogue>>,
    changes: Arc<Changes>,
    pub(super) searcher: Searcher,
    /// Everything up to here is indexed; more may be, if nothing waits.
    pub(super) position: Feed,
}

impl SearchRoom {
    /// Starts indexing the current view.
    ///
    /// # Errors
    /// The system provides no thread.
    pub(crate) fn open(views: &Arc<ViewSlot<Catalogue>>) -> Result<SearchRoom, SetupError> {
        let standing = Mutex::new(IndexState::NoView);
        let shared = Arc::new(Shared { changes: Arc::default(), standing });
        let (of_thread, views) = (Arc::clone(&shared), Arc::downgrade(views));
        let thread = threads::spawn("search".to_owned(), move || of_thread.run(&views))?;
        Ok(SearchRoom { shared, thread: Some(thread) })
    }

    /// The state of the index.
    pub(super) fn standing(&self) -> IndexState {
        self.shared.standing().clone()
    }

    /// Figures of the index.
    pub(crate) fn figures(&self) -> Vec<Family> {
        let IndexState::Ready(ViewIndex { searcher, .. }) = self.standing() else {
            return Vec::new();
        };
        vec![
            Family::gauge(
                "wellspring_catalogue_search_items",
                "Items in the full-text index.",
                searcher.items(),
            ),
            Family::gauge(
                "wellspring_catalogue_search_bytes",
                "Memory of the full-text index in bytes.",
                searcher.bytes(),
            ),
        ]
    }
}

impl Drop for SearchRoom {
    fn drop(&mut self) {
        self.shared.changes.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl ViewIndex {
    /// Whether it is the index of this view.
    pub(super) fn is_of(&self, live: &Arc<Live<Catalogue>>) -> bool {
        std::ptr::eq(self.live.as_ptr(), Arc::as_ptr(live))
    }

    /// The position up to which everything is indexed, if `folded` was the view's position before.
    pub(super) fn up_to(&self, folded: u64) -> u64 {
        let indexed = self.position.head();
        // The changes up to there have been marked.
        if self.changes.is_quiet() { indexed.max(folded) } else { indexed }
    }

    /// Has changes indexed now.
    pub(super) fn hurry(&self) {
        self.changes.want();
    }
}

impl Shared {
    fn standing(&self) -> MutexGuard<'_, IndexState> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Indexes one view after the other.
    fn run(&self, views: &Weak<ViewSlot<Catalogue>>) {
        loop {
            let after = match self.next_view(views) {
                None => LOOK,
                Some(live) => {
                    let position = Feed::at(0);
                    let indexed = self.index(&live, &position);
                    position.close();
                    match indexed {
                        Ok(()) => {
                            *self.standing() = IndexState::NoView;
                            Duration::ZERO
                        }
                        Err(error) => {
                            tracing::error!(%error, "the search index failed; rebuilding it");
                            *self.standing() = IndexState::Failed(error.to_string());
                            AFTER_FAULT
                        }
                    }
                }
            };
            match self.changes.pause(after) {
                IndexerCall::End => return,
                // Callers that waited for the old index are told so.
                IndexerCall::Wanted => self.changes.begin(),
                IndexerCall::Changed | IndexerCall::Idle => {}
            }
        }
    }

    /// The next view that is ready.
    fn next_view(&self, views: &Weak<ViewSlot<Catalogue>>) -> Option<Weak<Live<Catalogue>>> {
        let live = views.upgrade()?.live()?;
        let answers = live.folded().is_some() && !live.is_closed();
        answers.then(|| Arc::downgrade(&live))
    }

    /// Indexes a view while it exists.
    fn index(&self, live: &Weak<Live<Catalogue>>, position: &Feed) -> Result<(), TantivyError> {
        let (mut writer, searcher) = index::create()?;
        let changes = Arc::clone(&self.changes);
        // Marks left by an earlier index.
        changes.begin();
        changes.take();
        changes.finish();
        let here = Arc::new(());
        if let Some(live) = live.upgrade()
            && let Some(folded) = live.folded()
        {
            let (changes, here) = (Arc::clone(&changes), Arc::downgrade(&here));
            folded.listen(Box::new(move |item| {
                changes.add(item);
                if here.strong_count() > 0 { ListenerState::On } else { ListenerState::Over }
            }));
        }
        if self.build(live, &mut writer, position)?.is_break() {
            return Ok(());
        }
        let indexed =
            ViewIndex { live: Weak::clone(live), changes, searcher, position: position.clone() };
        *self.standing() = IndexState::Ready(indexed);
        self.follow(live, &mut writer, position)
    }

    /// Indexes all items.
    fn build(
        &self,
        live: &Weak<Live<Catalogue>>,
        writer: &mut Writer,
        position: &Feed,
    ) -> Result<ControlFlow<()>, TantivyError> {
        let (mut next, mut shown) = (1, None);
        loop {
            let mut entries = Vec::with_capacity(AT_A_TIME);
            {
                let Some(live) = there(live) else { return Ok(ControlFlow::Break(())) };
                let Some(folded) = live.folded() else { return Ok(ControlFlow::Break(())) };
                // Later events are marked as changes.
                let up_to =
                    *shown.get_or_insert_with(|| (live.position(), folded.read().item_count()));
                let state = folded.read();
                let some = state.items_from(next).take(AT_A_TIME);
                let some = some.take_while(|(id, _)| *id as usize <= up_to.1);
                entries.extend(some.map(|(id, item)| writer.entry(id, ItemText::of(item))));
                *self.standing() =
                    IndexState::Building { indexed: next as usize - 1, items: up_to.1 };
            }
            let Some((last, _)) = entries.last() else { break };
            next = last + 1;
            for entry in entries {
                writer.put(entry, EarlierEntry::Nothing)?;
            }
            if self.changes.has_ended() {
                return Ok(ControlFlow::Break(()));
            }
        }
        writer.commit()?;
        position.publish(shown.map_or(0, |(position, _)| position));
        Ok(ControlFlow::Continue(()))
    }

    /// Indexes changes.
    fn follow(
        &self,
        live: &Weak<Live<Catalogue>>,
        writer: &mut Writer,
        position: &Feed,
    ) -> Result<(), TantivyError> {
        loop {
            let mut call = self.changes.wait(LOOK);
            if call == IndexerCall::Changed {
                call = self.changes.pause(GATHER);
            }
            let Some(live) = there(live) else { return Ok(()) };
            let Some(folded) = live.folded() else { return Ok(()) };
            match call {
                IndexerCall::End => return Ok(()),
                IndexerCall::Idle => writer.tidy()?,
                IndexerCall::Changed | IndexerCall::Wanted => {
                    self.changes.begin();
                    // Before the changes are taken: those up to there have been marked.
                    let up_to = live.position();
                    let changed = self.changes.take();
                    round(folded, writer, &changed)?;
                    self.changes.finish();
                    position.publish(up_to);
                }
            }
        }
    }
}

/// A view, as long as its log exists.
fn there(live: &Weak<Live<Catalogue>>) -> Option<Arc<Live<Catalogue>>> {
    live.upgrade().filter(|live| !live.is_closed())
}

/// Indexes the current state of items.
fn round(folded: &Folded, writer: &mut Writer, changed: &[ItemId]) -> Result<(), TantivyError> {
    for some in changed.chunks(AT_A_TIME) {
        let entries: Vec<_> = {
            let state = folded.read();
            some.iter()
                .map(|id| writer.entry(*id, state.item(*id).and_then(ItemText::of)))
                .collect()
        };
        // Not under the lock: this may wait for earlier entries.
        for entry in entries {
            writer.put(entry, EarlierEntry::Perhaps)?;
        }
    }
    if changed.is_empty() { Ok(()) } else { writer.commit() }
}
