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

/// Why a search is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// The gap between the highest holding and the lowest failing rate is small enough.
    Narrow,
    /// It held at the highest rate that may be tried.
    Ceiling,
    /// It failed at the lowest rate that is tried.
    NeverHeld,
    /// So many rates were tried without any of these.
    TooMany(u32),
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
            (None, Some(fails)) if self.doubted => fails,
            (None, Some(fails)) if fails <= LOWEST_RATE => return SearchStep::Done,
            (None, Some(fails)) => fails / 2.0,
            (Some(_), Some(fails)) if self.doubted => fails,
            (Some(holds), Some(fails)) if fails / holds <= self.precision => {
                return SearchStep::Done;
            }
            (Some(holds), Some(fails)) => (holds * fails).sqrt(),
        };
        // Rounded first: the ceiling is the user's word, and is tried as it is.
        SearchStep::Try(round(rate).clamp(LOWEST_RATE, self.ceiling.max(LOWEST_RATE)))
    }

    /// Tells how `rate_per_s` went.
    pub fn tell(&mut self, rate_per_s: f64, outcome: ProbeOutcome) {
        self.probes += 1;
        match outcome {
            ProbeOutcome::Holds => {
                // A failure at this very rate, once, was a disturbance.
                if self.fails.is_some_and(|fails| fails <= rate_per_s) {
                    self.fails = None;
                }
                self.doubted = false;
                self.holds = Some(self.holds.map_or(rate_per_s, |before| before.max(rate_per_s)));
            }
            ProbeOutcome::Fails if self.doubted => self.doubted = false,
            ProbeOutcome::Fails => {
                self.doubted = true;
                self.fails = Some(rate_per_s);
            }
        }
    }

    /// Why there is nothing more to try; `None` if there is.
    #[must_use]
    pub fn end(&self, capacity_per_s: f64) -> Option<SearchEnd> {
        if self.next(capacity_per_s) != SearchStep::Done {
            return None;
        }
        Some(match (self.holds, self.fails) {
            (None, Some(fails)) if fails <= LOWEST_RATE && !self.doubted => SearchEnd::NeverHeld,
            (Some(holds), None) if holds >= self.ceiling => SearchEnd::Ceiling,
            (Some(holds), Some(fails)) if fails / holds <= self.precision && !self.doubted => {
                SearchEnd::Narrow
            }
            _ => SearchEnd::TooMany(self.probes),
        })
    }

    /// The highest rate that held and the lowest that failed.
    #[must_use]
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        (self.holds, self.fails)
    }
}

/// How one probe of a search went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// It held, and the rate was kept.
    Holds,
    /// It did not, or the rate could not be kept.
    Fails,
}

/// To three significant digits: rates that people read.
fn round(rate: f64) -> f64 {
    if rate <= 0.0 {
        return 0.0;
    }
    let digits = 2 - rate.log10().floor() as i32;
    // Divided, not multiplied, by a power of ten below 1: 7.3 and not 7.300000000000001.
    match digits {
        0.. => (rate * 10f64.powi(digits)).round() / 10f64.powi(digits),
        _ => (rate / 10f64.powi(-digits)).round() * 10f64.powi(-digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(limit: f64, capacity: f64, ceiling: f64, mut disturbed: u32) -> Search {
        let mut search = Search::new(ceiling, 1.05);
        while let SearchStep::Try(rate) = search.next(capacity) {
            let outcome = if rate > limit {
                ProbeOutcome::Fails
            } else if disturbed > 0 {
                disturbed -= 1;
                ProbeOutcome::Fails
            } else {
                ProbeOutcome::Holds
            };
            search.tell(rate, outcome);
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
    fn it_is_narrow_at_low_rates_and_ends_at_an_odd_ceiling_at_once() {
        let search = searched(1.04, 3.0, 100.0, 0);
        let (holds, fails) = search.bounds();
        assert!(fails.unwrap() / holds.unwrap() <= 1.05, "{:?}", search.bounds());
        assert_eq!(search.end(3.0), Some(SearchEnd::Narrow));
        for ceiling in [12_345.0, 12_380.0, 3.21] {
            let search = searched(1e9, 10_000.0, ceiling, 0);
            assert_eq!(search.bounds(), (Some(ceiling), None));
            assert!(search.probes <= 4, "{} probes", search.probes);
            assert_eq!(search.end(10_000.0), Some(SearchEnd::Ceiling));
        }
        let search = searched(0.1, 1_000.0, 2_000.0, 0);
        assert_eq!(search.end(1_000.0), Some(SearchEnd::NeverHeld));
        assert_eq!(Search::new(10.0, 1.05).end(5.0), None);
    }

    #[test]
    fn a_search_that_finds_no_end_says_so() {
        let mut search = Search::new(1e9, 1.05);
        // Fails every other time, wherever it is.
        for probe in 0.. {
            let SearchStep::Try(rate) = search.next(10.0) else { break };
            search
                .tell(rate, if probe % 2 == 0 { ProbeOutcome::Fails } else { ProbeOutcome::Holds });
        }
        assert_eq!(search.end(10.0), Some(SearchEnd::TooMany(MOST_PROBES)));
    }

    #[test]
    fn it_ends_at_its_ceiling_and_when_nothing_holds() {
        assert_eq!(searched(1e9, 1_000.0, 2_000.0, 0).bounds(), (Some(2_000.0), None));
        let (holds, fails) = searched(0.1, 1_000.0, 2_000.0, 0).bounds();
        assert_eq!(holds, None);
        assert!(fails.unwrap() <= 1.0);
    }
}
