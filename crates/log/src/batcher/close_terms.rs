//! The deadline of a closing batcher, shared by its owner and its flusher, and the notification
//! that the flusher has ended.

use crate::threads::{lock, now_us};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Time for a flusher to end after it has noticed that the deadline has passed.
const GRACE_US: u64 = 100_000;

/// The shared state; see the module's documentation.
#[derive(Debug, Default)]
pub(super) struct CloseTerms {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// When closing began, µs.
    since_us: Option<u64>,
    /// The deadline after which nothing is stored, µs.
    until_us: Option<u64>,
    /// The flusher has dropped its sink, and its thread does nothing more.
    gone: bool,
}

/// The state of a closed batcher's flusher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a flusher that is still at work may still store something"]
pub enum CloseOutcome {
    /// Its thread has ended: nothing more will be stored.
    Ended,
    /// Its sink has not returned in time and may still store what it was given. The thread ends
    /// when it does; nothing waits for it.
    SinkAtWork,
}

impl CloseTerms {
    /// Starts closing; nothing is stored after `patience`, if given. The shortest of several limits
    /// applies.
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

    /// Time since closing began.
    pub(super) fn closing_for(&self) -> Option<Duration> {
        let since_us = lock(&self.state).since_us?;
        Some(Duration::from_micros(now_us().saturating_sub(since_us)))
    }

    /// The time left, if there is a limit.
    pub(super) fn left(&self) -> Option<Duration> {
        left(lock(&self.state).until_us)
    }

    /// Whether the deadline has passed.
    pub(super) fn are_over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// Notes that the flusher has ended.
    pub(super) fn set_gone(&self) {
        lock(&self.state).gone = true;
        self.changed.notify_all();
    }

    /// Waits until the flusher has ended, at most until shortly after the deadline.
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
