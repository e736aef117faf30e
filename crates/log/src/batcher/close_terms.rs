//! What the owner of a batcher that closes and its flusher agree on: how long there is, and that it
//! is over.

use crate::threads::{lock, now_us};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Time for a flusher that has noticed that there is none left.
const GRACE_US: u64 = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CloseTerms {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// When closing began, µs.
    since_us: Option<u64>,
    /// Nothing is stored after this moment, µs.
    until_us: Option<u64>,
    /// The flusher has let go of its sink, and its thread does nothing more.
    gone: bool,
}

/// What became of the flusher of a batcher that was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a flusher that is still at work may still store something"]
pub enum CloseOutcome {
    /// Its thread has ended: nothing more will be stored.
    Ended,
    /// Its sink has not returned in time, and may still store what it was given. The thread ends
    /// when it does; nobody waits for it.
    SinkAtWork,
}

impl CloseTerms {
    /// Closing begins now; nothing is stored after `patience`, if that is given. Of several the
    /// shortest counts.
    pub(super) fn begin(&self, patience: Option<Duration>) {
        let now_us = now_us();
        let mut state = lock(&self.state);
        state.since_us.get_or_insert(now_us);
        let until_us = patience.map(|patience| {
            now_us.saturating_add(u64::try_from(patience.as_micros()).unwrap_or(u64::MAX))
        });
        state.until_us = state.until_us.into_iter().chain(until_us).min();
        drop(state);
        self.changed.notify_all();
    }

    /// How long has been closing.
    pub(super) fn closing_for(&self) -> Option<Duration> {
        let since_us = lock(&self.state).since_us?;
        Some(Duration::from_micros(now_us().saturating_sub(since_us)))
    }

    /// What is left, if there is a limit.
    pub(super) fn left(&self) -> Option<Duration> {
        left(lock(&self.state).until_us)
    }

    /// Whether nothing is to be stored any more.
    pub(super) fn are_over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// The flusher has ended.
    pub(super) fn set_gone(&self) {
        lock(&self.state).gone = true;
        self.changed.notify_all();
    }

    /// Waits until the flusher has ended, as long as there is time, and a moment longer.
    pub(super) fn wait(&self) -> CloseOutcome {
        let mut state = lock(&self.state);
        loop {
            state = match (state.gone, left(state.until_us.map(|us| us.saturating_add(GRACE_US)))) {
                (true, _) => return CloseOutcome::Ended,
                (false, Some(Duration::ZERO)) => return CloseOutcome::SinkAtWork,
                (false, Some(left)) => match self.changed.wait_timeout(state, left) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                },
                (false, None) => match self.changed.wait(state) {
                    Ok(state) => state,
                    Err(poisoned) => poisoned.into_inner(),
                },
            };
        }
    }
}

fn left(until_us: Option<u64>) -> Option<Duration> {
    until_us.map(|until_us| Duration::from_micros(until_us.saturating_sub(now_us())))
}
