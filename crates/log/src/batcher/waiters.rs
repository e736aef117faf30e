//! Tasks that wait for the flusher to have stored something.

use super::sync::{Mutex, lock};
use super::wanted::Wanted;
use std::task::Waker;

/// Tasks kept waiting; over it all are woken, so that those given up are forgotten
/// and those that still wait register again.
const WAKERS: usize = 16 << 10;

/// Any number of tasks on one side, the flusher on the other, which takes the lock only if there are any.
#[derive(Debug)]
pub(super) struct Waiters {
    wanted: Wanted,
    wakers: Mutex<Vec<Waker>>,
}

impl Waiters {
    pub(super) fn new() -> Waiters {
        Waiters { wanted: Wanted::new(), wakers: Mutex::new(Vec::new()) }
    }

    /// Registers a task once. What it then finds unchanged will be followed by its waking.
    pub(super) fn register(&self, waker: &Waker) {
        let mut given_up = Vec::new();
        let mut wakers = lock(&self.wakers);
        // A task that is polled often meanwhile must not pile up.
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            if wakers.len() >= WAKERS {
                given_up = std::mem::take(&mut *wakers);
            }
            wakers.push(waker.clone());
        }
        // Under the lock: who takes the question finds the waker when it gets the lock. Also for
        // one known already, because what it finds must be newer than the question.
        self.wanted.ask();
        drop(wakers);
        given_up.into_iter().for_each(Waker::wake);
    }

    /// Wakes every task registered. To be called after the change they wait for.
    pub(super) fn wake_all(&self) {
        if self.wanted.take() {
            let wakers = std::mem::take(&mut *lock(&self.wakers));
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}
