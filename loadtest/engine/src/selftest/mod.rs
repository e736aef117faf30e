//! The load tester against itself: runs against built-in servers of known
//! behaviour, whose reports must say what really happened.
//!
//! *Truth* is what the server wrote down and what a second stopwatch beside the
//! engine saw, by one clock: not what was intended. What must be exact (every
//! count, every sum, no success that was not wholly sent) is asked of every
//! machine. What a busy machine can spoil (quantiles, lateness, spacing) is
//! tried up to three times while a thread watches whether the machine lets
//! anybody wake up in time; if it does not, the case is skipped by name, never
//! passed. `docs/bench/self-test.md` lists every case and the stated errors.

mod books;
mod cases;
mod ledger;
mod offer;
mod render;
mod server;
mod stillness;
mod stopwatch;
mod truth;

pub use render::render_text;

use crate::clock::Clock;
use ledger::{Ledger, Mismatch, Trouble};
use std::fmt;
use stillness::Watch;

/// How often a case that depends on the machine is tried.
const TRIES: u32 = 3;
/// The share of its time a worker may wait for a processor on a machine called still.
const STILL_DELAY_SHARE: f64 = 0.05;

/// What to test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How long it may take.
    pub extent: Extent,
    /// Seed of everything random.
    pub seed: u64,
    /// Only the cases whose name contains this text; empty for all.
    pub only: String,
}

/// How long the self-test may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// About half a minute.
    #[default]
    Short,
    /// A few minutes: a stall of 1 s in 20 s, ten times as many samples, a million requests.
    Long,
}

/// What came of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseOutcome {
    /// Short name, unique.
    pub name: &'static str,
    /// What the server does and what must be reported.
    pub about: &'static str,
    /// Whether it was.
    pub outcome: Outcome,
    /// What was measured, in words; empty if there is nothing to say.
    pub measured: String,
    /// How many single expectations were checked.
    pub expectations: u64,
    /// How often it was tried.
    pub tries: u32,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// Whether a case's report was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every expectation was met.
    Passed,
    /// One was not.
    Failed {
        /// What was expected, and of what.
        expected: String,
        /// What was reported instead.
        got: String,
    },
    /// It could not be judged here; the text says why.
    Skipped(String),
}

/// What all outcomes together say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every case passed.
    Passed,
    /// None failed, but not all could be judged on this machine.
    Incomplete,
    /// At least one case failed: do not trust this build's reports.
    Failed,
}

impl Verdict {
    /// Of these outcomes. No outcome at all is incomplete.
    #[must_use]
    pub fn of(outcomes: &[CaseOutcome]) -> Self {
        let any = |wanted: fn(&Outcome) -> bool| outcomes.iter().any(|one| wanted(&one.outcome));
        if any(|outcome| matches!(outcome, Outcome::Failed { .. })) {
            Verdict::Failed
        } else if outcomes.is_empty() || any(|outcome| matches!(outcome, Outcome::Skipped(_))) {
            Verdict::Incomplete
        } else {
            Verdict::Passed
        }
    }

    /// The exit code of `bench self-test`: 1 only if a case failed.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Passed | Verdict::Incomplete => 0,
            Verdict::Failed => 1,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Passed => "PASSED",
            Verdict::Incomplete => "INCOMPLETE",
            Verdict::Failed => "FAILED",
        })
    }
}

/// One case.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    about: &'static str,
    run: fn(&Bench, &mut Ledger) -> Result<(), Trouble>,
}

/// What cases share.
#[derive(Clone, Copy, Debug)]
struct Bench {
    clock: Clock,
    extent: Extent,
    seed: u64,
}

impl Bench {
    /// A size that depends on how long the self-test may take.
    fn size<T>(&self, short: T, long: T) -> T {
        match self.extent {
            Extent::Short => short,
            Extent::Long => long,
        }
    }
}

/// The names of all cases and what they are about.
#[must_use]
pub fn list() -> Vec<(&'static str, &'static str)> {
    cases::all().iter().map(|case| (case.name, case.about)).collect()
}

/// Runs the self-test, one case after another, and tells each outcome as it comes.
/// Everything happens on loopback, on free ports; nothing is left running.
pub fn run_all(options: &Options, tell: &mut dyn FnMut(&CaseOutcome)) -> Vec<CaseOutcome> {
    let bench = Bench { clock: Clock::start(), extent: options.extent, seed: options.seed };
    let mut outcomes = Vec::new();
    for case in cases::all() {
        if case.name.contains(&options.only) {
            let outcome = run_case(&bench, &case);
            tell(&outcome);
            outcomes.push(outcome);
        }
    }
    outcomes
}

fn run_case(bench: &Bench, case: &Case) -> CaseOutcome {
    let begun_ns = bench.clock.now_ns();
    let mut tries = Vec::new();
    let outcome = loop {
        let (tried, over) = run_once(bench, case);
        tries.push(tried);
        if let Some(outcome) = over {
            break outcome;
        }
        if tries.len() >= TRIES as usize {
            break undecided(&tries);
        }
    };
    let last = tries.last().map(|tried| &tried.ledger);
    let mut measured = last.map(|ledger| ledger.notes.clone()).unwrap_or_default();
    if outcome == Outcome::Passed {
        // A pass after misses says what was missed.
        let missed = tries.iter().filter_map(|tried| tried.ledger.untimely.first());
        measured
            .extend(missed.map(|one| format!("missed before: {}, got {}", one.expected, one.got)));
    }
    CaseOutcome {
        name: case.name,
        about: case.about,
        outcome,
        measured: measured.join("; "),
        expectations: last.map_or(0, |ledger| ledger.asked),
        tries: u32::try_from(tries.len()).unwrap_or(TRIES),
        took_ms: (bench.clock.now_ns() - begun_ns) / 1_000_000,
    }
}

/// One try of a case, and how still the machine was meanwhile.
struct CaseAttempt {
    ledger: Ledger,
    /// In words, if it was not still.
    unrest: Option<String>,
}

/// Tries a case once. The outcome is `None` if only times were missed.
fn run_once(bench: &Bench, case: &Case) -> (CaseAttempt, Option<Outcome>) {
    let mut ledger = Ledger::default();
    let watch = Watch::start();
    let result = (case.run)(bench, &mut ledger);
    let stillness = watch.map(Watch::finish).unwrap_or_default();
    ledger.forgive(stillness.excess_ns());
    let unrest = if !stillness.is_still() {
        Some(format!(
            "a thread that slept for 1 ms woke up {} too late (median) and {} (p99)",
            ledger::duration(stillness.p50_ns),
            ledger::duration(stillness.p99_ns)
        ))
    } else if ledger.delayed_share > STILL_DELAY_SHARE {
        let percent = ledger.delayed_share * 100.0;
        Some(format!("the client waited {percent:.0}% of its time for a processor"))
    } else {
        None
    };
    let outcome = match result {
        Err(Trouble::Unsuited(why)) => Some(Outcome::Skipped(why)),
        Err(Trouble::Broken(why)) => {
            Some(Outcome::Failed { expected: "the case can be run".into(), got: why })
        }
        Ok(()) if !ledger.wrong.is_empty() => Some(failed(&ledger.wrong)),
        Ok(()) if ledger.untimely.is_empty() => Some(Outcome::Passed),
        Ok(()) => None,
    };
    (CaseAttempt { ledger, unrest }, outcome)
}

/// Only times were missed, in every try: a failure, unless the machine was never still.
fn undecided(tries: &[CaseAttempt]) -> Outcome {
    if let Some(tried) = tries.iter().find(|tried| tried.unrest.is_none()) {
        return failed(&tried.ledger.untimely);
    }
    let unrest = tries.last().and_then(|tried| tried.unrest.clone()).unwrap_or_default();
    let missed = tries.last().and_then(|tried| tried.ledger.untimely.first());
    let missed = missed.map(|one| format!("{}, got {}", one.expected, one.got));
    Outcome::Skipped(format!(
        "machine too noisy: {unrest}; not met in {} tries: {}",
        tries.len(),
        missed.unwrap_or_default()
    ))
}

fn failed(mismatches: &[Mismatch]) -> Outcome {
    let Mismatch { expected, got, .. } = mismatches[0].clone();
    let more = mismatches.len() - 1;
    let got = if more == 0 { got } else { format!("{got} (and {more} more)") };
    Outcome::Failed { expected, got }
}

#[cfg(test)]
mod tests;
