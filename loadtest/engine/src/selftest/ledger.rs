//! What a case expects and what it got.

use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;

/// Why a case could not be judged.
#[derive(Debug)]
pub(super) enum Trouble {
    /// This machine cannot do what the case needs; the text says what.
    Unsuited(String),
    /// It should have been possible: the case has failed.
    Broken(String),
}

impl Trouble {
    /// A failure of the system's.
    pub(super) fn of(what: &str, error: &dyn Display) -> Self {
        Trouble::Broken(format!("{what}: {error}"))
    }
}

/// One expectation that was not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) expected: String,
    pub(super) got: String,
    /// How far outside its range a duration lay, in nanoseconds; `None` for what is none.
    pub(super) beyond_ns: Option<u64>,
}

/// The expectations of one try of a case.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Not met, and no machine however busy excuses it.
    pub(super) wrong: Vec<Mismatch>,
    /// Not met, which a machine that is busy with other things can cause.
    pub(super) untimely: Vec<Mismatch>,
    /// What was measured, in words.
    pub(super) notes: Vec<String>,
    /// How many expectations there were.
    pub(super) asked: u64,
    /// The largest share of its time that a worker waited for a processor.
    pub(super) delayed_share: f64,
}

impl Ledger {
    /// Two values must be the same.
    pub(super) fn equal<T: PartialEq + Debug>(&mut self, what: &str, expected: T, got: T) {
        self.asked += 1;
        if expected != got {
            let expected = format!("{what}: {expected:?}");
            self.wrong.push(Mismatch { expected, got: format!("{got:?}"), beyond_ns: None });
        }
    }

    /// A number must lie in a range, however busy the machine is.
    pub(super) fn within(&mut self, what: &str, range: RangeInclusive<u64>, got: u64) {
        self.asked += 1;
        self.wrong.extend(outside(what, &range, got, &|number| number.to_string()));
    }

    /// A duration must lie in a range, however busy the machine is.
    pub(super) fn lasts(&mut self, what: &str, range_ns: RangeInclusive<u64>, got_ns: u64) {
        self.asked += 1;
        self.wrong.extend(outside(what, &range_ns, got_ns, &duration));
    }

    /// A duration must lie in a range, if the machine is quiet.
    pub(super) fn timely(&mut self, what: &str, range_ns: RangeInclusive<u64>, got_ns: u64) {
        self.asked += 1;
        let beyond_ns =
            range_ns.start().saturating_sub(got_ns).max(got_ns.saturating_sub(*range_ns.end()));
        let missed = outside(what, &range_ns, got_ns, &duration);
        self.untimely
            .extend(missed.map(|missed| Mismatch { beyond_ns: Some(beyond_ns), ..missed }));
    }

    /// A number must be this one, if the machine is quiet.
    pub(super) fn timely_count(&mut self, what: &str, expected: u64, got: u64) {
        self.asked += 1;
        if expected != got {
            let expected = format!("{what}: {expected}");
            self.untimely.push(Mismatch { expected, got: got.to_string(), beyond_ns: None });
        }
    }

    /// A ratio must lie in a range, if the machine is quiet.
    pub(super) fn timely_ratio(&mut self, what: &str, range: RangeInclusive<f64>, got: f64) {
        self.asked += 1;
        if !range.contains(&got) {
            let expected = format!("{what}: {:.3} to {:.3}", range.start(), range.end());
            self.untimely.push(Mismatch { expected, got: format!("{got:.3}"), beyond_ns: None });
        }
    }

    /// Forgives durations that were missed by no more than the machine was late itself, and notes
    /// that.
    pub(super) fn forgive(&mut self, late_ns: u64) {
        let (missed, forgiven): (Vec<_>, Vec<_>) = std::mem::take(&mut self.untimely)
            .into_iter()
            .partition(|missed| missed.beyond_ns.is_none_or(|beyond_ns| beyond_ns > late_ns));
        self.untimely = missed;
        self.notes.extend(forgiven.iter().map(|one| {
            let late = duration(late_ns);
            format!(
                "{}, got {}: the machine was {late} later than a quiet one",
                one.expected, one.got
            )
        }));
    }

    /// Says what was measured.
    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }
}

fn outside(
    what: &str,
    range: &RangeInclusive<u64>,
    got: u64,
    written: &dyn Fn(u64) -> String,
) -> Option<Mismatch> {
    let expected = match (*range.start(), *range.end()) {
        (low, u64::MAX) => format!("{what}: at least {}", written(low)),
        (0, high) => format!("{what}: at most {}", written(high)),
        (low, high) => format!("{what}: {} to {}", written(low), written(high)),
    };
    (!range.contains(&got)).then(|| Mismatch { expected, got: written(got), beyond_ns: None })
}

/// A duration with three digits and its unit.
pub(super) fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_met_is_kept_with_what_was_expected() {
        let mut ledger = Ledger::default();
        ledger.equal("answers", 3, 3);
        ledger.within("errors", 1..=5, 5);
        ledger.timely("lateness", 0..=50_000, 50_000);
        ledger.timely_ratio("spread", 0.9..=1.1, 1.0);
        assert!(ledger.wrong.is_empty() && ledger.untimely.is_empty());
        ledger.equal("answers", 3, 4);
        ledger.within("errors", 1..=5, 6);
        ledger.lasts("the run", 2_000_000..=u64::MAX, 1_500_000);
        ledger.timely("lateness", 0..=50_000, 50_001);
        ledger.timely_ratio("spread", 0.9..=1.1, 1.2);
        let texts: Vec<String> = ledger
            .wrong
            .iter()
            .chain(&ledger.untimely)
            .map(|one| format!("{}; {}", one.expected, one.got))
            .collect();
        assert_eq!(
            texts,
            [
                "answers: 3; 4",
                "errors: 1 to 5; 6",
                "the run: at least 2.00 ms; 1.50 ms",
                "lateness: at most 50.0 µs; 50.0 µs",
                "spread: 0.900 to 1.100; 1.200",
            ]
        );
        assert_eq!(ledger.asked, 9);
    }

    #[test]
    fn what_the_machine_was_late_itself_is_forgiven_and_nothing_else() {
        let mut ledger = Ledger::default();
        ledger.timely("lateness", 0..=50_000, 80_000);
        ledger.timely("service", 100_000..=200_000, 60_000);
        ledger.timely_ratio("spread", 0.9..=1.1, 1.2);
        ledger.forgive(30_000);
        assert_eq!(ledger.untimely.len(), 2, "{:?}", ledger.untimely);
        assert!(ledger.notes[0].starts_with("lateness: at most 50.0 µs, got 80.0 µs"));
        ledger.forgive(40_000);
        assert_eq!(ledger.untimely.len(), 1, "{:?}", ledger.untimely);
    }

    #[test]
    fn durations_have_three_digits() {
        let written = [0, 999, 1_000, 45_600, 123_456_789, 2_000_000_000].map(duration);
        assert_eq!(written, ["0 ns", "999 ns", "1.00 µs", "45.6 µs", "123 ms", "2.00 s"]);
    }
}
