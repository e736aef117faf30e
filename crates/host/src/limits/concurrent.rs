//! Concurrent use per client. Only clients with any use are stored.

use super::client::Key;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The current use of each client, and its limit.
#[derive(Debug, Clone)]
pub(crate) struct Concurrent {
    most: u64,
    counts: Arc<Mutex<HashMap<Key, u64>>>,
}

/// A part of a client's use, released when dropped.
#[derive(Debug)]
#[must_use = "dropping it returns the share to the quota"]
pub(crate) struct ConcurrentShare {
    key: Key,
    amount: u64,
    of: Concurrent,
}

impl Concurrent {
    /// A limit of `most` per client.
    pub(crate) fn new(most: u64) -> Concurrent {
        Concurrent { most, counts: Arc::default() }
    }

    /// The limit per client.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// One more for this client; `None` if it is at its limit.
    pub(crate) fn hold(&self, key: Key) -> Option<ConcurrentShare> {
        let mut held = self.nothing(key);
        (held.set(1) == Room::Found).then_some(held)
    }

    /// An empty use of a client, to be [`set`](Held::set).
    pub(crate) fn nothing(&self, key: Key) -> ConcurrentShare {
        ConcurrentShare { key, amount: 0, of: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is room for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Found,
    /// Nothing has changed.
    None,
}

impl ConcurrentShare {
    /// Sets this part to an amount; a smaller amount always fits.
    pub(crate) fn set(&mut self, amount: u64) -> Room {
        let mut counts = self.of.lock();
        let others = counts.get(&self.key).map_or(0, |count| count.saturating_sub(self.amount));
        let count = others.saturating_add(amount);
        if amount > self.amount && count > self.of.most {
            return Room::None;
        }
        if count == 0 {
            counts.remove(&self.key);
        } else {
            counts.insert(self.key, count);
        }
        self.amount = amount;
        Room::Found
    }
}

impl Drop for ConcurrentShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Keys;
    use super::*;
    use crate::identity::Holder;

    #[test]
    fn each_has_as_many_as_it_may_and_what_ends_is_given_back() {
        let (keys, concurrent) = (Keys::default(), Concurrent::new(2));
        let [ann, bob] = ["ann", "bob"].map(|name| keys.of_holder(Holder::Subject(name)));
        let first = concurrent.hold(ann).expect("room");
        let second = concurrent.hold(ann).expect("room");
        assert!(concurrent.hold(ann).is_none());
        let other = concurrent.hold(bob).expect("others have theirs");
        drop(first);
        let third = concurrent.hold(ann).expect("room again");
        assert!(concurrent.hold(ann).is_none());
        let mut large = concurrent.nothing(bob);
        assert_eq!(
            (large.set(1), large.set(2), large.set(1)),
            (Room::Found, Room::None, Room::Found)
        );
        assert!(concurrent.hold(bob).is_none(), "one, and one more");
        drop((second, third, other, large));
        assert!(concurrent.lock().is_empty(), "who has none is not remembered");
    }
}
