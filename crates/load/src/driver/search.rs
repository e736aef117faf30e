//! The highest rate at which a condition still holds.
//!
//! The capacity is first seen in closed loop; then rates are halved or raised
//! until one holds and one fails, and the gap between them is halved (in
//! ratio) until it is small. A failure is believed only the second time: one
//! disturbance must not decide.

/// A search under way: say how the last rate went, get the next one.
#[derive(Clone, Debug)]
pub struct Search {
    holds: Option<f64>,
    fails: Option<f64>,
    ceiling: f64,
    precision: f64,
    doubted: bool,
    probes: u32,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchStep {
    /// Try this rate, requests a second.
    Try(f64),
    /// The gap is small enough, or no rate holds.
    Done,
}

/// The most rates tried.
const MOST_PROBES: u32 = 24;
/// The lowest rate tried, requests a second.
const LOWEST_RATE: f64 = 1.0;

impl Search {
    /// A search that begins at half of `capacity_per_s` and never goes beyond
    /// `ceiling_per_s`. It ends when the lowest failing rate is at most
    /// `precision` (e.g. 1.05) times the highest holding one.
    #[must_use]
    pub fn new(ceiling_per_s: f64, precision: f64) -> Self {
        Search {
            holds: None,
            fails: None,
            ceiling: ceiling_per_s,
            precision,
            doubted: false,
            probes: 0,
        }
    }

    /// The next rate, given the capacity seen in closed loop for the first one.
    #[must_use]
    pub fn next(&self, capacity_per_s: f64) -> SearchStep {
        if self.probes >= MOST_PROBES {
            return SearchStep::Done;
        }
        let rate = match (self.holds, self.fails) {
            (None, None) => capacity_per_s / 2.0,
            (Some(holds), None) if holds >= self.ceiling => return SearchStep::Done,
            (Some(holds), None) => holds * 1.5,
            (None, Some(fails)) if fails <= LOWEST_RATE => return SearchStep::Done,
            (None, Some(fails)) if self.doubted => fails,
            (None, Some(fails)) => fails / 2.0,
            (Some(_), Some(fails)) if self.doubted => fails,
            (Some(holds), Some(fails)) if fails / holds <= self.precision => {
                return SearchStep::Done;
            }
            (Some(holds), Some(fails)) => (holds * fails).sqrt(),
        };
        SearchStep::Try(round(rate.clamp(LOWEST_RATE, self.ceiling)))
    }

    /// Tells how `rate_per_s` went.
    pub fn tell(&mut self, rate_per_s: f64, held: Held) {
        self.probes += 1;
        match held {
            Held::Yes => {
                // A failure at this very rate, once, was a disturbance.
                if self.fails.is_some_and(|fails| fails <= rate_per_s) {
                    self.fails = None;
                }
                self.doubted = false;
                self.holds = Some(self.holds.map_or(rate_per_s, |before| before.max(rate_per_s)));
            }
            Held::No if self.doubted => self.doubted = false,
            Held::No => {
                self.doubted = true;
                self.fails = Some(rate_per_s);
            }
        }
    }

    /// The highest rate that held and the lowest that failed.
    #[must_use]
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        (self.holds, self.fails)
    }
}

/// Whether the condition held at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It held, and the rate was kept.
    Yes,
    /// It did not, or the rate could not be kept.
    No,
}

/// To three significant digits: rates that people read.
fn round(rate: f64) -> f64 {
    if rate < 100.0 {
        return (rate * 10.0).round() / 10.0;
    }
    let unit = 10f64.powf(rate.log10().floor() - 2.0);
    (rate / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(limit: f64, capacity: f64, ceiling: f64, mut disturbed: u32) -> Search {
        let mut search = Search::new(ceiling, 1.05);
        while let SearchStep::Try(rate) = search.next(capacity) {
            let held = if rate > limit {
                Held::No
            } else if disturbed > 0 {
                disturbed -= 1;
                Held::No
            } else {
                Held::Yes
            };
            search.tell(rate, held);
        }
        search
    }

    #[test]
    fn the_limit_is_found_within_the_precision_from_wherever_it_begins() {
        for (limit, capacity) in [(7_300.0, 10_000.0), (90.0, 50_000.0), (40_000.0, 9_000.0)] {
            let (holds, fails) = searched(limit, capacity, 1e6, 0).bounds();
            let (holds, fails) = (holds.unwrap(), fails.unwrap());
            assert!(holds <= limit && limit <= fails, "{holds} {limit} {fails}");
            assert!(fails / holds <= 1.06, "{holds} {fails}");
        }
    }

    #[test]
    fn one_disturbance_does_not_decide() {
        let (holds, _) = searched(7_300.0, 10_000.0, 1e6, 1).bounds();
        assert!(holds.unwrap() > 6_900.0, "{holds:?}");
    }

    #[test]
    fn it_ends_at_its_ceiling_and_when_nothing_holds() {
        assert_eq!(searched(1e9, 1_000.0, 2_000.0, 0).bounds(), (Some(2_000.0), None));
        let (holds, fails) = searched(0.1, 1_000.0, 2_000.0, 0).bounds();
        assert_eq!(holds, None);
        assert!(fails.unwrap() <= 1.0);
    }
}
