//! When requests of an open loop are due: a schedule that knows nothing of answers.
//!
//! The schedule is a function of rate, arrivals and seed alone. A backlog needs
//! no memory: what is due and not yet sent is simply still ahead in it.

use crate::plan::Arrivals;
use crate::random::SplitMix64;

/// The due times of one worker's share of an open loop.
#[derive(Debug)]
pub(crate) struct Pace {
    start_ns: u64,
    /// Mean gap between two requests of this worker, in nanoseconds.
    gap_ns: f64,
    arrivals: Arrivals,
    random: SplitMix64,
    /// Offset of the next due time from the start. A sum of up to 2^53 ns (104 days) is exact to 1
    /// ns.
    next_offset_ns: f64,
    /// Constant arrivals are multiples of the gap, so that rounding never adds up.
    first_offset_ns: f64,
    count: u64,
}

impl Pace {
    /// The share of worker `worker` of `workers` in `rate_per_s` requests a second from `start_ns`
    /// on.
    pub(crate) fn new(
        rate_per_s: f64,
        arrivals: Arrivals,
        seed: u64,
        (worker, workers): (u32, u32),
        start_ns: u64,
    ) -> Self {
        let mut random = SplitMix64::stream(seed, 0x00A2_2A11 ^ u64::from(worker));
        let gap_ns = 1e9 * f64::from(workers) / rate_per_s;
        let first_offset_ns = match arrivals {
            Arrivals::Constant => gap_ns * f64::from(worker) / f64::from(workers),
            Arrivals::Poisson => gap_ns * random.exponential(),
        };
        let next_offset_ns = first_offset_ns;
        Pace { start_ns, gap_ns, arrivals, random, next_offset_ns, first_offset_ns, count: 0 }
    }

    /// When the next request is due.
    pub(crate) fn due_ns(&self) -> u64 {
        self.start_ns + self.next_offset_ns as u64
    }

    /// Moves on to the request after it.
    pub(crate) fn advance(&mut self) {
        self.count += 1;
        self.next_offset_ns = match self.arrivals {
            Arrivals::Constant => self.first_offset_ns + self.count as f64 * self.gap_ns,
            Arrivals::Poisson => self.next_offset_ns + self.gap_ns * self.random.exponential(),
        };
    }

    /// How many more are due before `end_ns`; moves past them.
    pub(crate) fn skip_until(&mut self, end_ns: u64) -> u64 {
        let mut skipped = 0;
        while self.due_ns() < end_ns {
            self.advance();
            skipped += 1;
        }
        skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_arrivals_of_several_workers_interleave_evenly_and_do_not_drift() {
        let mut due: Vec<u64> = Vec::new();
        for worker in 0..3 {
            let mut pace = Pace::new(3_000.0, Arrivals::Constant, 1, (worker, 3), 500);
            for _ in 0..1_000_000 {
                due.push(pace.due_ns());
                pace.advance();
            }
        }
        due.sort_unstable();
        for (index, due_ns) in due.iter().enumerate() {
            let truth = 500.0 + index as f64 * 1e9 / 3_000.0;
            assert!((*due_ns as f64 - truth).abs() < 2.0, "{index}: {due_ns} for {truth}");
        }
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_their_name() {
        let mut pace = Pace::new(1_000.0, Arrivals::Poisson, 7, (0, 1), 0);
        let (mut sum, mut squares, mut last) = (0.0, 0.0, 0);
        for _ in 0..100_000 {
            let gap = (pace.due_ns() - last) as f64;
            last = pace.due_ns();
            sum += gap;
            squares += gap * gap;
            pace.advance();
        }
        let mean = sum / 1e5;
        let deviation = (squares / 1e5 - mean * mean).sqrt();
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation}");
    }

    #[test]
    fn what_is_left_unsent_is_counted() {
        let mut pace = Pace::new(10.0, Arrivals::Constant, 1, (0, 1), 0);
        pace.advance();
        assert_eq!(pace.skip_until(1_000_000_000), 9);
        assert_eq!(pace.due_ns(), 1_000_000_000);
    }
}
