//! Bounds on states: exceeding one is an error, never a partial answer.

use super::{Class, Fact, class, state};
use wellspring_face_events::view::{
    FoldEvent, MAX_DISTINCT, MAX_GROUPS, MAX_STATE_BYTES, Projections,
};

fn limit_of(reduce: &str, facts: &[Fact]) -> usize {
    let fault = state(reduce, "", facts).unwrap_err();
    assert_eq!(fault.field, "projections.p.reduce");
    match class(&fault, b"") {
        Class::Limit { limit } => usize::try_from(limit).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn groups_and_distinct_values_are_counted() {
    let facts: Vec<Fact> =
        (0..=MAX_GROUPS).map(|i| Fact::json("T", &["k:v"], &i.to_string())).collect();
    let group = r#"{"group":{"by":"","reduce":"count"}}"#;
    assert!(state(group, "", &facts[1..]).is_ok());
    assert_eq!(limit_of(group, &facts), MAX_GROUPS);
    let nested = r#"{"group":{"by":{"tag":"k"},"reduce":{"group":{"by":"","reduce":"count"}}}}"#;
    assert_eq!(limit_of(nested, &facts[1..]), MAX_GROUPS);
    assert!(state(r#"{"distinct":""}"#, "", &facts[1..]).is_ok());
    assert_eq!(limit_of(r#"{"distinct":""}"#, &facts), MAX_DISTINCT);
}

#[test]
fn memory_is_bounded_and_the_failure_is_known_at_once() {
    let body = br#"{"projections":{"p":{"types":[],"reduce":{"distinct":""}},"q":{"types":[],"reduce":{"last":""}}}}"#;
    let mut projections = Projections::parse(body).unwrap();
    let pad = "x".repeat(1 << 20);
    let mut folded = 0;
    while projections.failure().is_none() {
        folded += 1;
        let data = format!("\"{folded}{pad}\"");
        projections.fold(&FoldEvent {
            position: folded,
            event_type: "T",
            tags: &[],
            data: data.as_bytes(),
            is_json: true,
            recorded_at_us: 0,
        });
        assert!(folded < 20, "16 MiB are not bounded");
    }
    let fault = projections.finish(folded).unwrap_err();
    assert_eq!(class(&fault, b""), Class::Limit { limit: MAX_STATE_BYTES as u64 });
}

#[test]
fn keeping_the_last_value_costs_one_value() {
    let pad = "x".repeat(1 << 20);
    let facts: Vec<Fact> =
        (0..40).map(|i| Fact::json("T", &[], &format!("\"{i}{pad}\""))).collect();
    assert!(state(r#"{"last":""}"#, "", &facts).unwrap().starts_with("\"39x"));
}

#[test]
fn deep_values_are_kept_but_not_compared() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let facts = [Fact::json("T", &[], &deep)];
    assert_eq!(state(r#"{"last":""}"#, "", &facts).unwrap(), deep);
    assert_eq!(state(r#"{"last":"/0/0"}"#, "", &facts).unwrap(), deep[2..deep.len() - 2]);
    assert_eq!(limit_of(r#"{"distinct":""}"#, &facts), 128);
}
