//! Limits on how many refusals are kept one by one: guessing passwords must not fill the disk.

use crate::limits::{Limiter, Rate};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::PoisonError;

/// Refusals kept per minute and address, and the largest burst.
pub(super) const OF_ADDRESS: NonZeroU32 = NonZeroU32::new(20).expect("not 0");
/// Refusals kept per minute in all: at some 400 bytes each at most 35 MB a day.
pub(super) const OF_ALL: NonZeroU32 = NonZeroU32::new(60).expect("not 0");

/// The number of refusals that were not kept one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnkeptRefusals {
    pub(super) count: u64,
    /// Time since the first of them, rounded up.
    pub(super) seconds: u64,
}

/// The limits, and the count of refusals beyond them.
pub(super) struct Refusals {
    of_address: Limiter,
    of_all: Limiter,
    /// Their number, and the time of the first.
    untold: Mutex<(u64, u64)>,
}

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals {
            of_address: Limiter::new(Rate::per_minute(OF_ADDRESS)),
            of_all: Limiter::new(Rate::per_minute(OF_ALL)),
            untold: Mutex::default(),
        }
    }
}

impl Refusals {
    /// Whether a refusal of `client` may be kept now (`now_us` is on the monotonic clock); if not,
    /// it is counted.
    pub(super) fn may_keep(&self, client: Option<IpAddr>, now_us: u64) -> bool {
        // The address first: one client's flood must not use up the share of all.
        let may = self.of_address.take(client, 1, now_us).is_ok()
            && self.of_all.take(None, 1, now_us).is_ok();
        if !may {
            let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
            let (count, since_us) = *untold;
            *untold = (count + 1, if count == 0 { now_us } else { since_us });
        }
        may
    }

    /// The refusals not kept since the last call, if any.
    pub(super) fn take_untold(&self, now_us: u64) -> Option<UnkeptRefusals> {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, since_us) = std::mem::take(&mut *untold);
        let seconds = now_us.saturating_sub(since_us).div_ceil(1_000_000);
        (count > 0).then_some(UnkeptRefusals { count, seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> Option<IpAddr> {
        Some([192, 0, 2, number].into())
    }

    #[test]
    fn a_flood_of_one_address_leaves_room_for_others() {
        let refusals = Refusals::default();
        let kept = |client, now_us| {
            (0..10_000).filter(|_| refusals.may_keep(address(client), now_us)).count()
        };
        assert_eq!(kept(1, 1_000_000), 20);
        assert_eq!(kept(2, 1_500_000), 20);
        let often = refusals.take_untold(3_000_000);
        assert_eq!(often, Some(UnkeptRefusals { count: 19_960, seconds: 2 }));
        assert_eq!(refusals.take_untold(3_000_000), None, "told once");
    }

    #[test]
    fn a_flood_of_many_addresses_is_bounded_too() {
        let refusals = Refusals::default();
        let flood = |now_us| {
            let clients = (0..10_000u32).map(|n| IpAddr::from(n.to_be_bytes()));
            clients.filter(|&client| refusals.may_keep(Some(client), now_us)).count()
        };
        assert_eq!(flood(0), 60);
        assert_eq!(flood(10_000_000), 10, "one a second comes back");
    }
}
