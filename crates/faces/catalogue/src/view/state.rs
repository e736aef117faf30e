//! The fold of a catalogue, behind one lock: every answer shows the catalogue at one position.
//!
//! Readers share the lock; the fold takes it exclusively for one event at a time. Renderings are
//! stored with their data and dropped by the event that changes it, so they are never older than
//! the rest.

use super::event::{ItemId, TopicId};
use super::item::{Item, KeptRendering, Rendering};
#[cfg(feature = "search")]
use super::listeners::ChangesListener;
use super::listeners::Listeners;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use wellspring_types::Position;

/// Most bytes of stored renderings of items: beyond that, answers are rendered each time.
const MOST_RENDERED_BYTES: usize = 256 << 20;
/// Stored answers to topic searches, valid until the next change, and their total bytes.
const MOST_SEARCHES: usize = 1_000;
const MOST_SEARCH_BYTES: usize = 16 << 20;

/// The reading side.
#[derive(Default)]
pub(crate) struct Folded {
    /// The last event that changed anything.
    changed_at: AtomicU64,
    state: RwLock<State>,
    listeners: Listeners,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) name: Box<str>,
    pub(crate) added_at: Position,
    pub(crate) changed_at: Position,
    /// Its items, including withdrawn ones.
    pub(crate) items: BTreeSet<ItemId>,
}

/// A catalogue.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// By id, from 1. Boxed, so that growing only moves pointers and readers wait briefly.
    #[allow(clippy::vec_box)]
    pub(super) items: Vec<Box<Item>>,
    /// The last event that added an item.
    pub(super) items_at: Position,
    /// By id, from 1.
    pub(super) topics: Vec<Topic>,
    /// The last event that added or renamed a topic.
    pub(super) topics_at: Position,
    pub(super) skus: HashMap<Box<str>, ItemId>,
    pub(super) topic_names: HashMap<Box<str>, TopicId>,
    /// The last event that changed anything.
    pub(super) changed_at: Position,
    /// Bytes of renderings of items.
    rendered_bytes: AtomicUsize,
    all: OnceLock<Arc<[u8]>>,
    searches: Mutex<Searches>,
}

#[derive(Debug, Default)]
struct Searches {
    found: HashMap<Box<str>, Arc<[u8]>>,
    bytes: usize,
}

fn place(id: u32) -> Option<usize> {
    usize::try_from(id).ok()?.checked_sub(1)
}

impl State {
    /// An item, withdrawn or not.
    pub(crate) fn item(&self, id: ItemId) -> Option<&Item> {
        self.items.get(place(id)?).map(|item| &**item)
    }

    pub(super) fn item_mut(&mut self, id: ItemId) -> Option<&mut Item> {
        self.items.get_mut(place(id)?).map(|item| &mut **item)
    }

    pub(crate) fn topic(&self, id: TopicId) -> Option<&Topic> {
        self.topics.get(place(id)?)
    }

    pub(super) fn topic_mut(&mut self, id: TopicId) -> Option<&mut Topic> {
        self.topics.get_mut(place(id)?)
    }

    /// All topics with their ids.
    pub(crate) fn topics(&self) -> impl ExactSizeIterator<Item = (TopicId, &Topic)> {
        self.topics.iter().enumerate().map(|(at, topic)| (at as TopicId + 1, topic))
    }

    /// Items with their ids, starting with `from`, including withdrawn ones.
    pub(crate) fn items_from(&self, from: ItemId) -> impl Iterator<Item = (ItemId, &Item)> {
        let from = place(from.max(1)).unwrap_or(usize::MAX).min(self.items.len());
        let items = self.items[from..].iter().enumerate();
        items.map(move |(at, item)| ((from + at) as ItemId + 1, &**item))
    }

    /// Number of items, including withdrawn ones.
    pub(crate) fn item_count(&self) -> usize {
        self.items.len()
    }

    /// The item of a SKU.
    pub(crate) fn item_of_sku(&self, sku: &str) -> Option<ItemId> {
        self.skus.get(sku).copied()
    }

    /// The topic of a name.
    pub(crate) fn topic_of_name(&self, name: &str) -> Option<TopicId> {
        self.topic_names.get(name).copied()
    }

    /// The last event that changed anything.
    pub(crate) fn changed_at(&self) -> Position {
        self.changed_at
    }

    /// The last event that changed an item's answers: its own, or its topic's name.
    pub(crate) fn item_changed_at(&self, item: &Item) -> Position {
        let topic = self.topic(item.topic).map_or(0, |topic| topic.changed_at);
        item.changed_at.max(topic)
    }

    /// The rendering of an item, made on demand. It is stored while there is room.
    pub(crate) fn rendered<'a>(
        &'a self,
        item: &'a Item,
        rendering: Rendering,
        render: impl FnOnce() -> Vec<u8>,
    ) -> Cow<'a, [u8]> {
        let topic_changed_at = self.topic(item.topic).map_or(0, |topic| topic.changed_at);
        let slot = item.rendered.of(rendering);
        if let Some(rendered) = slot.get() {
            return if rendered.topic_changed_at == topic_changed_at {
                Cow::Borrowed(&rendered.bytes)
            } else {
                Cow::Owned(render())
            };
        }
        let bytes = render();
        if self.rendered_bytes.fetch_add(bytes.len(), Ordering::Relaxed) > MOST_RENDERED_BYTES {
            self.rendered_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
            return Cow::Owned(bytes);
        }
        let rendered = KeptRendering { topic_changed_at, bytes: bytes.into_boxed_slice() };
        if let Err(late) = slot.set(rendered) {
            self.rendered_bytes.fetch_sub(late.bytes.len(), Ordering::Relaxed);
        }
        slot.get().map_or(Cow::Borrowed(&[]), |rendered| Cow::Borrowed(&rendered.bytes))
    }

    /// Records that renderings of this size are gone.
    pub(super) fn dropped(&mut self, bytes: usize) {
        *self.rendered_bytes.get_mut() -= bytes;
    }

    /// The rendering of everything, made on demand.
    pub(crate) fn rendered_all(&self, render: impl FnOnce() -> Vec<u8>) -> Arc<[u8]> {
        Arc::clone(self.all.get_or_init(|| render().into()))
    }

    /// The stored answer to a search, if nothing has changed since.
    pub(crate) fn known_search(&self, word: &str) -> Option<Arc<[u8]>> {
        let searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.found.get(word).map(Arc::clone)
    }

    /// The answer to a search, stored until the next change.
    pub(crate) fn rendered_search(
        &self,
        word: &str,
        render: impl FnOnce() -> Vec<u8>,
    ) -> Arc<[u8]> {
        let found: Arc<[u8]> = render().into();
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = word.len() + found.len();
        if searches.found.len() == MOST_SEARCHES || searches.bytes + bytes > MOST_SEARCH_BYTES {
            *searches = Searches::default();
        }
        if bytes <= MOST_SEARCH_BYTES
            && searches.found.insert(word.into(), Arc::clone(&found)).is_none()
        {
            searches.bytes += bytes;
        }
        found
    }

    /// Records a change by an event.
    pub(super) fn changed(&mut self, position: Position) {
        self.changed_at = self.changed_at.max(position);
        self.all = OnceLock::new();
        let searches = self.searches.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !searches.found.is_empty() {
            *searches = Searches::default();
        }
    }
}

impl Folded {
    /// The fold of a snapshot.
    pub(super) fn of(state: State) -> Folded {
        let changed_at = AtomicU64::new(state.changed_at);
        Folded { changed_at, state: RwLock::new(state), listeners: Listeners::default() }
    }

    /// The current catalogue. The fold waits meanwhile: hold it only while rendering an answer.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        // Poisoned by a panic of the fold: the view has failed then, and reports it.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last event that changed anything; data read at the same number is still current.
    pub(crate) fn changed_at(&self) -> Position {
        self.changed_at.load(Ordering::Acquire)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a change. Call it under the lock.
    pub(super) fn publish(&self, state: &State) {
        self.changed_at.store(state.changed_at, Ordering::Release);
    }

    /// Registers a listener for items added or with a new description, called on the fold's thread.
    #[cfg(feature = "search")]
    pub(crate) fn listen(&self, listener: ChangesListener) {
        self.listeners.add(listener);
    }

    pub(super) fn tell(&self, item: ItemId) {
        self.listeners.tell(item);
    }
}
