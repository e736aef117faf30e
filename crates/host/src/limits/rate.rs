//! Token buckets, each stored as one number: the time at which it will be full again (the generic
//! cell rate algorithm, ITU-T I.371 annex A). A full bucket needs no entry.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;
/// Capacity of a bucket, in seconds of its rate.
pub(crate) const BURST_S: u64 = 5;

/// The state of a bucket: the time at which it is full again, in ns of the monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bucket(u64);

/// How long until a bucket holds the wanted tokens, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wait(pub(crate) u64);

impl Wait {
    /// As `Retry-After` has it: whole seconds, at least 1.
    pub(crate) fn seconds(self) -> u32 {
        u32::try_from(self.0.div_ceil(SECOND_NS).max(1)).unwrap_or(u32::MAX)
    }
}

/// The refill rate and capacity of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Tokens per window.
    tokens: u64,
    window_ns: u64,
    /// Time in which an empty bucket fills.
    depth_ns: u64,
}

impl Rate {
    /// A burst of this size, refilled every minute.
    pub fn per_minute(tokens: NonZeroU32) -> Rate {
        Rate { tokens: tokens.get().into(), window_ns: MINUTE_NS, depth_ns: MINUTE_NS }
    }

    /// A rate per second, with bursts of [`BURST_S`] seconds' worth.
    pub(crate) fn per_second(tokens: NonZeroU64) -> Rate {
        Rate { tokens: tokens.get(), window_ns: SECOND_NS, depth_ns: BURST_S * SECOND_NS }
    }

    /// Tokens per window, a second or a minute.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Time to refill one token.
    fn token_ns(&self) -> u64 {
        (self.window_ns / self.tokens).max(1)
    }

    /// Takes up to `wanted` tokens, at least one, at the time `now_ns`; returns how many.
    ///
    /// # Errors
    /// The bucket is empty; how long until it holds the wanted tokens, or as many as fit.
    pub(crate) fn take(&self, bucket: &mut Bucket, wanted: u64, now_ns: u64) -> Result<u64, Wait> {
        let full_ns = bucket.0.max(now_ns);
        let (token_ns, room_ns) = (self.token_ns(), self.depth_ns.saturating_sub(full_ns - now_ns));
        let tokens = wanted.min(room_ns / token_ns);
        if tokens == 0 {
            let most = wanted.clamp(1, self.depth_ns / token_ns);
            // A client in debt is below empty.
            let missing_ns = (most * token_ns).saturating_add(full_ns - now_ns) - self.depth_ns;
            return Err(Wait(missing_ns));
        }
        bucket.0 = full_ns + tokens * token_ns;
        Ok(tokens)
    }

    /// Returns unused tokens.
    pub(crate) fn put_back(&self, bucket: &mut Bucket, tokens: u64) {
        bucket.0 = bucket.0.saturating_sub(tokens.saturating_mul(self.token_ns()));
    }

    /// Takes `amount` tokens; missing ones become a debt.
    pub(crate) fn charge(&self, bucket: &mut Bucket, amount: u64, now_ns: u64) {
        let ns = match amount.checked_mul(self.window_ns) {
            Some(product) => product / self.tokens,
            None => {
                let ns = u128::from(amount) * u128::from(self.window_ns) / u128::from(self.tokens);
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        };
        bucket.0 = bucket.0.max(now_ns).saturating_add(ns);
    }

    /// How long until the debt is paid; `None`: there is none.
    pub(crate) fn debt(&self, bucket: Bucket, now_ns: u64) -> Option<Wait> {
        let owed_ns = bucket.0.saturating_sub(now_ns).saturating_sub(self.depth_ns);
        (owed_ns > 0).then_some(Wait(owed_ns))
    }
}

/// A bucket shared by several threads.
#[derive(Debug, Default)]
pub struct SharedBucket(AtomicU64);

impl SharedBucket {
    /// Takes one token.
    ///
    /// # Errors
    /// As [`Rate::take`].
    pub(crate) fn take(&self, rate: &Rate, now_ns: u64) -> Result<(), Wait> {
        let mut before = self.0.load(Relaxed);
        loop {
            let mut bucket = Bucket(before);
            rate.take(&mut bucket, 1, now_ns)?;
            match self.0.compare_exchange_weak(before, bucket.0, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => before = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_second(tokens: u64) -> Rate {
        Rate::per_second(NonZeroU64::new(tokens).expect("not 0"))
    }

    #[test]
    fn some_seconds_worth_at_once_then_as_it_comes_back() {
        let (rate, mut bucket) = (per_second(2), Bucket::default());
        for _ in 0..2 * BURST_S {
            assert_eq!(rate.take(&mut bucket, 1, 7), Ok(1));
        }
        assert_eq!(rate.take(&mut bucket, 1, 7), Err(Wait(SECOND_NS / 2)));
        assert_eq!(rate.take(&mut bucket, 1, 7 + SECOND_NS / 2), Ok(1));
        assert_eq!(rate.take(&mut bucket, 1, 7 + SECOND_NS / 2), Err(Wait(SECOND_NS / 2)));
    }

    #[test]
    fn a_debt_is_paid_by_time_alone() {
        let (rate, mut bucket) = (per_second(1_000), Bucket::default());
        rate.charge(&mut bucket, 1_000 * BURST_S, SECOND_NS);
        assert_eq!(rate.debt(bucket, SECOND_NS), None, "what the bucket held is not owed");
        rate.charge(&mut bucket, 3_500, SECOND_NS);
        assert_eq!(rate.debt(bucket, SECOND_NS), Some(Wait(3_500_000_000)));
        assert_eq!(rate.take(&mut bucket, 1, SECOND_NS), Err(Wait(3_501_000_000)));
        assert_eq!(rate.debt(bucket, 4 * SECOND_NS).map(Wait::seconds), Some(1));
        assert_eq!(rate.debt(bucket, 4 * SECOND_NS + SECOND_NS / 2), None);
    }

    #[test]
    fn nothing_is_too_fast_and_nothing_too_large() {
        for tokens in [1, 1_000_000_000, 1 << 40, u64::MAX] {
            let (rate, mut bucket) = (per_second(tokens), Bucket::default());
            assert_eq!(rate.take(&mut bucket, 1, 0), Ok(1), "{tokens}");
            rate.charge(&mut bucket, u64::MAX, 0);
            rate.charge(&mut bucket, u64::MAX, u64::MAX);
            assert_eq!(rate.debt(bucket, u64::MAX), None, "{tokens}");
        }
        let (rate, mut bucket) = (per_second(1 << 40), Bucket::default());
        rate.charge(&mut bucket, 20 << 40, 0);
        let owed_ns = rate.debt(bucket, 0).expect("a debt").0;
        assert_eq!(owed_ns, (20 - BURST_S) * SECOND_NS);
    }

    #[test]
    fn threads_share_a_bucket() {
        let (rate, shared) = (per_second(100), SharedBucket::default());
        let taken = std::thread::scope(|scope| {
            let take = || (0..400).filter(|_| shared.take(&rate, 5).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<usize>()
        });
        assert_eq!(taken as u64, 100 * BURST_S);
    }
}
