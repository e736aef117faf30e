//! Asking to be told, without a lock: one side asks and then looks once more,
//! the other changes something and then looks whether it was asked.

use super::sync::{AtomicBool, Ordering, fence};

/// A question that is answered once.
#[derive(Debug)]
pub(super) struct Wanted {
    asked: AtomicBool,
}

impl Wanted {
    pub(super) fn new() -> Wanted {
        Wanted { asked: AtomicBool::new(false) }
    }

    /// Asks. What the asker then finds unchanged will be followed by an answer.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
        // Pairs with the fence in `take`: either the asker sees what was changed
        // before that, or the other side sees the question.
        fence(Ordering::SeqCst);
    }

    /// Whether it was asked since the last time. To be called after the change.
    pub(super) fn take(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::AcqRel)
    }
}
