//! Wakes a loop that waits in epoll, from any thread.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes one loop. Watch it edge-triggered: then nothing needs to be read from it.
pub(crate) struct Wakeup {
    event: OwnedFd,
    /// Whether it was signalled since the loop last rearmed it; another signal would be redundant.
    signalled: AtomicBool,
}

impl Wakeup {
    /// Not signalled yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn new() -> io::Result<Wakeup> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wakeup { event, signalled: AtomicBool::new(false) })
    }

    /// Wakes the loop.
    pub(crate) fn wake(&self) {
        if !self.signalled.swap(true, Ordering::AcqRel) {
            // Fails only after 2^64 unread signals.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// From here on a ring wakes again. Call it before checking what was signalled for.
    pub(crate) fn rearm(&self) {
        self.signalled.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
