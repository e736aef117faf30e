//! The progress of an import, for its last message at Ctrl-C.

use crate::numbers::{counted, grouped};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stored and pending events, shared with the thread that waits for Ctrl-C.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransferStatus(Arc<Mutex<Figures>>);

#[derive(Debug, Default)]
struct Figures {
    /// Events that the server has said are in the log.
    stored: u64,
    /// Lines that have been sent, and were not answered yet.
    under_way: u64,
}

impl TransferStatus {
    /// This many lines are about to be sent.
    pub(crate) fn sends(&self, lines: u64) {
        self.lock().under_way = lines;
    }

    /// The pending part was answered: now this many events are in the log.
    pub(crate) fn settles(&self, stored: u64) {
        *self.lock() = Figures { stored, under_way: 0 };
    }

    /// The last words when the process ends here. Nothing is sent afterwards, so that they stay
    /// true.
    pub(crate) fn last_words(&self) -> String {
        let figures = self.lock();
        let words = figures.words();
        // The sender waits for it, until the process has ended.
        std::mem::forget(figures);
        words
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Figures {
    fn words(&self) -> String {
        let Figures { stored, under_way } = *self;
        let are = if stored == 1 { "is" } else { "are" };
        let events = counted(stored, "event", "events");
        let more = match under_way {
            0 => String::new(),
            1 => ", and 1 line in flight may be as well".to_owned(),
            _ => {
                let lines = grouped(under_way);
                format!(", and up to {lines} lines in flight may be as well")
            }
        };
        format!(
            "Interrupted: {events} {are} known to be stored{more}. Run the same command again to continue; it \
             adds nothing twice."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_answered_may_be_stored() {
        let words = |stored, under_way| Figures { stored, under_way }.words();
        let none = words(0, 0);
        assert!(none.starts_with("Interrupted: 0 events are known to be stored. Run"), "{none}");
        let one = words(1, 1);
        assert!(one.contains("1 event is known to be stored, and 1 line in flight"), "{one}");
        let many = words(2_000, 70_000);
        assert!(
            many.contains("2,000 events are known to be stored, and up to 70,000 lines"),
            "{many}"
        );
    }
}
