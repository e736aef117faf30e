//! Items that have changed and are not indexed yet: one bit per item, so there is room for all.

use crate::view::ItemId;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Changes {
    waiting: Mutex<PendingItems>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PendingItems {
    items: Bits,
    /// Whether a caller waits for the next round.
    is_wanted: bool,
    /// Whether a round is in progress: its items are not searchable yet.
    is_busy: bool,
    has_ended: bool,
}

/// What wakes the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexerCall {
    /// Items have changed.
    Changed,
    /// A caller waits until they are indexed.
    Wanted,
    /// Nothing for a while.
    Idle,
    /// The room is closed.
    End,
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, PendingItems> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks an item. Called on the fold's thread: it takes nanoseconds.
    pub(super) fn add(&self, item: ItemId) {
        let mut waiting = self.lock();
        let is_first = waiting.items.is_empty();
        waiting.items.set(item);
        drop(waiting);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Requests a round now.
    pub(super) fn want(&self) {
        self.lock().is_wanted = true;
        self.changed.notify_one();
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_one();
    }

    /// Whether the room is closed.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Whether every marked item is searchable.
    pub(super) fn is_quiet(&self) -> bool {
        let waiting = self.lock();
        waiting.items.is_empty() && !waiting.is_busy
    }

    /// Waits until there is something to do, at most this long.
    pub(super) fn wait(&self, most: Duration) -> IndexerCall {
        self.call(most, |waiting| !waiting.items.is_empty())
    }

    /// Waits this long, or until a round is requested.
    pub(super) fn pause(&self, pause: Duration) -> IndexerCall {
        self.call(pause, |_| false)
    }

    fn call(&self, most: Duration, is_called: impl Fn(&PendingItems) -> bool) -> IndexerCall {
        let is_idle = |waiting: &mut PendingItems| {
            !(waiting.has_ended || waiting.is_wanted || is_called(waiting))
        };
        let waited = self.changed.wait_timeout_while(self.lock(), most, is_idle);
        let (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match () {
            () if waiting.has_ended => IndexerCall::End,
            () if waiting.is_wanted => IndexerCall::Wanted,
            () if !waiting.items.is_empty() => IndexerCall::Changed,
            () => IndexerCall::Idle,
        }
    }

    /// Starts a round; returns the waiting callers.
    pub(super) fn begin(&self) {
        let mut waiting = self.lock();
        waiting.is_wanted = false;
        waiting.is_busy = true;
    }

    /// The changed items, in order.
    pub(super) fn take(&self) -> Vec<ItemId> {
        std::mem::take(&mut self.lock().items).into_items()
    }

    /// The round is searchable.
    pub(super) fn finish(&self) {
        self.lock().is_busy = false;
    }
}

/// A set of items.
#[derive(Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, item: ItemId) {
        let at = item as usize / 64;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (item % 64);
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn into_items(self) -> Vec<ItemId> {
        let mut items = Vec::new();
        for (at, mut word) in self.0.into_iter().enumerate() {
            while word != 0 {
                items.push((at * 64) as ItemId + word.trailing_zeros());
                word &= word - 1;
            }
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_given_once_and_in_order() {
        let changes = Changes::default();
        assert!(changes.is_quiet());
        assert_eq!(changes.wait(Duration::ZERO), IndexerCall::Idle);
        let items = [70, 3, 64, 1_000_000, 3, 63, 0, 70, ItemId::MAX >> 8];
        items.iter().for_each(|item| changes.add(*item));
        assert_eq!(changes.wait(Duration::from_secs(60)), IndexerCall::Changed);
        changes.begin();
        assert_eq!(changes.take(), [0, 3, 63, 64, 70, 1_000_000, ItemId::MAX >> 8]);
        assert!(!changes.is_quiet(), "they are not shown yet");
        changes.finish();
        assert!(changes.is_quiet());
        assert!(changes.take().is_empty());
    }

    #[test]
    fn a_waiter_ends_a_pause_and_the_end_ends_everything() {
        let changes = Changes::default();
        changes.want();
        assert_eq!(changes.pause(Duration::from_secs(60)), IndexerCall::Wanted);
        changes.begin();
        assert_eq!(changes.pause(Duration::ZERO), IndexerCall::Idle);
        changes.end();
        assert_eq!(changes.wait(Duration::from_secs(60)), IndexerCall::End);
    }
}
