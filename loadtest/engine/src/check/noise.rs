//! C8, noise: what else the machine did meanwhile. Any of these needs care:
//!
//! - other programs used more than 5% of all processors;
//! - the hypervisor took more than 1% of the processor time (steal);
//! - the control group was throttled for more than 1% of the measured time;
//! - the calibration, a fixed piece of work timed before and after each run, took between
//!   its fastest and its slowest more than 3% longer. It alone sees a slower clock or a
//!   busy sibling core, for which no counter exists.
//!
//! Pressure (the share of time in which some task waited for a processor) is a note from
//! 25% on: client and server of one machine can cause it themselves.

use super::figures::{Figures, StepFinding};
use crate::numbers::{duration, percent};

/// The largest share of all processors that other programs may use.
const OTHER_CPU_SHARE: f64 = 0.05;
/// The largest share of processor time the hypervisor may take.
const STEAL_SHARE: f64 = 0.01;
/// The largest share of the measured time the control group may be throttled.
const THROTTLED_SHARE: f64 = 0.01;
/// The largest difference between calibrations, as a share.
const CALIBRATION_DRIFT: f64 = 0.03;
/// The share of time with waiting tasks from which it is worth a note.
const PRESSURE_SHARE: f64 = 0.25;

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let runs = &figures.step.runs;
    let worst = |of: &dyn Fn(&crate::result::Noise) -> Option<f64>| {
        runs.iter()
            .filter_map(|run| of(&run.noise))
            .fold(None, |worst: Option<f64>, one| Some(worst.map_or(one, |worst| worst.max(one))))
    };
    let other = worst(&|noise| noise.other_cpu_share);
    let steal = worst(&|noise| Some(noise.steal_share)).unwrap_or(0.0);
    let pressure = worst(&|noise| noise.cpu_pressure_share);
    let throttled = runs
        .iter()
        .filter_map(|run| Some(run.noise.throttled_ns? as f64 / (run.measured_ns as f64).max(1.0)))
        .fold(0.0, f64::max);
    let drift = calibration_drift(figures);

    let mut found = Vec::new();
    if let Some(other) = other.filter(|other| *other > OTHER_CPU_SHARE) {
        found.push(StepFinding::care(format!(
            "Other programs used {} of all processors.",
            percent(other)
        )));
    }
    if steal > STEAL_SHARE {
        found.push(StepFinding::care(format!(
            "The hypervisor took {} of the processor time.",
            percent(steal)
        )));
    }
    if throttled > THROTTLED_SHARE {
        found.push(StepFinding::care(format!(
            "The control group's limit paused its programs for {} of the time.",
            percent(throttled)
        )));
    }
    if let Some((drift, fastest, slowest)) = drift.filter(|drift| drift.0 > CALIBRATION_DRIFT) {
        found.push(StepFinding::care(format!(
            "The same piece of work took between {} and {} ({} apart): the machine did not keep its speed.",
            duration(fastest),
            duration(slowest),
            percent(drift)
        )));
    }
    if let Some(pressure) = pressure.filter(|pressure| *pressure > PRESSURE_SHARE) {
        found.push(StepFinding::note(format!(
            "Some task was waiting for a processor {} of the time.",
            percent(pressure)
        )));
    }
    if drift.is_none() && other.is_none() && pressure.is_none() {
        return StepFinding::worst(
            found,
            StepFinding::not_checked(
                "Neither the calibration nor the processor use of other programs is known.",
            ),
        );
    }
    StepFinding::worst(found, StepFinding::passed(quiet(drift.map(|drift| drift.0), other, steal)))
}

fn quiet(drift: Option<f64>, other: Option<f64>, steal: f64) -> String {
    let drift =
        drift.map_or("was not measured".into(), |drift| format!("drifted by {}", percent(drift)));
    let other = other.map_or("an unknown share".into(), percent);
    format!(
        "Other programs used {other} of all processors, the hypervisor took {}, the calibration {drift}.",
        percent(steal)
    )
}

/// How far the slowest calibration lies above the fastest, with both in nanoseconds; `None` if none
/// was made.
fn calibration_drift(figures: &Figures<'_>) -> Option<(f64, f64, f64)> {
    let runs = figures.step.runs.iter();
    let times =
        runs.flat_map(|run| [run.noise.calibration_before_ns, run.noise.calibration_after_ns]);
    let times: Vec<u64> = times.filter(|ns| *ns > 0).collect();
    let (fastest, slowest) = (*times.iter().min()? as f64, *times.iter().max()? as f64);
    (times.len() > 1).then_some((slowest / fastest - 1.0, fastest, slowest))
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::{Noise, Outcome};

    fn judged(change: impl Fn(&mut Noise)) -> StepFinding {
        let mut step = build::closed(4).repeats(&[1.0, 1.0]).step();
        change(&mut step.runs[1].noise);
        judge(&Figures::of(&step).unwrap())
    }

    #[test]
    fn a_quiet_machine_passes() {
        let finding = judged(|_| ());
        assert_eq!(finding.outcome, Outcome::Passed);
        assert!(finding.sentence.contains("drifted by 0.50%"), "{finding:?}");
    }

    #[test]
    fn each_disturbance_is_named() {
        type Trip = (&'static str, fn(&mut Noise));
        let trips: [Trip; 4] = [
            ("Other programs used 6.0%", |noise| noise.other_cpu_share = Some(0.06)),
            ("hypervisor took 2.0%", |noise| noise.steal_share = 0.02),
            ("for 5.0% of the time", |noise| noise.throttled_ns = Some(build::RUN_NS / 20)),
            ("(4.0% apart)", |noise| noise.calibration_after_ns = 1_040_000),
        ];
        for (text, trip) in trips {
            let finding = judged(trip);
            assert_eq!(finding.outcome, Outcome::Care, "{text}");
            assert!(finding.sentence.contains(text), "{finding:?}");
        }
        assert_eq!(judged(|noise| noise.cpu_pressure_share = Some(0.4)).outcome, Outcome::Note);
    }

    #[test]
    fn a_drift_between_runs_counts_as_well() {
        let finding = judged(|noise| {
            noise.calibration_before_ns = 1_100_000;
            noise.calibration_after_ns = 1_100_000;
        });
        assert_eq!(finding.outcome, Outcome::Care);
    }

    #[test]
    fn nothing_known_is_not_checked() {
        let mut step = build::closed(4).step();
        step.runs[0].noise = Noise::default();
        assert_eq!(judge(&Figures::of(&step).unwrap()).outcome, Outcome::NotChecked);
    }
}
