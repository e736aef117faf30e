//! How many of something somebody has at a time. Only those who have any are remembered.

use super::client::Key;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many of something each client has, and may have.
#[derive(Debug, Clone)]
pub(crate) struct Concurrent {
    most: u32,
    counts: Arc<Mutex<HashMap<Key, u32>>>,
}

/// One of those that a client has, until it is dropped.
#[derive(Debug)]
#[must_use = "what is dropped is given back"]
pub(crate) struct Held {
    key: Key,
    of: Concurrent,
}

impl Concurrent {
    /// At most so many each.
    pub(crate) fn new(most: u32) -> Concurrent {
        Concurrent { most, counts: Arc::default() }
    }

    /// Most that a client may have.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Another one for this client; `None`: it has as many as it may.
    pub(crate) fn hold(&self, key: Key) -> Option<Held> {
        let mut counts = self.lock();
        let count = counts.entry(key).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Held { key, of: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, u32>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut counts = self.of.lock();
        let left = counts.get(&self.key).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            counts.remove(&self.key);
        } else {
            counts.insert(self.key, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Keys;
    use super::*;

    #[test]
    fn each_has_as_many_as_it_may_and_what_ends_is_given_back() {
        let (keys, concurrent) = (Keys::default(), Concurrent::new(2));
        let [ann, bob] = ["ann", "bob"].map(|name| keys.of_account(name));
        let first = concurrent.hold(ann).expect("room");
        let second = concurrent.hold(ann).expect("room");
        assert!(concurrent.hold(ann).is_none());
        let other = concurrent.hold(bob).expect("others have theirs");
        drop(first);
        let third = concurrent.hold(ann).expect("room again");
        assert!(concurrent.hold(ann).is_none());
        drop((second, third, other));
        assert!(concurrent.lock().is_empty(), "who has none is not remembered");
    }
}
