//! Tells threads that go on until it is enough.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Set when this goes, too: threads of a test that fails end as well.
#[derive(Default)]
pub struct Done(AtomicBool);

impl Done {
    pub fn is_set(&self) -> bool {
        self.0.load(SeqCst)
    }

    /// Sets it at the end of the caller's scope, however that comes.
    pub fn at_the_end(&self) -> AtTheEnd<'_> {
        AtTheEnd(self)
    }
}

pub struct AtTheEnd<'a>(&'a Done);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, SeqCst);
    }
}
