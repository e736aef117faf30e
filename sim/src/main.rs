//! `cargo run -p wellspring-sim -- --seeds A..B [--reproduce N] [--plant BUG] [--threads N]`

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_sim::engine::EngineKind;
use wellspring_sim::run::{Bug, Outcome, catch_panics, run};
use wellspring_sim::trace;

const USAGE: &str = "\
wellspring-sim [--raft] --seeds A..B [--plant BUG] [--threads N]   runs these seeds; ends with an error if one fails
wellspring-sim [--raft] --reproduce N [--plant BUG]                runs one seed and prints all of it
wellspring-sim [--raft] --plants                                   lists the bugs that can be planted

--raft: over nodes of the Raft engine, in place of one that does all that an engine may do.

With a planted bug it is an error if no seed finds it.";

struct Arguments {
    seeds: std::ops::Range<u64>,
    reproduce: Option<u64>,
    kind: EngineKind,
    plant: Option<(&'static str, Bug)>,
    threads: usize,
}

fn asked() -> Result<Arguments, String> {
    let (kind, plant) = (EngineKind::Simulated, None);
    let mut asked = Arguments { seeds: 0..100, reproduce: None, kind, plant, threads: 2 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--seeds" => {
                let text = value()?;
                let range = text
                    .split_once("..")
                    .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
                asked.seeds = range.ok_or(format!("--seeds {text}: expected A..B"))?;
            }
            "--reproduce" => {
                let text = value()?;
                let seed =
                    text.parse().map_err(|_| format!("--reproduce {text}: expected a number"))?;
                asked.reproduce = Some(seed);
            }
            "--threads" => {
                let text = value()?;
                asked.threads =
                    text.parse().map_err(|_| format!("--threads {text}: expected a number"))?;
            }
            "--raft" => asked.kind = EngineKind::Raft,
            "--plant" => {
                let name = value()?;
                let plant = Bug::all(asked.kind).into_iter().find(|(of, _)| *of == name);
                asked.plant = Some(plant.ok_or(format!("no bug {name}; see --plants"))?);
            }
            "--plants" => {
                Bug::all(asked.kind).iter().for_each(|(name, _)| println!("{name}"));
                std::process::exit(0);
            }
            _ => return Err(format!("{word}?\n\n{USAGE}")),
        }
    }
    Ok(asked)
}

fn report(seed: u64, asked: &Arguments, outcome: &Outcome) {
    let Some(violation) = &outcome.violation else { return };
    println!("{}", trace::last(&outcome.trace, 60));
    println!("seed {seed}, step {}: {}: {}", violation.step, violation.invariant, violation.what);
    let raft = if asked.kind == EngineKind::Raft { "--raft " } else { "" };
    let plant = asked.plant.map_or(String::new(), |(name, _)| format!(" --plant {name}"));
    println!("reproduce: cargo run -p wellspring-sim -- {raft}--reproduce {seed}{plant}");
}

/// Runs the seeds on several threads; returns the first failure and the totals.
fn run_all(asked: &Arguments) -> (Option<(u64, Outcome)>, u64, u64, u64) {
    let next = AtomicU64::new(asked.seeds.start);
    let sums = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
    let failed: Mutex<Option<(u64, Outcome)>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..asked.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = failed.lock().expect("no panic").is_some();
                    if is_over || !asked.seeds.contains(&seed) {
                        return;
                    }
                    let outcome = run(seed, asked.kind, asked.plant.map(|(_, bug)| bug), false);
                    for (sum, n) in sums.iter().zip([1, outcome.steps, outcome.entries]) {
                        sum.fetch_add(n, Ordering::Relaxed);
                    }
                    if outcome.violation.is_some() {
                        let mut failed = failed.lock().expect("no panic");
                        if failed.as_ref().is_none_or(|(other, _)| seed < *other) {
                            *failed = Some((seed, outcome));
                        }
                    }
                }
            });
        }
    });
    let [seeds, steps, entries] = sums.map(AtomicU64::into_inner);
    (failed.into_inner().expect("no panic"), seeds, steps, entries)
}

fn main() -> ExitCode {
    let asked = match asked() {
        Ok(asked) => asked,
        Err(what) => {
            eprintln!("{what}");
            return ExitCode::from(2);
        }
    };
    catch_panics();
    if let Some(seed) = asked.reproduce {
        let outcome = run(seed, asked.kind, asked.plant.map(|(_, bug)| bug), true);
        report(seed, &asked, &outcome);
        return ExitCode::from(u8::from(outcome.violation.is_some()));
    }
    let (failed, seeds, steps, entries) = run_all(&asked);
    if let Some((seed, outcome)) = &failed {
        report(*seed, &asked, outcome);
    }
    println!("{seeds} seeds, {steps} steps, {entries} entries");
    match (asked.plant, failed) {
        (None, None) | (Some(_), Some(_)) => ExitCode::SUCCESS,
        (Some((name, _)), None) => {
            println!("{name} was not found");
            ExitCode::FAILURE
        }
        (None, Some(_)) => ExitCode::FAILURE,
    }
}
