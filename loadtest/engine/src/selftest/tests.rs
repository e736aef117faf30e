use super::*;

fn outcome(name: &'static str, outcome: Outcome) -> CaseOutcome {
    CaseOutcome {
        name,
        about: "what it is about",
        outcome,
        measured: "p50 2.05 ms".into(),
        expectations: 7,
        tries: 1,
        took_ms: 1234,
    }
}

fn wrong() -> Outcome {
    Outcome::Failed { expected: "successes: 5".into(), got: "6".into() }
}

fn bench() -> Bench {
    Bench { clock: Clock::start(), extent: Extent::Short, seed: 1 }
}

#[test]
fn one_failure_is_the_verdict_and_a_skipped_case_is_never_a_pass() {
    let passed = || outcome("a", Outcome::Passed);
    let skipped = || outcome("b", Outcome::Skipped("noise".into()));
    let failed = || outcome("c", wrong());
    assert_eq!(Verdict::of(&[passed()]), Verdict::Passed);
    assert_eq!(Verdict::of(&[passed(), skipped()]), Verdict::Incomplete);
    assert_eq!(Verdict::of(&[passed(), skipped(), failed()]), Verdict::Failed);
    assert_eq!(Verdict::of(&[]), Verdict::Incomplete);
    let codes = [Verdict::Passed, Verdict::Incomplete, Verdict::Failed].map(Verdict::exit_code);
    assert_eq!(codes, [0, 0, 1]);
}

#[test]
fn the_table_says_what_was_expected_and_what_came() {
    let text = render_text(&[
        outcome("latency/constant", Outcome::Passed),
        outcome("faults/drops", wrong()),
        outcome("pace/spin", Outcome::Skipped("machine too noisy".into())),
    ]);
    let expected = "\
passed   latency/constant    1234 ms  p50 2.05 ms
FAILED   faults/drops        1234 ms  p50 2.05 ms
         the case: what it is about
         expected: successes: 5
         got:      6
skipped  pace/spin           1234 ms  p50 2.05 ms
         because: machine too noisy

FAILED: 1 case failed, 1 passed, 1 could not be judged. Do not trust this build's reports.
";
    assert_eq!(text, expected);
}

#[test]
fn what_is_wrong_fails_at_once_and_what_is_late_is_tried_again() {
    let case = |run| Case { name: "a", about: "b", run };
    let exact = case(|_, ledger| {
        ledger.equal("answers", 1, 2);
        ledger.timely_count("late", 1, 2);
        Ok(())
    });
    let came = run_case(&bench(), &exact);
    assert_eq!((came.tries, came.expectations), (1, 2));
    let failed = Outcome::Failed { expected: "answers: 1".into(), got: "2".into() };
    assert_eq!(came.outcome, failed);

    let unsuited = case(|_, _| Err(Trouble::Unsuited("no IPv6".into())));
    assert_eq!(run_case(&bench(), &unsuited).outcome, Outcome::Skipped("no IPv6".into()));
    let broken = case(|_, _| Err(Trouble::Broken("no thread".into())));
    assert!(matches!(run_case(&bench(), &broken).outcome, Outcome::Failed { .. }));

    let late = case(|_, ledger| {
        ledger.timely_count("late", 1, 2);
        Ok(())
    });
    let came = run_case(&bench(), &late);
    assert_eq!(came.tries, TRIES);
    // Which of the two depends on the machine; a pass is not among them.
    assert_ne!(came.outcome, Outcome::Passed);
}

#[test]
fn times_missed_on_a_still_machine_are_a_failure_and_else_a_skip() {
    let tried = |unrest: Option<&str>| {
        let mut ledger = Ledger::default();
        ledger.timely_count("late", 1, 2);
        CaseAttempt { ledger, unrest: unrest.map(str::to_owned) }
    };
    let noisy = || tried(Some("the client waited"));
    let once_still = undecided(&[noisy(), tried(None), noisy()]);
    assert_eq!(once_still, Outcome::Failed { expected: "late: 1".into(), got: "2".into() });
    let Outcome::Skipped(why) = undecided(&[noisy(), noisy()]) else { panic!("skipped") };
    assert!(why.contains("machine too noisy") && why.contains("late: 1, got 2"), "{why}");
}

#[test]
fn names_are_unique_and_every_case_says_what_it_is_about() {
    let mut names: Vec<&str> = list().iter().map(|(name, _)| *name).collect();
    assert!(list().iter().all(|(_, about)| !about.is_empty()));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(
        run_all(&Options { only: "no such case".into(), ..Options::default() }, &mut |_| {})
            .is_empty()
    );
}
