//! Requests that wait for accounts, before anybody knows whose they are: few of one address.

use crate::limits::{Concurrent, ConcurrentShare, Keys};
use crate::wire::problem::{self, Problem};
use std::net::IpAddr;

/// Requests of one address that may wait at a time. An application may have many behind one
/// address; each takes some 17 KB of HTTP/2.
const PER_ADDRESS: u64 = 256;

/// The places, by address.
#[derive(Debug)]
pub(crate) struct WaitingPlaces {
    held: Concurrent,
    addresses: Keys,
}

impl WaitingPlaces {
    pub(super) fn new() -> WaitingPlaces {
        WaitingPlaces { held: Concurrent::new(PER_ADDRESS), addresses: Keys::default() }
    }

    /// A place for a request of this address, until dropped.
    ///
    /// # Errors
    /// 503: its address has as many as it may have.
    pub(crate) fn hold(&self, client: Option<IpAddr>) -> Result<ConcurrentShare, Box<Problem>> {
        self.held.hold(self.addresses.of_address(client)).ok_or_else(|| {
            problem::TOO_MANY_WAITERS.because(format!(
                "{PER_ADDRESS} requests of this address wait for accounts already \
                 (Wellspring-Min-System-Position)"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_places_and_no_other_address_less() {
        let places = WaitingPlaces::new();
        let [one, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|address| Some(address.into()));
        let held: Vec<_> = (0..PER_ADDRESS).map(|_| places.hold(one).unwrap()).collect();
        let refused = places.hold(one).unwrap_err();
        assert_eq!(refused.kind.slug, "too-many-waiters");
        assert!(places.hold(other).is_ok());
        drop(held);
        assert!(places.hold(one).is_ok());
    }
}
