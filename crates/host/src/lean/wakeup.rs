//! Wakes a loop that waits in epoll, from any thread.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes one loop. Watch it edge-triggered: then nothing needs to be read from it.
pub(crate) struct Bell {
    event: OwnedFd,
    /// Whether it has rung since the loop last listened: ringing again would be wasted.
    rung: AtomicBool,
}

impl Bell {
    /// A silent bell.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn new() -> io::Result<Bell> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell { event, rung: AtomicBool::new(false) })
    }

    /// Wakes the loop.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // Fails only after 2^64 unheard rings.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// From here on a ring wakes again. Call it before checking what was rung for.
    pub(crate) fn listen(&self) {
        self.rung.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
