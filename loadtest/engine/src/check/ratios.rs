//! C15, ratios: what a ratio of rounded figures can be, and whether it is named right.
//!
//! A figure written as `12.3` stands for anything from 12.25 to 12.35, so a ratio of two such
//! figures is a range, computed with interval arithmetic: `[a, b] ÷ [c, d] = [a ÷ d, b ÷ c]` for
//! positive figures. A claimed ratio is wrong only if no value it may stand for lies in that range.
//! Reports of this program compute ratios from measured values, so that the question does not
//! arise.
//!
//! Names have one meaning here. With `q` = the figure spoken of ÷ the figure it is compared with:
//!
//! | said | means |
//! |---|---|
//! | `n` times | `q = n` |
//! | `x` % more, higher | `q − 1` |
//! | `x` % less, lower | `1 − q` |
//! | `x` % faster, of a throughput | `q − 1`; of a latency `1 − q` (less time), or `1 ÷ q − 1` (more speed) |
//! | `x` % slower, of a throughput | `1 − q`; of a latency `q − 1` |
//! | `n` times faster or slower | the larger ÷ the smaller |
//!
//! A percentage that fits only when taken of the *other* figure ("24% slower" for 124 → 100, which
//! is 19% less; 124 is 24% more than 100) has the wrong base, which is said apart.

use crate::numbers::significant;

/// All values a rounded figure may stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Interval {
    /// Exactly this value.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Interval { low: value, high: value }
    }

    /// The middle.
    #[must_use]
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// Every value times `factor`, which must not be negative.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Interval { low: self.low * factor, high: self.high * factor }
    }

    /// Whether both have a value in common, with a billionth of play for the arithmetic.
    #[must_use]
    pub fn meets(self, other: Interval) -> bool {
        let play = 1e-9 * self.high.abs().max(other.high.abs());
        self.low <= other.high + play && other.low <= self.high + play
    }

    fn less(self, one: f64) -> Self {
        Interval { low: self.low - one, high: self.high - one }
    }

    fn short_of_one(self) -> Self {
        Interval { low: 1.0 - self.high, high: 1.0 - self.low }
    }

    fn inverse(self) -> Self {
        Interval { low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

impl std::ops::Mul for Interval {
    type Output = Interval;

    /// The product of positive intervals.
    fn mul(self, by: Interval) -> Interval {
        Interval { low: self.low * by.low, high: self.high * by.high }
    }
}

impl std::ops::Div for Interval {
    type Output = Interval;

    /// The quotient of positive intervals.
    fn div(self, by: Interval) -> Interval {
        Interval { low: self.low / by.high, high: self.high / by.low }
    }
}

impl std::ops::Add for Interval {
    type Output = Interval;

    fn add(self, other: Interval) -> Interval {
        Interval { low: self.low + other.low, high: self.high + other.high }
    }
}

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Throughput and counts of work.
    Higher,
    /// Times.
    Lower,
}

/// The word of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The ratio itself: "5.1x".
    Times,
    /// "more", "higher", "+".
    More,
    /// "less", "lower", "−".
    Less,
    /// "faster".
    Faster,
    /// "slower".
    Slower,
}

/// What is claimed, as a range because it is rounded too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claimed {
    /// A factor: "5.1x" is 5.05 to 5.15.
    Factor(Interval),
    /// A share: "24%" is 0.235 to 0.245.
    Share(Interval),
}

/// How a claim compares with what the figures allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fit {
    /// It lies within what they allow.
    Fits(Interval),
    /// It differs from it by no more than one unit of its last digit.
    Nearly(Interval),
    /// It fits only as a share of the other figure; the range is that of the right base.
    OtherBase(Interval),
    /// The figures say the opposite: faster is slower, or more is less.
    WrongWay(Interval),
    /// It does not fit; the range is what the figures allow.
    Off(Interval),
}

/// Compares a claim with the two figures it was made of; both must be above 0.
#[must_use]
pub fn fit(word: Word, claimed: Claimed, of: Interval, over: Interval, better: Better) -> Fit {
    let q = of / over;
    // As the larger over the smaller, or what is gained, if the word tells the truth.
    let grows = match (word, better) {
        (Word::Times | Word::More, _)
        | (Word::Faster, Better::Higher)
        | (Word::Slower, Better::Lower) => true,
        (Word::Less, _) | (Word::Faster, Better::Lower) | (Word::Slower, Better::Higher) => false,
    };
    let (claim, regular, alternatives): (Interval, Interval, Vec<Interval>) = match claimed {
        Claimed::Factor(claim) => (claim, if grows { q } else { q.inverse() }, Vec::new()),
        Claimed::Share(claim) if word == Word::Times => (claim, q, Vec::new()),
        Claimed::Share(claim) if grows => (claim, q.less(1.0), Vec::new()),
        Claimed::Share(claim) if word == Word::Faster => {
            (claim, q.short_of_one(), vec![q.inverse().less(1.0)])
        }
        Claimed::Share(claim) => (claim, q.short_of_one(), Vec::new()),
    };
    if claim.meets(regular) || alternatives.iter().any(|other| claim.meets(*other)) {
        return Fit::Fits(regular);
    }
    let opposite = match claimed {
        Claimed::Factor(_) => word != Word::Times && regular.high < 1.0 && claim.low > 1.0,
        Claimed::Share(_) => word != Word::Times && regular.high < 0.0 && claim.low > 0.0,
    };
    if opposite {
        return Fit::WrongWay(regular);
    }
    let other_base = match claimed {
        Claimed::Share(_) if word == Word::Times => None,
        Claimed::Share(_) if grows => Some(q.inverse().short_of_one()),
        Claimed::Share(_) => Some(q.inverse().less(1.0)),
        Claimed::Factor(_) => None,
    };
    if other_base.is_some_and(|other| claim.meets(other)) {
        return Fit::OtherBase(regular);
    }
    let unit = claim.high - claim.low;
    let wider = Interval { low: claim.low - unit, high: claim.high + unit };
    if unit > 0.0 && wider.meets(regular) { Fit::Nearly(regular) } else { Fit::Off(regular) }
}

/// A range as written in sentences: one figure if both ends are written alike.
#[must_use]
pub fn range(of: Interval, write: impl Fn(f64) -> String) -> String {
    let (low, high) = (write(of.low), write(of.high));
    if low == high { low } else { format!("{low} … {high}") }
}

/// A range of factors: `18.6 … 18.7 times`.
#[must_use]
pub fn factors(of: Interval) -> String {
    format!("{} times", range(of, significant))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `value` with half of its last digit on each side.
    fn rounded(value: f64, last_digit: f64) -> Interval {
        Interval { low: value - last_digit / 2.0, high: value + last_digit / 2.0 }
    }

    fn share(percent: f64) -> Claimed {
        Claimed::Share(rounded(percent / 100.0, 0.01))
    }

    #[test]
    fn a_ratio_of_rounded_figures_is_a_range() {
        let q = rounded(2.47, 0.01) / rounded(0.13, 0.01);
        assert!((q.low - 18.259).abs() < 1e-3 && (q.high - 19.8).abs() < 1e-3, "{q:?}");
        let claim = Claimed::Factor(rounded(18.6, 0.1));
        assert!(matches!(
            fit(Word::Slower, claim, rounded(2.47, 0.01), rounded(0.13, 0.01), Better::Lower),
            Fit::Fits(_)
        ));
        // From the figure with more digits, +1,800% cannot be had.
        let precise = rounded(0.1325, 0.0001);
        let off = fit(Word::More, share(1_800.0), rounded(2.47, 0.01), precise, Better::Lower);
        assert!(matches!(off, Fit::Off(range) if (range.low - 17.6).abs() < 0.02), "{off:?}");
    }

    #[test]
    fn the_base_of_a_percentage_is_told() {
        let (slow, fast) = (rounded(100.0, 1.0), rounded(124.0, 1.0));
        let of = |word, percent, of, over| fit(word, share(percent), of, over, Better::Higher);
        assert!(matches!(of(Word::Slower, 19.0, slow, fast), Fit::Fits(_)));
        assert!(matches!(of(Word::Slower, 24.0, slow, fast), Fit::OtherBase(_)));
        assert!(matches!(of(Word::Faster, 24.0, fast, slow), Fit::Fits(_)));
        assert!(matches!(of(Word::Faster, 19.0, fast, slow), Fit::OtherBase(_)));
        assert!(matches!(of(Word::Faster, 24.0, slow, fast), Fit::WrongWay(_)));
        assert!(matches!(of(Word::More, 60.0, fast, slow), Fit::Off(_)));
        assert!(matches!(of(Word::More, 26.0, fast, slow), Fit::Nearly(_)));
    }

    #[test]
    fn faster_of_a_latency_may_mean_less_time_or_more_speed() {
        let (fast, slow) = (rounded(13.0, 0.01), rounded(17.0, 0.01));
        for percent in [24.0, 31.0] {
            assert!(matches!(
                fit(Word::Faster, share(percent), fast, slow, Better::Lower),
                Fit::Fits(_)
            ));
        }
        assert!(matches!(fit(Word::Faster, share(40.0), fast, slow, Better::Lower), Fit::Off(_)));
        assert!(matches!(fit(Word::Slower, share(31.0), slow, fast, Better::Lower), Fit::Fits(_)));
    }

    #[test]
    fn factors_have_no_base_but_a_direction() {
        let (low, high) = (Interval::exact(100.0), Interval::exact(500.0));
        let five = Claimed::Factor(rounded(5.0, 0.1));
        assert!(matches!(fit(Word::Faster, five, high, low, Better::Higher), Fit::Fits(_)));
        assert!(matches!(fit(Word::Slower, five, low, high, Better::Higher), Fit::Fits(_)));
        assert!(matches!(fit(Word::Slower, five, high, low, Better::Higher), Fit::WrongWay(_)));
        assert!(matches!(fit(Word::Faster, five, low, high, Better::Lower), Fit::Fits(_)));
        assert!(matches!(fit(Word::Times, five, high, low, Better::Higher), Fit::Fits(_)));
        let efficiency = Claimed::Share(rounded(5.0, 0.001));
        assert!(matches!(fit(Word::Times, efficiency, high, low, Better::Higher), Fit::Fits(_)));
        let six = Claimed::Factor(rounded(6.0, 1.0));
        assert!(matches!(fit(Word::Times, six, high, low, Better::Higher), Fit::Nearly(_)));
    }

    #[test]
    fn ranges_are_written_short() {
        assert_eq!(factors(Interval { low: 18.601, high: 18.69 }), "18.6 … 18.7 times");
        assert_eq!(factors(Interval::exact(2.0)), "2.00 times");
    }
}
