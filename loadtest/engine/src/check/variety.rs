//! C13: how many different requests were sent, and how many answers came from a cache.
//!
//! A server that is asked the same again answers from a cache of its own, of a proxy, or of the
//! processor. One request for all, or each more than a hundred times, is a note. Answers that say
//! that they came from a cache (`Age` above 0, `X-Cache: HIT`, status 304) need care from 10% on.

use super::figures::{Figures, StepFinding};
use crate::numbers::{count, counted, percent};

/// The share of answers from a cache from which the figures need care.
const CACHED_SHARE: f64 = 0.10;
/// How often each request may be sent before that is worth a note.
const OFTEN: u64 = 100;

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let runs = || figures.step.runs.iter().filter_map(|run| Some(run.total()?.counters));
    // Repeats send the same again: the largest run tells how many there are.
    let largest = runs()
        .filter_map(|counters| Some((counters.distinct_requests?, counters.sent)))
        .max_by_key(|(distinct, _)| *distinct);
    let hits = figures.total.counters.cache_hits;
    let answers = figures.answers();
    let mut found = Vec::new();
    if let Some(hits) = hits.filter(|hits| *hits > 0 && answers > 0) {
        let share = hits as f64 / answers as f64;
        let sentence = format!(
            "{} of {} came from a cache ({}).",
            count(hits),
            counted(answers, "answer", "answers"),
            percent(share)
        );
        found.push(if share >= CACHED_SHARE {
            StepFinding::care(sentence)
        } else {
            StepFinding::note(sentence)
        });
    }
    match largest {
        Some((1, sent)) if sent > 1 => found.push(StepFinding::note(format!(
            "All {} were the same, so caches may answer better than they would in use.",
            counted(figures.total.counters.sent, "request", "requests")
        ))),
        Some((distinct, sent)) if distinct > 0 && sent / distinct > OFTEN => found.push(StepFinding::note(format!(
            "{} were sent, each about {} times, so caches may answer better than they would in use.",
            counted(distinct, "different request", "different requests"),
            count(sent / distinct)
        ))),
        _ => {}
    }
    let cached = match hits {
        Some(_) => "no answer said that it came from a cache",
        None => "whether answers came from a cache was not looked at",
    };
    match largest {
        None => StepFinding::worst(
            found,
            StepFinding::not_checked(format!(
                "How many different requests were sent is not known; {cached}."
            )),
        ),
        Some((distinct, sent)) => StepFinding::worst(
            found,
            StepFinding::passed(format!(
                "{} of {} were different; {cached}.",
                count(distinct),
                counted(sent, "request", "requests")
            )),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::Outcome;

    fn with(distinct: Option<u64>, hits: Option<u64>) -> StepFinding {
        let mut step = build::closed(1).repeats(&[1.0, 1.0]).step();
        for run in &mut step.runs {
            let counters = &mut run.endpoints[0].counters;
            (counters.distinct_requests, counters.cache_hits) = (distinct, hits);
        }
        judge(&Figures::of(&step).unwrap())
    }

    #[test]
    fn different_requests_pass_and_the_same_are_noted() {
        assert_eq!(with(Some(9_900), Some(0)).outcome, Outcome::Passed);
        let same = with(Some(1), Some(0));
        assert_eq!(same.outcome, Outcome::Note);
        assert!(same.sentence.starts_with("All 19,800 requests were the same"), "{same:?}");
        let few = with(Some(9), Some(0));
        assert!(
            few.sentence.starts_with("9 different requests were sent, each about 1,100 times"),
            "{few:?}"
        );
        assert_eq!(with(Some(100), None).outcome, Outcome::Passed);
        assert_eq!(with(None, None).outcome, Outcome::NotChecked);
    }

    #[test]
    fn cache_hits_are_counted_over_all_runs() {
        assert_eq!(with(Some(9_900), Some(5)).outcome, Outcome::Note);
        let many = with(None, Some(4_950));
        assert_eq!(many.outcome, Outcome::Care);
        assert!(
            many.sentence.contains("9,900 of 19,800 answers came from a cache (50.0%)"),
            "{many:?}"
        );
    }
}
