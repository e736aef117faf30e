//! Unread answers over HTTP/2. The socket does not reveal them: a stream whose window stays closed
//! keeps its answer in memory while the connection looks healthy.

use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Answers are sent in pieces of this size, so that slow reading counts as progress: the default
/// size of a frame.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// The answers of a connection that may be unread.
#[derive(Default)]
pub(super) struct UnreadAnswers(Mutex<Vec<Entry>>);

struct Entry {
    answer: Arc<Progress>,
    still_for: Duration,
}

/// The state of an answer. Shared by its producer and its pieces in progress: while any of them
/// exists, some of it is unread.
#[derive(Default)]
pub(super) struct Progress {
    moved: AtomicBool,
    /// Its client has room for more than is available.
    waits_for_us: AtomicBool,
}

/// What has stalled for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Any answer.
    OfEach,
    /// All of them: the peer is a proxy, whose clients must not suffer for one of them.
    OfAll,
}

impl UnreadAnswers {
    /// Another answer, watched while the result lives.
    pub(super) fn begin(&self) -> Arc<Progress> {
        let answer = Arc::new(Progress::default());
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == entries.capacity() {
            entries.retain(Entry::is_alive);
            let alive = entries.len();
            // Another as many before the next check of all of them.
            entries.reserve(alive.max(4));
        }
        entries.push(Entry { answer: Arc::clone(&answer), still_for: Duration::ZERO });
        answer
    }

    /// How long answers have stalled, `tick` after the last check.
    pub(super) fn still_for(&self, tick: Duration, patience: Patience) -> Duration {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(Entry::is_alive);
        for Entry { answer, still_for } in entries.iter_mut() {
            let moved = answer.moved.swap(false, Relaxed);
            *still_for =
                if moved || answer.waits_for_us() { Duration::ZERO } else { *still_for + tick };
        }
        let still = entries.iter().map(|entry| entry.still_for);
        let still = match patience {
            Patience::OfEach => still.max(),
            Patience::OfAll => still.min(),
        };
        still.unwrap_or_default()
    }
}

impl Entry {
    fn is_alive(&self) -> bool {
        Arc::strong_count(&self.answer) > 1
    }
}

impl Progress {
    /// Records that its client had room for more; `waits_for_us`: and none was available.
    pub(super) fn asked(&self, waits_for_us: bool) {
        self.moved.store(true, Relaxed);
        self.waits_for_us.store(waits_for_us, Relaxed);
    }

    /// Whether everything sent has been read: then only the list and the producer hold it.
    fn waits_for_us(self: &Arc<Progress>) -> bool {
        self.waits_for_us.load(Relaxed) && Arc::strong_count(self) <= 2
    }

    /// A piece of it; dropping it is progress.
    pub(super) fn piece(self: &Arc<Progress>, bytes: Bytes) -> Bytes {
        struct Piece(Bytes, Arc<Progress>);

        impl AsRef<[u8]> for Piece {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl Drop for Piece {
            fn drop(&mut self) {
                self.1.moved.store(true, Relaxed);
            }
        }

        Bytes::from_owner(Piece(bytes, Arc::clone(self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(1);

    #[test]
    fn what_moves_is_read_and_what_waits_for_us_is_not_blamed_on_its_client() {
        let unread = UnreadAnswers::default();
        let look = || unread.still_for(TICK, Patience::OfEach).as_secs();
        let answer = unread.begin();
        assert_eq!([look(), look()], [1, 2], "nobody asked for it");
        answer.asked(false);
        let (first, second) = (answer.piece("one".into()), answer.piece("two".into()));
        assert_eq!([look(), look()], [0, 1]);
        drop(first);
        assert_eq!([look(), look()], [0, 1]);
        answer.asked(true);
        assert_eq!([look(), look()], [0, 1], "the second piece is under way");
        drop(second);
        assert_eq!([look(), look(), look()], [0, 0, 0], "there is no more");
        answer.asked(false);
        let last = answer.piece("three".into());
        drop(answer);
        assert_eq!([look(), look()], [0, 1], "given, but not read");
        drop(last);
        assert_eq!([look(), look()], [0, 0]);
    }

    #[test]
    fn one_client_of_a_proxy_does_not_end_the_others() {
        let unread = UnreadAnswers::default();
        let (_stuck, moving) = (unread.begin(), unread.begin());
        for _ in 0..5 {
            moving.asked(false);
            assert_eq!(unread.still_for(TICK, Patience::OfAll), Duration::ZERO);
        }
        assert_eq!(unread.still_for(TICK, Patience::OfEach), 6 * TICK);
        assert_eq!(unread.still_for(TICK, Patience::OfAll), 2 * TICK);
    }

    #[test]
    fn those_that_are_gone_are_forgotten_also_between_looks() {
        let unread = UnreadAnswers::default();
        let kept: Vec<_> =
            (0..100_000).filter_map(|n| Some(unread.begin()).filter(|_| n % 1_000 == 0)).collect();
        assert!(unread.0.lock().unwrap().capacity() < 8 * kept.len());
    }
}
