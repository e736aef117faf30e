//! Tests of the whole crate against a model.

mod history;
mod invariants;
mod model;
mod scenarios;

use crate::plants::{Plant, plant};
use history::History;

#[test]
fn random_histories_are_as_the_model_says() {
    for seed in 0..2_000 {
        let run = std::panic::catch_unwind(|| History::run(seed));
        assert!(run.is_ok(), "seed {seed}");
    }
}

#[test]
fn every_planted_bug_is_found_within_200_seeds() {
    for &bug in Plant::ALL {
        plant(Some(bug));
        let found = (0..200).find(|seed| std::panic::catch_unwind(|| History::run(*seed)).is_err());
        plant(None);
        println!("{bug:?}: seed {found:?}");
        assert!(found.is_some(), "{bug:?} is not found");
    }
}
