//! One second of a run, as a worker gathers it: small enough to be sent to
//! whoever watches, coarse (3%) where the run's histograms are fine.

use crate::result::Slice;

/// Sub-buckets of each power of two: quantiles to 1/32, about 3%.
const SUB_BITS: u32 = 5;
const SUBS: usize = 1 << SUB_BITS;
/// Powers of two told apart: up to 2^42 ns, over an hour.
const POWERS: usize = 42;

/// A coarse histogram of fixed size.
#[derive(Clone, Debug)]
pub(crate) struct Coarse {
    counts: Box<[u32; SUBS * POWERS]>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for Coarse {
    fn default() -> Self {
        Coarse { counts: Box::new([0; SUBS * POWERS]), count: 0, sum_ns: 0, max_ns: 0 }
    }
}

fn bucket(value_ns: u64) -> usize {
    let power = 63 - (value_ns | SUBS as u64).leading_zeros();
    let shift = power - SUB_BITS;
    let within = usize::try_from(value_ns >> shift).expect("below 64") & (SUBS - 1);
    let row = if value_ns < SUBS as u64 { 0 } else { shift as usize + 1 };
    (row * SUBS + within).min(SUBS * POWERS - 1)
}

/// The middle of a bucket, in nanoseconds.
fn middle(bucket: usize) -> u64 {
    let (row, within) = (bucket / SUBS, (bucket % SUBS) as u64);
    if row == 0 {
        return within;
    }
    let shift = u32::try_from(row).expect("below 64") - 1;
    ((SUBS as u64 + within) << shift) + (1u64 << shift) / 2
}

impl Coarse {
    #[inline]
    pub(crate) fn record(&mut self, value_ns: u64) {
        self.counts[bucket(value_ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    fn merge(&mut self, other: &Coarse) {
        for (into, from) in self.counts.iter_mut().zip(other.counts.iter()) {
            *into += from;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn quantile_ns(&self, q: f64) -> u64 {
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += u64::from(*count);
            if below >= rank {
                return middle(bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Counts by power of two from 2^10 ns on, as [`Slice::heat`] wants them.
    fn heat(&self) -> Vec<u64> {
        let mut heat = vec![0; POWERS - 10];
        for (bucket, count) in self.counts.iter().enumerate() {
            if *count > 0 {
                let power = 63 - (middle(bucket) | 1).leading_zeros() as usize;
                let last = heat.len() - 1;
                heat[power.saturating_sub(10).min(last)] += u64::from(*count);
            }
        }
        while heat.last() == Some(&0) {
            heat.pop();
        }
        heat
    }
}

/// What one worker gathered in one second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    /// Number of the second from the start of the measured part.
    pub(crate) index: u64,
    pub(crate) successes: u64,
    pub(crate) failures: u64,
    pub(crate) latency: Coarse,
    pub(crate) lateness: Coarse,
}

impl Gathered {
    pub(crate) fn merge(&mut self, other: &Gathered) {
        self.successes += other.successes;
        self.failures += other.failures;
        self.latency.merge(&other.latency);
        self.lateness.merge(&other.lateness);
    }

    /// The slice as reported; `length_ms` is shorter than a second for the last one.
    pub(crate) fn slice(&self, length_ms: u64) -> Slice {
        let mean = self.latency.sum_ns / u128::from(self.latency.count.max(1));
        Slice {
            start_ms: self.index * 1000,
            length_ms,
            successes: self.successes,
            failures: self.failures,
            mean_ns: u64::try_from(mean).unwrap_or(u64::MAX),
            p50_ns: self.latency.quantile_ns(0.5),
            p99_ns: self.latency.quantile_ns(0.99),
            max_ns: self.latency.max_ns,
            lateness_p99_ns: self.lateness.quantile_ns(0.99),
            heat: self.latency.heat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_told_to_three_per_cent() {
        let mut value = 1u64;
        while value < 4_000_000_000_000 {
            let told = middle(bucket(value));
            let error = (told as f64 - value as f64).abs() / value as f64;
            assert!(error <= 1.0 / 32.0, "{value} is told as {told}");
            value += value / 7 + 1;
        }
    }

    #[test]
    fn a_slice_shows_its_quantiles_and_its_heat() {
        let mut gathered = Gathered { index: 3, successes: 1000, ..Gathered::default() };
        for value in 1..=1000u64 {
            gathered.latency.record(value * 1000);
        }
        let slice = gathered.slice(1000);
        assert_eq!(slice.start_ms, 3000);
        assert!((slice.p50_ns as f64 / 500_000.0 - 1.0).abs() < 0.035, "{}", slice.p50_ns);
        assert!((slice.p99_ns as f64 / 990_000.0 - 1.0).abs() < 0.035, "{}", slice.p99_ns);
        assert_eq!(slice.mean_ns, 500_500);
        assert_eq!(slice.max_ns, 1_000_000);
        assert_eq!(slice.heat.iter().sum::<u64>(), 1000);
        assert_eq!(Gathered::default().slice(1000).p99_ns, 0);
    }
}
