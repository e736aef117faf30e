//! Wakes a loop that waits in epoll, from any thread.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// The next signal wakes the loop.
const ARMED: u8 = 0;
/// The loop is awake and looks whether it was signalled before it waits.
const MUTED: u8 = 1;
/// It was signalled; another signal would be redundant.
const SIGNALLED: u8 = 2;

/// Wakes one loop. Watch it edge-triggered: then nothing needs to be read from it.
pub(crate) struct Wakeup {
    event: OwnedFd,
    state: AtomicU8,
}

impl Wakeup {
    /// Not signalled yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn new() -> io::Result<Wakeup> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wakeup { event, state: AtomicU8::new(ARMED) })
    }

    /// Wakes the loop.
    pub(crate) fn wake(&self) {
        if self.state.swap(SIGNALLED, AcqRel) == ARMED {
            // Fails only after 2^64 unread signals.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// From here on a ring wakes again. Call it before checking what was signalled for.
    pub(crate) fn rearm(&self) {
        self.state.swap(ARMED, AcqRel);
    }

    /// From here on a ring takes no system call, until [`unmute`](Self::unmute), which the loop
    /// calls before it waits.
    pub(crate) fn mute(&self) {
        let _ = self.state.compare_exchange(ARMED, MUTED, AcqRel, Acquire);
    }

    /// Whether it was rung since the loop last rearmed it; if not, a ring wakes again.
    pub(crate) fn unmute(&self) -> bool {
        self.state.compare_exchange(MUTED, ARMED, AcqRel, Acquire).is_err()
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
