//! Listeners to items that were added or whose description changed: the search, where it is built
//! in.

use super::event::ItemId;
#[cfg(feature = "search")]
use std::sync::{Mutex, PoisonError};

/// Called for a changed item, on the fold's thread.
#[cfg(feature = "search")]
pub(crate) type ChangesListener = Box<dyn Fn(ItemId) -> ListenerState + Send>;

/// Whether a listener stays registered.
#[cfg(feature = "search")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenerState {
    On,
    Over,
}

/// All listeners.
#[derive(Default)]
pub(super) struct Listeners {
    #[cfg(feature = "search")]
    listeners: Mutex<Vec<ChangesListener>>,
}

impl Listeners {
    #[cfg(feature = "search")]
    pub(super) fn add(&self, listener: ChangesListener) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// Notifies them of an item.
    #[cfg(feature = "search")]
    pub(super) fn tell(&self, item: ItemId) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener(item) == ListenerState::On);
    }

    /// Does nothing.
    #[cfg(not(feature = "search"))]
    pub(super) fn tell(&self, _item: ItemId) {}
}
