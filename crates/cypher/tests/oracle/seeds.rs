//! What must hold for the query and the graph of each seed.

use crate::evaluate::evaluate;
use crate::expression::Expression as E;
use crate::faults::{FAULTS, Fault};
use crate::generate::Generator;
use crate::model::Model;
use crate::product::Product;
use crate::query::{Clause, Query};
use crate::random::Random;
use crate::rewrite::rewritten;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;

const INDEXES: [&str; 4] = [
    "CREATE INDEX a FOR (n:A) ON (n.i)",
    "CREATE INDEX b FOR (n:B) ON (n.m)",
    "CREATE INDEX c FOR (n:C) ON (n.i, n.m)",
    "CREATE INDEX r FOR ()-[r:R]-() ON (r.i)",
];

/// The seeds that are always the same.
const FIXED: Range<u64> = 0..200;
/// Number of new seeds in a run.
const FRESH: u64 = 200;

/// What a seed showed.
enum Finding {
    Same,
    /// The two answers, and what was asked.
    Different(String),
    /// There were too many rows, or steps.
    NotCompared,
}

/// A way of finding that something is wrong, by seed and planted fault.
type Check = fn(u64, Option<Fault>) -> Finding;

fn seeds() -> Vec<u64> {
    if let Ok(given) = std::env::var("ORACLE_SEEDS") {
        let (first, end) = given.split_once("..").expect("ORACLE_SEEDS=FIRST..END");
        let number = |text: &str| text.parse::<u64>().expect("a seed");
        return (number(first)..number(end)).collect();
    }
    // The standard library keys each hasher at random.
    let fresh = RandomState::new().hash_one(0) >> 1;
    FIXED.chain(fresh..fresh + FRESH).collect()
}

fn rows(product: &mut Product, query: &Query, fault: Option<Fault>) -> Option<Vec<String>> {
    product.evaluate(&fault.map_or_else(|| query.text(), |fault| fault.misread(query).text()))
}

fn compare(first: &[String], second: &[String], asked: impl Fn() -> String) -> Finding {
    if first == second {
        Finding::Same
    } else {
        Finding::Different(format!("{}\n{first:#?}\n{second:#?}", asked()))
    }
}

/// The second evaluator has the same rows, with indexes and without.
fn agrees(seed: u64, fault: Option<Fault>) -> Finding {
    let mut random = Random::new(seed);
    let model = Model::random(&mut random, 5, 7);
    let query = Generator::new(random).query();
    let Some(expected) = evaluate(&model, &query) else { return Finding::NotCompared };
    for indexes in [&[][..], &INDEXES] {
        let mut product = Product::new(&model, indexes);
        let Some(found) = rows(&mut product, &query, fault) else { return Finding::NotCompared };
        if expected != found {
            let asked = || format!("{}\n{}", model.creation(), query.text());
            return compare(&expected, &found, asked);
        }
    }
    Finding::Same
}

/// Rows where a predicate holds, where it does not and where it is unknown are all rows.
fn partitions(seed: u64, fault: Option<Fault>) -> Finding {
    let mut random = Random::new(seed);
    let model = Model::random(&mut random, 9, 14);
    let (query, predicate) = Generator::new(random).partition();
    let mut product = Product::new(&model, &INDEXES);
    let Some(whole) = rows(&mut product, &query, fault) else { return Finding::NotCompared };
    let predicates = [predicate.clone(), E::not(predicate.clone()), E::is_null(predicate.clone())];
    let mut parts = Vec::new();
    for predicate in predicates {
        let mut query = query.clone();
        // Into the last pattern if there is one, so that the plan uses it.
        match query.clauses.last_mut() {
            Some(Clause::Match(pattern)) => {
                let known = pattern.condition.take().map(|condition| *condition);
                let both = known.map_or(predicate.clone(), |known| E::and(known, predicate));
                pattern.condition = Some(Box::new(both));
            }
            _ => query.clauses.push(Clause::Filter(Some(predicate))),
        }
        let Some(part) = rows(&mut product, &query, fault) else { return Finding::NotCompared };
        parts.extend(part);
    }
    parts.sort_unstable();
    let asked = || format!("{}\n{}\n{}", model.creation(), query.text(), predicate.text());
    compare(&whole, &parts, asked)
}

/// Another way of writing a query has the same rows.
fn rewritings(seed: u64, fault: Option<Fault>) -> Finding {
    let mut random = Random::new(seed);
    let model = Model::random(&mut random, 9, 14);
    let mut generator = Generator::new(random);
    let query = generator.query();
    let other = rewritten(&query, &mut generator.random);
    let first = rows(&mut Product::new(&model, &[]), &query, fault);
    let second = rows(&mut Product::new(&model, &INDEXES), &other, fault);
    let asked = || format!("{}\n{}\n{}", model.creation(), query.text(), other.text());
    match (first, second) {
        (Some(first), Some(second)) => compare(&first, &second, asked),
        _ => Finding::NotCompared,
    }
}

/// All seeds show the same, and most could be compared.
fn holds(check: Check) {
    let seeds = seeds();
    let mut compared = 0;
    for seed in &seeds {
        match check(*seed, None) {
            Finding::Same => compared += 1,
            Finding::Different(what) => panic!("ORACLE_SEEDS={seed}..{}\n{what}", seed + 1),
            Finding::NotCompared => {}
        }
    }
    assert!(compared * 10 >= seeds.len() * 9, "{compared} of {} were compared", seeds.len());
}

#[test]
fn both_evaluators_agree() {
    holds(agrees);
}

#[test]
fn partitions_are_the_whole() {
    holds(partitions);
}

#[test]
fn a_rewritten_query_has_the_same_rows() {
    holds(rewritings);
}

/// Whether a way finds a fault with the seeds that are always the same.
fn finds(check: Check, fault: Fault) -> bool {
    FIXED.clone().any(|seed| matches!(check(seed, Some(fault)), Finding::Different(_)))
}

#[test]
fn each_planted_fault_is_found() {
    for fault in FAULTS {
        assert!(finds(agrees, fault), "the second evaluator does not find {fault:?}");
    }
    assert!(finds(partitions, Fault::UnknownIsFalse));
    assert!(finds(rewritings, Fault::RelationshipUsedTwice));
}
