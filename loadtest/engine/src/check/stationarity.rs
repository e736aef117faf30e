//! C9, stationarity: whether one figure can stand for the whole run.
//!
//! Over the full slices of each run (ten are needed), the medians (with several endpoints the
//! means, as a median of a mix moves with the mix), and in closed loop
//! the throughput, are tested for a change point and a trend (`series.rs`). Either needs
//! care if its chance, times the number of runs (Bonferroni), is under 5% *and* it is
//! large: 5% of the throughput, 10% of the median (which slices know to 3%). So does a
//! second without any success where ten or more were usual. Two separate groups of
//! latencies of one endpoint (`modes.rs`) are a note: that is how the service is, but no single
//! figure describes it.

use super::clock;
use super::figures::{Figures, StepFinding};
use super::modes;
use super::series::{Change, Trend, change_point, median, trend};
use crate::numbers::{counted, duration, percent, rate};
use crate::result::{Run, Slice};

/// Full slices below which nothing is said of a run.
const FEWEST_SLICES: usize = 10;
/// More values than this are averaged in groups: the tests take time by their square.
const MOST_VALUES: usize = 600;

/// One figure over the slices of a run.
struct Series {
    name: &'static str,
    /// The smallest change that matters, as a share.
    matters: f64,
    write: fn(f64) -> String,
    values: Vec<f64>,
    /// Slices averaged to one value.
    grouped: usize,
}

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let runs = &figures.step.runs;
    let long: Vec<&Run> = runs.iter().filter(|run| full(run).len() >= FEWEST_SLICES).collect();
    let typical = if has_several_endpoints(runs) { Typical::Mean } else { Typical::Median };
    let mut found = Vec::new();
    for run in &long {
        for series in series_of(run, figures.is_closed(), typical) {
            found.extend(
                judge_series(&series, runs.len() as f64).map(|what| in_run(figures, run, &what)),
            );
        }
    }
    found.extend(
        runs.iter().filter_map(|run| silent_seconds(run).map(|what| in_run(figures, run, &what))),
    );
    found.extend(groups(figures));
    if long.is_empty() {
        let longest = runs.iter().map(|run| full(run).len()).max().unwrap_or(0);
        return StepFinding::worst(
            found,
            StepFinding::not_checked(format!(
                "Change over time needs a run of {FEWEST_SLICES} seconds, and the longest had {longest}."
            )),
        );
    }
    let slices = full(long[0]).len();
    StepFinding::worst(
        found,
        StepFinding::passed(format!(
            "Over {} neither throughput nor {} changed or drifted.",
            counted(slices as u64, "second", "seconds"),
            typical.name()
        )),
    )
}

fn in_run(figures: &Figures<'_>, run: &Run, what: &str) -> StepFinding {
    if figures.step.runs.len() > 1 {
        StepFinding::care(format!("Run {}: {what}", run.order))
    } else {
        let mut letters = what.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        StepFinding::care(first.chain(letters).collect::<String>())
    }
}

fn full(run: &Run) -> Vec<&Slice> {
    run.slices.iter().filter(|slice| slice.length_ms >= 1_000).collect()
}

/// What stands for the latencies of a second. Seconds hold all endpoints together, and the median
/// of several may jump from one to another with the mix; the mean does not.
#[derive(Clone, Copy)]
enum Typical {
    Median,
    Mean,
}

impl Typical {
    fn name(self) -> &'static str {
        match self {
            Typical::Median => "median",
            Typical::Mean => "mean latency",
        }
    }

    fn of(self, slice: &Slice) -> f64 {
        match self {
            Typical::Median => slice.p50_ns as f64,
            Typical::Mean => slice.mean_ns as f64,
        }
    }
}

fn has_several_endpoints(runs: &[Run]) -> bool {
    let asked = |run: &Run| run.endpoints.iter().filter(|e| e.counters.sent > 0).count();
    runs.iter().any(|run| asked(run) > 1)
}

fn series_of(run: &Run, closed: bool, typical: Typical) -> Vec<Series> {
    let slices = full(run);
    let per_s = |slice: &&Slice| slice.successes as f64 * 1e3 / slice.length_ms as f64;
    let answered = slices.iter().filter(|slice| slice.successes > 0);
    let latencies = answered.map(|slice| typical.of(slice)).collect();
    let mut series = Vec::new();
    if closed {
        series.push(Series::new("throughput", 0.05, rate, slices.iter().map(per_s).collect()));
    }
    series.push(Series::new(typical.name(), 0.10, duration, latencies));
    series
}

impl Series {
    fn new(name: &'static str, matters: f64, write: fn(f64) -> String, values: Vec<f64>) -> Self {
        let grouped = values.len().div_ceil(MOST_VALUES).max(1);
        let mean = |group: &[f64]| group.iter().sum::<f64>() / group.len() as f64;
        let values = values.chunks(grouped).map(mean).collect();
        Series { name, matters, write, values, grouped }
    }
}

fn judge_series(series: &Series, runs: f64) -> Option<String> {
    let sure = |p: f64| p * runs < 0.05;
    let change = change_point(&series.values).filter(|change| {
        change.before > 0.0
            && sure(change.p)
            && (change.after / change.before - 1.0).abs() >= series.matters
    });
    let trend =
        trend(&series.values).filter(|trend| sure(trend.p) && trend.share.abs() >= series.matters);
    match (change, trend) {
        (None, None) => None,
        (Some(change), None) => Some(say_change(series, &change)),
        (None, Some(trend)) => Some(say_trend(series, &trend)),
        // Both fit something: say what fits better.
        (Some(change), Some(trend)) => {
            Some(if misfit_of_step(series, &change) <= misfit_of_line(series, &trend) {
                say_change(series, &change)
            } else {
                say_trend(series, &trend)
            })
        }
    }
}

fn say_change(series: &Series, change: &Change) -> String {
    let ratio = change.after / change.before - 1.0;
    format!(
        "after {} the {} changed from {} to {} ({}{}), so no single figure stands for the whole run.",
        counted((change.at * series.grouped) as u64, "second", "seconds"),
        series.name,
        (series.write)(change.before),
        (series.write)(change.after),
        if ratio > 0.0 { "+" } else { "−" },
        percent(ratio.abs())
    )
}

fn say_trend(series: &Series, trend: &Trend) -> String {
    format!(
        "the {} {} steadily by {} over the run, so it had not settled.",
        series.name,
        if trend.share > 0.0 { "rose" } else { "fell" },
        percent(trend.share.abs())
    )
}

fn misfit_of_step(series: &Series, change: &Change) -> f64 {
    let level = |i: usize| if i < change.at { change.before } else { change.after };
    series.values.iter().enumerate().map(|(i, value)| (value - level(i)).abs()).sum()
}

fn misfit_of_line(series: &Series, trend: &Trend) -> f64 {
    let (middle, n) = (median(&series.values), series.values.len() as f64);
    let line = |i: usize| middle * (1.0 + trend.share * (i as f64 / (n - 1.0) - 0.5));
    series.values.iter().enumerate().map(|(i, value)| (value - line(i)).abs()).sum()
}

fn silent_seconds(run: &Run) -> Option<String> {
    let slices = full(run);
    let successes: Vec<f64> = slices.iter().map(|slice| slice.successes as f64).collect();
    let silent = successes.iter().filter(|count| **count == 0.0).count();
    // Fewer a second than ten may leave one out by chance: e^-10.
    (silent > 0 && successes.iter().sum::<f64>() / successes.len() as f64 >= 10.0).then(|| {
        format!(
            "in {silent} of {} not one request succeeded.",
            counted(slices.len() as u64, "second", "seconds")
        )
    })
}

/// Two groups within an endpoint: that endpoints differ from each other is no news.
fn groups(figures: &Figures<'_>) -> Vec<StepFinding> {
    let endpoints = figures.step.merged_endpoints();
    let several = endpoints.len() > 1;
    let found = endpoints.iter().filter_map(|endpoint| {
        let latency = endpoint.latency();
        // A coarse clock has groups of its own making.
        if clock::is_coarse(latency) {
            return None;
        }
        let groups = modes::two_groups(latency)?;
        let of = if several { format!(" of {}", endpoint.name) } else { String::new() };
        Some(StepFinding::note(format!(
            "The latencies{of} fall into two groups, {} around {} and {} around {}: no single figure describes both.",
            percent(groups.fast_share),
            duration(groups.fast_ns),
            percent(1.0 - groups.fast_share),
            duration(groups.slow_ns)
        )))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::{Outcome, Step};

    fn judged(seconds: u64, change: impl Fn(&mut Step)) -> StepFinding {
        let mut step = build::closed(4).seconds(seconds).step();
        change(&mut step);
        judge(&Figures::of(&step).unwrap())
    }

    #[test]
    fn a_steady_run_passes_and_a_short_one_is_not_judged() {
        for seconds in [10, 30, 60, 700] {
            let finding = judged(seconds, |_| ());
            assert_eq!(finding.outcome, Outcome::Passed, "{finding:?}");
        }
        assert_eq!(judged(9, |_| ()).outcome, Outcome::NotChecked);
        // The last, shorter slice does not count.
        assert_eq!(
            judged(10, |step| step.runs[0].slices[9].length_ms = 400).outcome,
            Outcome::NotChecked
        );
    }

    #[test]
    fn a_drop_is_found_and_placed() {
        for (seconds, at) in [(10, 5), (30, 20), (1_300, 801)] {
            let finding = judged(seconds, |step| {
                for slice in &mut step.runs[0].slices[at..] {
                    slice.successes = slice.successes * 7 / 10;
                }
            });
            assert_eq!(finding.outcome, Outcome::Care);
            assert!(
                finding.sentence.starts_with(&format!("After {at} seconds the throughput")),
                "{finding:?}"
            );
            assert!(finding.sentence.contains("(−30."), "{finding:?}");
        }
    }

    #[test]
    fn a_rise_is_called_a_rise() {
        let finding = judged(20, |step| {
            for (i, slice) in step.runs[0].slices.iter_mut().enumerate() {
                slice.p50_ns += i as u64 * 30_000;
            }
        });
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(finding.sentence.contains("median rose steadily by"), "{finding:?}");
    }

    #[test]
    fn the_median_of_several_endpoints_is_not_asked_but_their_mean_is() {
        let of_two = |mean_ns: fn(u64) -> u64| {
            judged(20, |step| {
                let mut other = step.runs[0].endpoints[0].clone();
                other.name = "slow".into();
                step.runs[0].endpoints.push(other);
                for (second, slice) in step.runs[0].slices.iter_mut().enumerate() {
                    // The mix tips over, and with it the median: from one endpoint to the other.
                    slice.p50_ns = if second < 10 { 100_000 } else { 3_000_000 };
                    slice.mean_ns = mean_ns(second as u64);
                }
            })
        };
        let mixed = of_two(|second| 1_500_000 + second % 3 * 10_000);
        assert_eq!(mixed.outcome, Outcome::Passed, "{mixed:?}");
        let slower = of_two(|second| 1_500_000 + second * 100_000);
        assert_eq!(slower.outcome, Outcome::Care, "{slower:?}");
        assert!(slower.sentence.contains("mean latency"), "{slower:?}");
    }

    #[test]
    fn small_changes_do_not_matter() {
        let finding = judged(30, |step| {
            for slice in &mut step.runs[0].slices[15..] {
                slice.successes = slice.successes * 97 / 100;
            }
        });
        assert_eq!(finding.outcome, Outcome::Passed, "{finding:?}");
    }

    #[test]
    fn in_open_loop_only_the_median_is_asked() {
        let mut step = build::open(100.0).step();
        for slice in &mut step.runs[0].slices[5..] {
            slice.successes /= 2;
        }
        assert_eq!(judge(&Figures::of(&step).unwrap()).outcome, Outcome::Passed);
    }

    #[test]
    fn a_second_of_silence_is_named() {
        let finding = judged(20, |step| step.runs[0].slices[7].successes = 0);
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(
            finding.sentence.contains("In 1 of 20 seconds not one request succeeded"),
            "{finding:?}"
        );
    }

    #[test]
    fn two_groups_are_a_note() {
        let finding = judged(20, |step| {
            let service = &mut step.runs[0].endpoints[0].service;
            service.merge(&build::spread(80_000, 30.0));
        });
        assert_eq!(finding.outcome, Outcome::Note);
        assert!(finding.sentence.contains("two groups, 49.7% around"), "{finding:?}");
    }
}
