//! The simulator finds every planted bug, finds nothing else, and is deterministic.

use wellspring_log::plants::Plant;
use wellspring_sim::run::{catch_panics, run};

#[test]
fn the_same_seed_gives_the_same_history_byte_for_byte() {
    // None of them runs out of files: the thread that seals indexes opens its own when the system
    // lets it run.
    for seed in [0, 3, 60, 99] {
        let (first, second) = (run(seed, None, false), run(seed, None, false));
        assert!(first.trace.lines().count() > 100);
        assert!(first.trace == second.trace, "seed {seed}");
    }
}

#[test]
fn histories_without_a_planted_bug_are_clean() {
    for seed in 0..60 {
        let outcome = run(seed, None, false);
        assert!(outcome.violation.is_none(), "seed {seed}: {:?}", outcome.violation);
    }
}

#[test]
fn every_planted_bug_is_found_within_200_seeds() {
    catch_panics();
    // A shared log has no floor: the log's own tests plant these.
    let of_cuts = [Plant::ForgetsFloor, Plant::JudgesTheRest];
    let missed: Vec<&str> = (Plant::ALL.iter().filter(|plant| !of_cuts.contains(plant)))
        .filter(|plant| (0..200).all(|seed| run(seed, Some(**plant), false).violation.is_none()))
        .map(|plant| plant.name())
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
