//! A moment in the life of all producers, to wait until everything before it is stored.
//!
//! It is kept as a place in each partition that held something unstored then. So
//! what it waits for is what a [`Receipt`](super::Receipt) waits for, in each of
//! them: that the flusher has given back the room, which it does only when the
//! sink has stored what was there. Neither the producers nor the flusher keep
//! anything for it.

use super::PushError;
use super::shared::{Link, Shared};
use std::sync::Arc;

/// A moment: everything pushed to a [`Batcher`](super::Batcher) before it can be waited for with
/// [`poll_stored`](super::Batcher::poll_stored).
#[derive(Debug, Clone)]
pub struct Mark {
    /// Partitions with something unstored, each with the place behind the last of it.
    unstored: Vec<(Arc<Link>, u64)>,
}

impl Mark {
    /// The moment of this call, given every producer that may have something unstored.
    pub(super) fn of(live: &[Arc<Link>]) -> Mark {
        let places = live.iter().map(|link| (link, link.gauge.tail()));
        let unstored = places.filter(|&(link, tail)| link.gauge.released() < tail);
        Mark { unstored: unstored.map(|(link, tail)| (Arc::clone(link), tail)).collect() }
    }

    fn is_stored(&self) -> bool {
        self.unstored.iter().all(|(link, tail)| link.gauge.released() >= *tail)
    }

    /// Whether everything before it is stored, or never will be; `None` while that is open.
    pub(super) fn outcome(&self, shared: &Shared) -> Option<Result<(), PushError>> {
        // Asked first: what is not stored when the flusher has ended never will be.
        let ended = shared.has_ended();
        if self.is_stored() {
            return Some(Ok(()));
        }
        ended.then(|| Err(shared.closed()))
    }
}
