//! Wakes a loop that waits in epoll, from any thread.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes one loop. To be watched edge-triggered: then nothing has to be read from it.
pub(crate) struct Bell {
    event: OwnedFd,
    /// Whether it rang since the loop last listened: ringing again would only cost.
    rung: AtomicBool,
}

impl Bell {
    /// A silent one.
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
            // Fails only when 2^64 rings were not listened to.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// From here on a ring wakes again. To be called before looking at what was rung for.
    pub(crate) fn listen(&self) {
        self.rung.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
