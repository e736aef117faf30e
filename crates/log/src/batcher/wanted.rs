//! A lock-free request for notification: one side asks and then checks once more, the other changes
//! something and then checks whether it was asked.

use super::sync::{AtomicBool, Ordering, fence};

/// A request that is answered once.
#[derive(Debug)]
pub(super) struct WakeRequest {
    asked: AtomicBool,
}

impl WakeRequest {
    pub(super) fn new() -> WakeRequest {
        WakeRequest { asked: AtomicBool::new(false) }
    }

    /// Asks. A change after the asker's next check will be followed by an answer.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
        // Pairs with the fence in `take`: either the asker sees the earlier change, or the other
        // side sees the request.
        fence(Ordering::SeqCst);
    }

    /// Whether it was asked since the last call. To be called after the change.
    pub(super) fn take(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::AcqRel)
    }
}
