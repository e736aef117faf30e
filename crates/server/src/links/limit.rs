//! How many links one client may make: a bucket of tokens for each address.
//!
//! A bucket is one number, the moment at which it will be full again (the generic
//! cell rate algorithm, ITU-T I.371 annex A). A full bucket is the same as none, so
//! what is forgotten is, almost always, nothing.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

/// Addresses remembered in each of the two generations.
const GENERATION: usize = 32_768;
const MINUTE_NS: u64 = 60_000_000_000;

/// Who is limited: an IPv4 address, the first 64 bits of an IPv6 address (one customer has
/// at least that many), or all whose address is not known, together.
type Client = Option<IpAddr>;

/// The buckets of all clients, in bounded memory: the addresses seen longest ago are forgotten.
#[derive(Debug)]
pub(crate) struct Limiter {
    /// Time in which a token comes back, in ns.
    token_ns: u64,
    buckets: Mutex<Buckets>,
}

/// When each bucket will be full, in ns of the monotonic clock.
#[derive(Debug, Default)]
struct Buckets {
    young: HashMap<Client, u64>,
    old: HashMap<Client, u64>,
}

impl Limiter {
    /// Each client may take `per_minute` tokens at once, and as many again in every minute.
    pub(crate) fn new(per_minute: NonZeroU32) -> Limiter {
        let token_ns = MINUTE_NS / u64::from(per_minute.get());
        Limiter { token_ns, buckets: Mutex::default() }
    }

    /// Tokens in a minute.
    pub(crate) fn per_minute(&self) -> u64 {
        MINUTE_NS / self.token_ns
    }

    /// Takes a token of `client` at the moment `now_us` of the monotonic clock.
    ///
    /// # Errors
    /// There is none left; one comes back in so many seconds, at least 1.
    pub(crate) fn take(&self, client: Option<IpAddr>, now_us: u64) -> Result<(), u32> {
        let client = client.map(network);
        let now_ns = now_us.saturating_mul(1000);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full_ns = buckets.full_ns(&client).max(now_ns) + self.token_ns;
        let over_ns = (full_ns - now_ns).saturating_sub(MINUTE_NS);
        if over_ns > 0 {
            return Err(over_ns.div_ceil(1_000_000_000) as u32);
        }
        buckets.set(client, full_ns);
        Ok(())
    }
}

impl Buckets {
    fn full_ns(&self, client: &Client) -> u64 {
        self.young.get(client).or_else(|| self.old.get(client)).copied().unwrap_or(0)
    }

    fn set(&mut self, client: Client, full_ns: u64) {
        if self.young.len() == GENERATION && !self.young.contains_key(&client) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(client, full_ns);
    }
}

/// The part of an address that stands for one customer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn limiter(per_minute: u32) -> Limiter {
        Limiter::new(NonZeroU32::new(per_minute).expect("not 0"))
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn a_minutes_worth_at_once_then_as_it_comes_back() {
        let (limiter, client) = (limiter(6), address("1.2.3.4"));
        let mut now_us = 5 * SECOND_US;
        for _ in 0..6 {
            assert_eq!(limiter.take(client, now_us), Ok(()));
        }
        assert_eq!(limiter.take(client, now_us), Err(10));
        now_us += 9 * SECOND_US;
        assert_eq!(limiter.take(client, now_us), Err(1), "a refusal costs nothing");
        now_us += SECOND_US;
        assert_eq!(limiter.take(client, now_us), Ok(()));
        assert_eq!(limiter.take(client, now_us), Err(10));
        // After a quiet minute the bucket is full, and no fuller.
        now_us += 3600 * SECOND_US;
        let taken = (0..20).take_while(|_| limiter.take(client, now_us).is_ok()).count();
        assert_eq!(taken, 6);
    }

    #[test]
    fn in_the_long_run_the_rate_is_kept() {
        let limiter = limiter(600);
        let taken = (0..3600 * 100)
            .filter(|tick| limiter.take(address("1.2.3.4"), tick * SECOND_US / 100).is_ok())
            .count();
        assert!((36_000..=36_600).contains(&taken), "{taken}");
    }

    #[test]
    fn clients_are_apart_and_a_network_is_one_client() {
        let limiter = limiter(1);
        for client in ["1.2.3.4", "1.2.3.5", "2001:db8::1", "2001:db8:0:1::1"].map(address) {
            assert_eq!(limiter.take(client, 0), Ok(()));
        }
        assert_eq!(limiter.take(None, 0), Ok(()));
        for client in ["1.2.3.4", "::ffff:1.2.3.4", "2001:db8::ffff", "2001:db8:0:1:8000::"] {
            assert_eq!(limiter.take(address(client), 0), Err(60), "{client}");
        }
        assert_eq!(limiter.take(None, 0), Err(60));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_are_forgotten() {
        let limiter = limiter(1);
        let client = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        for n in 0..200_000 {
            assert_eq!(limiter.take(client(n), 0), Ok(()));
            let buckets = limiter.buckets.lock().unwrap();
            assert!(buckets.young.len() <= GENERATION && buckets.old.len() <= GENERATION);
        }
        assert_eq!(limiter.take(client(199_999), 0), Err(60));
        assert_eq!(limiter.take(client(199_999 - GENERATION as u32), 0), Err(60));
        assert_eq!(limiter.take(client(0), 0), Ok(()));
    }
}
