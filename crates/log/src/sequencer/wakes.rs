//! Who is to be woken once the committer's lock is free: what somebody does who is woken, on the
//! thread that wakes, is not for others to wait for, and it may be another turn of the log.

use super::Sequencer;
use std::task::Waker;

use crate::threads::lock;

/// What changed while the committer was locked, and nobody was woken for. A move of the head, of a
/// place, or of the number of role changes is seen by its feed.
#[derive(Debug, Default)]
pub(crate) struct OwedWakes {
    /// Those who waited for a lease that is no more.
    pub(super) leases: Vec<Waker>,
    /// What those who wait for a place have to look at.
    pub(super) places: PlaceNews,
}

/// What has happened, besides places that were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum PlaceNews {
    /// Nothing.
    #[default]
    None,
    /// The role has changed.
    OtherRole,
    /// No other place will ever be reached.
    LastRole,
}

impl Sequencer {
    /// Wakes whom the committer has not. With no lock held.
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
