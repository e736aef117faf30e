//! C10, repeats: how much a figure changes when nothing does.
//!
//! Of the runs of a step: the coefficient of variation (standard deviation ÷ mean) of
//! the throughput and of the median latency. Above 10% needs care. Figures over the
//! runs are given with the range of the runs.
//!
//! With several endpoints each has a median of its own, and the one that varies most is judged. The
//! median over all of them may lie between two groups of latencies, where it moves with the mix and
//! not with the server.
//!
//! The minimum detectable effect is the smallest difference between two such sets of runs
//! that a two-sided test at 5% finds four times in five:
//! `(t(0.975) + t(0.80)) × CV × √(2 ÷ k)`, Student's `t` with `2k − 2` degrees of freedom.
//!
//! One run is a note: it may be measured well and still not be reproducible. Several steps
//! whose repeats were made in blocks, one step after the other, are a note too: a drift of
//! the machine then looks like a difference between steps. Interleaved runs share it.

use super::figures::{Figures, StepFinding};
use crate::histogram::Histogram;
use crate::numbers::{counted, duration, percent, rate};
use crate::result::{Report, Run, Step};
use crate::stats::mean_of_runs;

/// The coefficient of variation from which the figures need care.
const CARE_VARIATION: f64 = 0.10;

/// Student's t: degrees of freedom, the 0.975 and the 0.80 quantile.
const STUDENT: [(usize, f64, f64); 13] = [
    (2, 4.303, 1.061),
    (4, 2.776, 0.941),
    (6, 2.447, 0.906),
    (8, 2.306, 0.889),
    (10, 2.228, 0.879),
    (12, 2.179, 0.873),
    (14, 2.145, 0.868),
    (16, 2.120, 0.865),
    (18, 2.101, 0.862),
    (28, 2.048, 0.855),
    (38, 2.024, 0.851),
    (58, 2.002, 0.848),
    (98, 1.984, 0.845),
];

/// Standard deviation ÷ mean, with `k − 1`. `None` for fewer than two values or a mean of 0.
#[must_use]
pub(crate) fn variation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || mean == 0.0 {
        return None;
    }
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((square / (n - 1.0)).sqrt() / mean)
}

/// The smallest difference, as a share, that comparing two sets of `repeats` runs with this
/// coefficient of variation finds with 80% probability. `None` for fewer than two repeats.
#[must_use]
pub(crate) fn minimum_detectable_effect(variation: f64, repeats: usize) -> Option<f64> {
    let freedom = (2 * repeats).checked_sub(2).filter(|freedom| *freedom >= 2)?;
    // The table's next lower entry: on the safe side between entries.
    let (_, two_sided, power) = STUDENT.iter().rev().find(|row| row.0 <= freedom)?;
    Some((two_sided + power) * variation * (2.0 / repeats as f64).sqrt())
}

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let runs = &figures.step.runs;
    if runs.len() < 2 {
        return StepFinding::note(
            "Measured once: its variation from run to run is unknown, so do not compare it (--repeat 5).",
        );
    }
    let throughput: Vec<f64> = runs.iter().map(Run::throughput_per_s).collect();
    let Some(of_throughput) = variation(&throughput) else {
        return StepFinding::not_checked(
            "No run had a success, so there is no variation to speak of.",
        );
    };
    let medians = least_steady_medians(runs);
    let worst = of_throughput.max(medians.as_ref().map_or(0.0, |medians| medians.variation));
    let facts = format!(
        "{}: throughput {} ({}, {} variation){}",
        counted(runs.len() as u64, "run", "runs"),
        rate(figures.step.throughput_per_s()),
        range(&throughput, rate),
        percent(of_throughput),
        medians.map_or(String::new(), |medians| format!(
            ", median latency{} {} ({}, {} variation)",
            medians.endpoint.map_or(String::new(), |name| format!(" of {name}")),
            duration(mean_of_runs(&medians.values_ns).unwrap_or(0.0)),
            range(&medians.values_ns, duration),
            percent(medians.variation)
        ))
    );
    let effect = minimum_detectable_effect(worst, runs.len()).unwrap_or(f64::INFINITY);
    if worst > CARE_VARIATION {
        return StepFinding::care(format!(
            "{facts}: the figures change from run to run, and differences under {} would not be detected.",
            percent(effect)
        ));
    }
    StepFinding::passed(format!(
        "{facts}; differences under {} would not be detected.",
        percent(effect)
    ))
}

/// The median latency of one endpoint in each run.
struct Medians<'a> {
    /// `None` if there is only one.
    endpoint: Option<&'a str>,
    values_ns: Vec<f64>,
    variation: f64,
}

/// The medians of the endpoint whose medians vary most; `None` if they are too few. Of several
/// endpoints, those with fewer than 20 answers in a run are left out: chance alone moves their
/// medians.
fn least_steady_medians(runs: &[Run]) -> Option<Medians<'_>> {
    let mut names: Vec<&str> = Vec::new();
    for endpoint in runs.iter().flat_map(|run| &run.endpoints) {
        if !names.contains(&endpoint.name.as_str()) {
            names.push(&endpoint.name);
        }
    }
    let several = names.len() > 1;
    let of_each = names.into_iter().filter_map(|name| {
        let those = runs.iter().filter_map(|run| run.endpoints.iter().find(|e| e.name == name));
        let median = |latency: &Histogram| {
            if several { latency.printable_quantile_ns(0.5) } else { latency.quantile_ns(0.5) }
        };
        let values_ns: Vec<f64> =
            those.filter_map(|e| median(e.latency())).map(|ns| ns as f64).collect();
        let variation = variation(&values_ns)?;
        Some(Medians { endpoint: several.then_some(name), values_ns, variation })
    });
    of_each.max_by(|one, other| one.variation.total_cmp(&other.variation))
}

fn range(values: &[f64], write: fn(f64) -> String) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} … {}", write(low), write(high))
}

/// Says of the whole report whether the repeats of its steps were interleaved; `None`
/// for one step or one repeat, where there is nothing to interleave.
pub(super) fn interleaving(report: &Report) -> Option<StepFinding> {
    let repeated: Vec<&Step> = report.steps.iter().filter(|step| step.runs.len() > 1).collect();
    if repeated.len() < 2 {
        return None;
    }
    let blocks = repeated.iter().filter(|step| is_block(step)).count();
    Some(if blocks > 0 {
        StepFinding::note(format!(
            "The repeats of {blocks} of {} were made in blocks, not interleaved with those of other steps: a drift of the machine looks like a difference between steps.",
            counted(repeated.len() as u64, "step", "steps")
        ))
    } else {
        StepFinding::passed(
            "The repeats of the steps were interleaved, so a drift of the machine affects all of them alike.",
        )
    })
}

/// Whether no run of another step came between the first and the last of this one.
fn is_block(step: &Step) -> bool {
    let orders = || step.runs.iter().map(|run| run.order);
    let (Some(first), Some(last)) = (orders().min(), orders().max()) else { return false };
    (last - first) as usize == step.runs.len() - 1
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::Outcome;

    fn judged(factors: &[f64]) -> StepFinding {
        judge(&Figures::of(&build::closed(4).repeats(factors).step()).unwrap())
    }

    #[test]
    fn one_run_is_a_note_steady_ones_pass_and_others_need_care() {
        assert_eq!(judged(&[1.0]).outcome, Outcome::Note);
        let steady = judged(&[1.0, 1.01, 0.99, 1.0, 1.02]);
        assert_eq!(steady.outcome, Outcome::Passed);
        assert!(
            steady.sentence.starts_with("5 runs: throughput 3,976/s (3,920/s … 4,039/s"),
            "{steady:?}"
        );
        let unsteady = judged(&[1.0, 1.3, 0.8, 1.0, 1.1]);
        assert_eq!(unsteady.outcome, Outcome::Care);
        assert!(unsteady.sentence.contains("change from run to run"), "{unsteady:?}");
    }

    /// Runs of a fast and a slow endpoint, each as steady as can be, in shares that change a
    /// little: the median over both jumps from the one to the other.
    fn mixed(fast_shares: &[u64]) -> Step {
        let mut step = build::closed(4).repeats(&vec![1.0; fast_shares.len()]).step();
        for (run, fast) in step.runs.iter_mut().zip(fast_shares) {
            let endpoint = |name: &str, ns: u64, count: u64| {
                let mut endpoint = crate::result::EndpointResult::new(name);
                endpoint.counters.successes = count;
                endpoint.service.record_n(ns, count);
                endpoint
            };
            run.endpoints =
                vec![endpoint("fast", 100_000, *fast), endpoint("slow", 3_000_000, 10_000 - *fast)];
        }
        step
    }

    #[test]
    fn a_changing_mix_of_steady_endpoints_is_no_variation() {
        let step = mixed(&[4_900, 5_100, 4_950, 5_050, 4_980]);
        let finding = judge(&Figures::of(&step).unwrap());
        assert_eq!(finding.outcome, Outcome::Passed, "{finding:?}");
        let mut unsteady = step.clone();
        for (run, ns) in unsteady.runs.iter_mut().zip([3_000_000, 4_500_000, 2_000_000]) {
            let slow = &mut run.endpoints[1];
            slow.service = Histogram::new();
            slow.service.record_n(ns, 5_000);
        }
        let finding = judge(&Figures::of(&unsteady).unwrap());
        assert_eq!(finding.outcome, Outcome::Care, "{finding:?}");
        assert!(finding.sentence.contains("median latency of slow "), "{finding:?}");
    }

    #[test]
    fn the_figures_are_those_of_the_textbook() {
        let of = variation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((of - 2.138_09 / 5.0).abs() < 1e-5, "{of}");
        assert_eq!(variation(&[1.0]), None);
        // k = 5, CV = 10%: (2.306 + 0.889) × 0.1 × √0.4.
        let effect = minimum_detectable_effect(0.1, 5).unwrap();
        assert!((effect - 0.2021).abs() < 1e-3, "{effect}");
        assert_eq!(minimum_detectable_effect(0.1, 1), None);
        let many = minimum_detectable_effect(0.1, 1_000).unwrap();
        assert!((many - 0.01265).abs() < 1e-4, "{many}");
    }

    #[test]
    fn blocks_are_told_from_interleaved_runs() {
        let (mut one, mut two) = (
            build::closed(1).repeats(&[1.0; 3]).step(),
            build::closed(2).repeats(&[1.0; 3]).step(),
        );
        for (at, run) in two.runs.iter_mut().enumerate() {
            run.order = at as u32 + 4;
        }
        let finding = interleaving(&build::report(vec![one.clone(), two.clone()])).unwrap();
        assert_eq!(finding.outcome, Outcome::Note);
        for at in 0..3 {
            one.runs[at].order = at as u32 * 2 + 1;
            two.runs[at].order = at as u32 * 2 + 2;
        }
        let finding = interleaving(&build::report(vec![one.clone(), two])).unwrap();
        assert_eq!(finding.outcome, Outcome::Passed);
        assert_eq!(interleaving(&build::report(vec![one])), None);
    }
}
