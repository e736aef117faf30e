//! A signal that stops background threads of a test.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Also set when dropped, so that the threads of a failing test end.
#[derive(Default)]
pub struct StopSignal(AtomicBool);

impl StopSignal {
    pub fn is_set(&self) -> bool {
        self.0.load(SeqCst)
    }

    /// Sets it at the end of the caller's scope, also on panic.
    pub fn at_the_end(&self) -> AtTheEnd<'_> {
        AtTheEnd(self)
    }
}

pub struct AtTheEnd<'a>(&'a StopSignal);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, SeqCst);
    }
}
