//! The report of a run: a table, unexpected outcomes, and the list of known failures.

use crate::kit::Case;
use crate::worker::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

fn list() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tck/known_failures.txt")
}

/// Prints the report. The run fails on an unknown failure and on a known failure that passes; a run
/// of selected scenarios shows why they fail and fails if one does.
pub(crate) fn report(cases: &[Case], outcomes: &[Outcome], some: bool) -> ExitCode {
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    let agrees = if some {
        for (case, outcome) in cases.iter().zip(outcomes) {
            if let Err(reason) = outcome {
                println!("{}\n    {reason}", case.name);
            }
        }
        failed == 0
    } else if std::env::var_os("TCK_BLESS").is_some() {
        bless(cases, outcomes);
        true
    } else {
        agrees(cases, outcomes)
    };
    table(cases, outcomes);
    println!("{} passed, {failed} failed", outcomes.len() - failed);
    if agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn table(cases: &[Case], outcomes: &[Outcome]) {
    let mut folders: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(outcomes) {
        let counts = folders.entry(&case.folder).or_default();
        counts.0 += usize::from(outcome.is_ok());
        counts.1 += 1;
    }
    for (folder, (passed, all)) in folders {
        println!("{folder:<40} {passed:>5} of {all:>5} {:>4} %", 100 * passed / all);
    }
}

fn bless(cases: &[Case], outcomes: &[Outcome]) {
    let failures = cases.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_err());
    let lines: String = failures.map(|(case, _)| format!("{}\n", case.name)).collect();
    std::fs::write(list(), lines).expect("the list of known failures can be written");
}

/// Whether exactly the known scenarios fail; prints the unexpected ones.
fn agrees(cases: &[Case], outcomes: &[Outcome]) -> bool {
    let known = std::fs::read_to_string(list()).expect("the list of known failures can be read");
    let mut known: BTreeSet<&str> = known.lines().collect();
    let mut agrees = true;
    for (case, outcome) in cases.iter().zip(outcomes) {
        match (outcome, known.remove(case.name.as_str())) {
            (Ok(()), true) => {
                agrees = false;
                println!("passes, and is to be taken off the list: {}", case.name);
            }
            (Err(reason), false) => {
                agrees = false;
                println!("fails: {}\n    {reason}", case.name);
            }
            (Ok(()), false) | (Err(_), true) => {}
        }
    }
    for name in known {
        agrees = false;
        println!("is on the list, and is no scenario: {name}");
    }
    agrees
}
