//! Projections answered from counts, compared with the same projections folded.

use super::{Fact, run};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wellspring_face_events::view::{CountAnswer, Grouping, MAX_GROUPS, Projections};
use wellspring_types::Query;

fn counts(projections: &Projections, facts: &[Fact]) -> Option<Vec<CountAnswer>> {
    let matches = |query: &Query, fact: &&Fact| {
        let tags = fact.tags.iter().map(String::as_str);
        query.matching_item(&fact.event_type, tags).is_some()
    };
    let after = projections.after().unwrap_or(0) as usize;
    let facts = facts.get(after.min(facts.len())..).unwrap_or_default();
    let counted = projections.count_requests()?.into_iter().map(|request| {
        let matching = facts.iter().filter(|fact| matches(request.query, fact));
        match request.grouping {
            Grouping::Together => CountAnswer::Together(matching.count() as u64),
            Grouping::ByTagKey(key) => {
                let mut groups = BTreeMap::new();
                for tag in matching.flat_map(|fact| &fact.tags) {
                    if tag.starts_with(&format!("{key}:")) {
                        *groups.entry(tag.clone()).or_insert(0) += 1;
                    }
                }
                CountAnswer::ByTag(groups)
            }
        }
    });
    Some(counted.collect())
}

fn from_counts(body: &str, facts: &[Fact]) -> Option<String> {
    let mut projections = Projections::parse(body.as_bytes()).unwrap();
    let counts = counts(&projections, facts)?;
    projections.take_counts(counts).ok()?;
    Some(String::from_utf8(projections.finish(facts.len() as u64).unwrap()).unwrap())
}

fn any_fact() -> impl Strategy<Value = Fact> {
    let tags = prop::sample::subsequence(vec!["k:1", "k:2", "k:1:2", "j:1", "k", "k:", ":x"], 0..6);
    (prop_oneof![Just("A"), Just("B")], tags)
        .prop_map(|(event_type, tags)| Fact::json(event_type, &tags, "1"))
}

proptest! {
    #[test]
    fn counts_answer_as_the_fold_does(
        facts in prop::collection::vec(any_fact(), 0..40),
        projections in prop::collection::vec((0usize..5, 0usize..4, 0usize..9), 1..5),
        after in prop::option::of(0usize..45),
    ) {
        let queries = [
            r#""query":{"items":[]}"#,
            r#""types":["A"]"#,
            r#""tags":["k:1"]"#,
            r#""query":{"items":[{"types":["A"],"tags":["j:1"]},{"tags":["k:2"]}]}"#,
            r#""types":["none"]"#,
        ];
        let reducers = [
            r#""count""#,
            r#"{"count":true}"#,
            r#"{"group":{"by":{"tag":"k"},"reduce":"count"}}"#,
            r#"{"group":{"by":{"tag":"absent"},"reduce":"count"}}"#,
        ];
        let inits =
            ["", "null", "7", "-0.5", "1e300", "9007199254740993", "\"text\"", "1e-60", "{\"a\":1}"];
        let definitions: Vec<String> = projections.iter().enumerate().map(|(i, &(query, reducer, init))| {
            let init = match inits[init] {
                "" => String::new(),
                init => format!(",\"init\":{init}"),
            };
            format!(r#""p{i}":{{{},"reduce":{}{init}}}"#, queries[query], reducers[reducer])
        }).collect();
        let after = after.map_or(String::new(), |after| format!(",\"after\":{after}"));
        let body = format!(r#"{{"projections":{{{}}}{after}}}"#, definitions.join(","));
        let folded = run(&body, &facts).unwrap();
        if let Some(counted) = from_counts(&body, &facts) {
            prop_assert_eq!(counted, folded);
        } else {
            prop_assert!(body.contains("1e300") || body.contains("1e-60"), "{}", body);
        }
    }
}

#[test]
fn what_looks_at_data_or_passes_a_bound_is_folded() {
    let requests = |reduce: &str| {
        let body = format!(r#"{{"projections":{{"p":{{"types":["A"],"reduce":{reduce}}}}}}}"#);
        Projections::parse(body.as_bytes()).unwrap().count_requests().is_some()
    };
    assert!(requests(r#""count""#));
    assert!(requests(r#"{"group":{"by":{"tag":"k"},"reduce":"count"}}"#));
    assert!(!requests(r#"{"sum":"/a"}"#));
    assert!(!requests(r#"{"group":{"by":"/a","reduce":"count"}}"#));
    assert!(!requests(r#"{"group":{"by":{"tag":"k"},"reduce":{"last":"/a"}}}"#));

    let body = r#"{"projections":{"p":{"types":["A"],"reduce":{"group":{"by":{"tag":"k"},"reduce":"count"}}}}}"#;
    let groups = |n: usize| (0..n).map(|i| (format!("k:{i}"), 1)).collect();
    let parse = || Projections::parse(body.as_bytes()).unwrap();
    assert!(parse().take_counts(vec![CountAnswer::ByTag(groups(MAX_GROUPS))]).is_ok());
    assert!(parse().take_counts(vec![CountAnswer::ByTag(groups(MAX_GROUPS + 1))]).is_err());
}
