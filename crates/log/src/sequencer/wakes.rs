//! Wake-ups deferred until the committer's lock is released: the code that a wake-up runs must not
//! delay others, and may itself be another turn of the log.

use super::Sequencer;
use std::task::Waker;

use crate::threads::lock;

/// Changes while the committer was locked, whose waiters have not been woken. Feeds know about
/// moves of the head, of a place, and of the number of role changes.
#[derive(Debug, Default)]
pub(crate) struct OwedWakes {
    /// Waiters for leases that have ended.
    pub(super) leases: Vec<Waker>,
    /// News for waiters for a place.
    pub(super) places: PlaceNews,
}

/// Events other than reached places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum PlaceNews {
    #[default]
    None,
    /// The role has changed.
    OtherRole,
    /// No further place will ever be reached.
    LastRole,
}

impl Sequencer {
    /// Performs the deferred wake-ups. Called without a lock held.
    pub(super) fn wake_owed(&self) {
        if self.limits.settles_at_once {
            // A log of files has one role, and no places.
            return;
        }
        let owed = std::mem::take(&mut *lock(&self.owed_wakes));
        owed.leases.into_iter().for_each(Waker::wake);
        self.role_changes.wake_passed();
        match owed.places {
            PlaceNews::None => self.places.wake_passed(),
            PlaceNews::OtherRole => self.places.rouse(),
            PlaceNews::LastRole => self.places.close(),
        }
        if let Some(confirmations) = &self.confirmations {
            confirmations.wake();
        }
    }
}
