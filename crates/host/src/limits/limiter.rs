//! A rate per client address.

use super::client::Keys;
use super::rate::{Bucket, Rate};
use super::table::Table;
use std::net::IpAddr;

/// The buckets of all client addresses.
#[derive(Debug)]
pub struct Limiter {
    rate: Rate,
    keys: Keys,
    buckets: Table<Bucket>,
}

impl Limiter {
    /// All buckets full.
    pub fn new(rate: Rate) -> Limiter {
        Limiter { rate, keys: Keys::default(), buckets: Table::default() }
    }

    /// The rate at which tokens are refilled.
    pub fn rate(&self) -> &Rate {
        &self.rate
    }

    /// Takes up to `wanted` tokens of `client`, at least one, at the time `now_us` of the monotonic
    /// clock; returns how many.
    ///
    /// # Errors
    /// The bucket is empty; after this many seconds, at least 1, it will hold the wanted tokens, or
    /// as many as fit.
    pub fn take(&self, client: Option<IpAddr>, wanted: u64, now_us: u64) -> Result<u64, u32> {
        let now_ns = now_us.saturating_mul(1000);
        let take = |bucket: &mut Bucket| self.rate.take(bucket, wanted, now_ns);
        self.buckets.with(self.keys.of_address(client), take).map_err(|wait| wait.seconds())
    }

    /// Returns unused tokens.
    pub fn put_back(&self, client: Option<IpAddr>, tokens: u64) {
        let put_back = |bucket: &mut Bucket| self.rate.put_back(bucket, tokens);
        self.buckets.with(self.keys.of_address(client), put_back);
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::GENERATION;
    use super::*;
    use std::num::NonZeroU32;

    const SECOND_US: u64 = 1_000_000;

    fn limiter(per_minute: u32) -> Limiter {
        Limiter::new(Rate::per_minute(NonZeroU32::new(per_minute).expect("not 0")))
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn a_minutes_worth_at_once_then_as_it_comes_back() {
        let (limiter, client) = (limiter(6), address("1.2.3.4"));
        let mut now_us = 5 * SECOND_US;
        for _ in 0..6 {
            assert_eq!(limiter.take(client, 1, now_us), Ok(1));
        }
        assert_eq!(limiter.take(client, 1, now_us), Err(10));
        now_us += 9 * SECOND_US;
        assert_eq!(limiter.take(client, 1, now_us), Err(1), "a refusal costs nothing");
        now_us += SECOND_US;
        assert_eq!(limiter.take(client, 1, now_us), Ok(1));
        assert_eq!(limiter.take(client, 1, now_us), Err(10));
        // After a quiet minute the bucket is full, and no fuller.
        now_us += 3600 * SECOND_US;
        let taken = (0..20).take_while(|_| limiter.take(client, 1, now_us).is_ok()).count();
        assert_eq!(taken, 6);
    }

    #[test]
    fn as_many_as_there_are_are_taken_at_once_and_what_was_not_used_comes_back() {
        let (limiter, client) = (limiter(6), address("1.2.3.4"));
        assert_eq!(limiter.take(client, 4, 0), Ok(4));
        assert_eq!(limiter.take(client, 4, 0), Ok(2));
        assert_eq!(limiter.take(client, 2, 0), Err(20));
        assert_eq!(limiter.take(client, 1000, 0), Err(60), "there are never more than six");
        limiter.put_back(client, 3);
        assert_eq!(limiter.take(client, 4, 0), Ok(3));
        limiter.put_back(client, 1000);
        assert_eq!(limiter.take(client, 1000, SECOND_US), Ok(6), "nor more than full");
    }

    #[test]
    fn in_the_long_run_the_rate_is_kept() {
        let limiter = limiter(600);
        let taken = (0..3600 * 100)
            .filter(|tick| limiter.take(address("1.2.3.4"), 1, tick * SECOND_US / 100).is_ok())
            .count();
        assert!((36_000..=36_600).contains(&taken), "{taken}");
    }

    #[test]
    fn clients_are_apart_and_a_network_is_one_client() {
        let limiter = limiter(1);
        for client in ["1.2.3.4", "1.2.3.5", "2001:db8::1", "2001:db8:0:1::1"].map(address) {
            assert_eq!(limiter.take(client, 1, 0), Ok(1));
        }
        assert_eq!(limiter.take(None, 1, 0), Ok(1));
        for client in ["1.2.3.4", "::ffff:1.2.3.4", "2001:db8::ffff", "2001:db8:0:1:8000::"] {
            assert_eq!(limiter.take(address(client), 1, 0), Err(60), "{client}");
        }
        assert_eq!(limiter.take(None, 1, 0), Err(60));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_are_forgotten() {
        let limiter = limiter(1);
        let client = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        for n in 0..200_000 {
            assert_eq!(limiter.take(client(n), 1, 0), Ok(1));
            if n % 1000 == 0 {
                let (most, there) = limiter.buckets.len();
                assert!(there <= most, "{there}");
            }
        }
        assert_eq!(limiter.take(client(199_999), 1, 0), Err(60));
        // Buckets of the previous generation are still there, though not all parts are equally
        // full.
        assert_eq!(limiter.take(client(199_999 - GENERATION as u32 / 2), 1, 0), Err(60));
        assert_eq!(limiter.take(client(0), 1, 0), Ok(1));
    }

    #[test]
    #[ignore = "a measurement: run it with --release --ignored on a quiet machine"]
    #[allow(clippy::disallowed_methods)] // it measures
    fn what_a_check_costs() {
        use std::hint::black_box;
        let limiter = limiter(u32::MAX);
        for clients in [1_u32, 1_000, 30_000] {
            let begun = std::time::Instant::now();
            const CHECKS: u32 = 5_000_000;
            for n in 0..CHECKS {
                let client = Some(IpAddr::from((n % clients).to_be_bytes()));
                let _ = black_box(limiter.take(black_box(client), 1, u64::from(n) * 1000));
            }
            let ns = begun.elapsed().as_nanos() as f64 / f64::from(CHECKS);
            println!("{clients} clients: {ns:.1} ns a check");
        }
    }
}
