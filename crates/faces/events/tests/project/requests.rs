//! Malformed requests: each error is identified by its path and kind.

use super::Class::{
    self, Beside, Duplicate, Limit, Malformed, Missing, QueryLimit, Rule, UnknownField, WrongType,
};
use super::class;
use proptest::prelude::*;
use wellspring_face_events::view::{MAX_GROUP_DEPTH, Projections};

fn fault(body: &str) -> (String, Class) {
    let fault = Projections::parse(body.as_bytes()).err();
    let fault = fault.unwrap_or_else(|| panic!("accepted: {body}"));
    (fault.field.clone(), class(&fault, body.as_bytes()))
}

/// The fault of a projection named `x` with these members.
fn fault_of(members: &str) -> (String, Class) {
    fault(&format!(r#"{{"projections":{{"x":{{{members}}}}}}}"#))
}

#[test]
fn what_is_not_json_is_told_by_line_and_column() {
    assert_eq!(fault("{\n  oops"), (String::new(), Malformed { line: 2, column: 3 }));
    assert_eq!(fault("").1, Malformed { line: 1, column: 1 });
    assert_eq!(fault("{} x").1, Malformed { line: 1, column: 4 });
    assert_eq!(fault("{\"projection\":1,}").1, Malformed { line: 1, column: 17 }, "first of all");
    let escape = "{\"projections\":\n {\"x\":{\"reduce\":{\"sum\":\"\\ud800\"}, \"types\":[]}}}";
    assert_eq!(fault(escape), ("projections.x.reduce.sum".to_owned(), Rule));
    let broken = b"{\n\"\xff\":1}";
    let fault = Projections::parse(broken).unwrap_err();
    assert_eq!(class(&fault, broken), Malformed { line: 2, column: 2 });
}

#[test]
fn faults_of_the_frame_are_named() {
    let at = |field: &str, kind| (field.to_owned(), kind);
    assert_eq!(fault("[]"), at("", WrongType));
    assert_eq!(fault("{}"), at("projections", Missing));
    assert_eq!(fault(r#"{"projections":[]}"#), at("projections", WrongType));
    assert_eq!(fault(r#"{"projections":{}}"#), at("projections", Rule));
    assert_eq!(fault(r#"{"projection":{}}"#), at("projection", UnknownField));
    let good = r#""x":{"types":["T"],"reduce":"count"}"#;
    for (after, kind) in [(r#""1""#, WrongType), ("-1", Rule), ("1.5", Rule), ("1e3", Rule)] {
        let body = format!(r#"{{"projections":{{{good}}},"after":{after}}}"#);
        assert_eq!(fault(&body), at("after", kind));
    }
    let body = format!(r#"{{"projections":{{{good},{good}}}}}"#);
    assert_eq!(fault(&body), at("projections.x", Duplicate));
    let null = format!(r#"{{"projections":{{{good}}},"after":null}}"#);
    assert_eq!(Projections::parse(null.as_bytes()).unwrap().after(), None);
}

#[test]
fn faults_of_a_projection_are_named() {
    let query = r#""query":{"items":[{"types":["T"]}]}"#;
    for (members, field, kind) in [
        (r#""reduce":"count""#.to_owned(), "query", Missing),
        (query.to_owned(), "reduce", Missing),
        (format!(r#"{query},"types":["T"],"reduce":"count""#), "query", Beside),
        (format!(r#"{query},"reduce":"count","reducer":1"#), "reducer", UnknownField),
        (r#""query":{},"reduce":"count""#.to_owned(), "query.items", Missing),
        (r#""query":{"items":[1]},"reduce":"count""#.to_owned(), "query.items[0]", WrongType),
        (
            r#""query":{"items":[{"tag":[]}]},"reduce":1"#.to_owned(),
            "query.items[0].tag",
            UnknownField,
        ),
        (
            r#""query":{"items":[{},{"types":["T",""]}]},"reduce":1"#.to_owned(),
            "query.items[1].types[1]",
            Rule,
        ),
        (
            r#""query":{"items":[{"tags":["a","a"]}]},"reduce":1"#.to_owned(),
            "query.items[0].tags[1]",
            Rule,
        ),
        (r#""types":"T","reduce":"count""#.to_owned(), "types", WrongType),
        (r#""tags":[3],"reduce":"count""#.to_owned(), "tags[0]", WrongType),
        (format!(r#"{query},"reduce":"count","init":1e999"#), "init", Rule),
    ] {
        assert_eq!(fault_of(&members), (format!("projections.x.{field}"), kind), "{members}");
    }
}

#[test]
fn faults_of_a_reducer_are_named() {
    for (reduce, field, kind) in [
        ("1", "", WrongType),
        ("{}", "", Rule),
        (r#""sum""#, "", Rule),
        (r#"{"foo":1}"#, ".foo", UnknownField),
        (r#"{"sum":"/a","max":"/a"}"#, "", Rule),
        (r#"{"count":1}"#, ".count", Rule),
        (r#"{"sum":1}"#, ".sum", WrongType),
        (r#"{"sum":"a"}"#, ".sum", Rule),
        (r#"{"group":{}}"#, ".group.by", Missing),
        (r#"{"group":{"by":"/a"}}"#, ".group.reduce", Missing),
        (r#"{"group":{"by":{},"reduce":"count"}}"#, ".group.by.tag", Missing),
        (r#"{"group":{"by":{"tag":"a:b"},"reduce":"count"}}"#, ".group.by.tag", Rule),
        (r#"{"group":{"by":{"tag":""},"reduce":"count"}}"#, ".group.by.tag", Rule),
        (r#"{"group":{"by":{"time":"week"},"reduce":"count"}}"#, ".group.by.time", Rule),
        (r#"{"group":{"by":{"time":"day","tag":"a"},"reduce":"count"}}"#, ".group.by", Rule),
        (r#"{"group":{"by":"/a","reduce":{"min":null}}}"#, ".group.reduce.min", WrongType),
        (r#"{"sum":[]}"#, ".sum", Rule),
        (r#"{"sum":["/a",1]}"#, ".sum[1]", WrongType),
        (r#"{"sum":["","","","","","","","",""]}"#, ".sum[8]", Rule),
        (r#"{"group":{"by":{"zone":"UTC"},"reduce":"count"}}"#, ".group.by", Rule),
        (
            r#"{"group":{"by":{"time":"day","zone":"Mars"},"reduce":"count"}}"#,
            ".group.by.zone",
            Rule,
        ),
        (r#"{"group":{"by":"","reduce":"count","order":"size"}}"#, ".group.order", Rule),
        (r#"{"group":{"by":"","reduce":"count","limit":0}}"#, ".group.limit", Rule),
        (r#"{"group":{"by":"","reduce":"count","descending":1}}"#, ".group.descending", WrongType),
        (r#"{"group":{"by":"","reduce":{"distinct":""},"order":"value"}}"#, ".group", Rule),
    ] {
        let (found, found_kind) = fault_of(&format!(r#""types":["T"],"reduce":{reduce}"#));
        assert_eq!(found, format!("projections.x.reduce{field}"), "{reduce}");
        assert_eq!(found_kind, kind, "{reduce}");
    }
}

#[test]
fn limits_of_the_request_hold() {
    let many = |n: usize| {
        let list: Vec<String> =
            (0..n).map(|i| format!(r#""p{i}":{{"types":["T{i}"],"reduce":"count"}}"#)).collect();
        format!(r#"{{"projections":{{{}}}}}"#, list.join(","))
    };
    assert_eq!(Projections::parse(many(64).as_bytes()).unwrap().union_query().items.len(), 64);
    assert_eq!(fault(&many(65)), ("projections".into(), Limit { limit: 64 }));
    let named = |n: usize| {
        format!(r#"{{"projections":{{"{}":{{"types":[],"reduce":"count"}}}}}}"#, "x".repeat(n))
    };
    assert!(Projections::parse(named(255).as_bytes()).is_ok());
    let (field, kind) = fault(&named(256));
    assert_eq!(kind, Limit { limit: 255 });
    assert!(field.len() < 100, "a long name is not echoed whole");
    assert_eq!(fault(&named(0)), ("projections".into(), Rule));
    let nested = |n: usize| {
        let (open, close) = (r#"{"group":{"by":"/a","reduce":"#.repeat(n), "}}".repeat(n));
        format!(r#"{{"projections":{{"x":{{"types":[],"reduce":{open}"count"{close}}}}}}}"#)
    };
    assert!(Projections::parse(nested(MAX_GROUP_DEPTH).as_bytes()).is_ok());
    assert_eq!(fault(&nested(MAX_GROUP_DEPTH + 1)).1, Limit { limit: 4 });
    assert_eq!(fault(&nested(100_000)).1, Limit { limit: 4 });
    let items = vec![r#"{"types":["T"]}"#; 257].join(",");
    let (field, kind) = fault_of(&format!(r#""query":{{"items":[{items}]}},"reduce":"count""#));
    assert_eq!((field.as_str(), kind), ("projections.x.query.items", QueryLimit { limit: 256 }));
}

#[test]
fn a_union_no_append_would_take_is_refused() {
    let projection = |p: usize| {
        let items: Vec<String> =
            (0..200).map(|i| format!(r#"{{"types":["T{}"]}}"#, p * 200 + i)).collect();
        format!(r#""p{p}":{{"query":{{"items":[{}]}},"reduce":"count"}}"#, items.join(","))
    };
    let body = format!(r#"{{"projections":{{{},{}}}}}"#, projection(0), projection(1));
    assert_eq!(fault(&body), ("projections".into(), QueryLimit { limit: 256 }));
    let wide = |p: usize| {
        let types: Vec<String> = (0..256).map(|i| format!("\"T{p}.{i}\"")).collect();
        format!(r#""p{p}":{{"types":[{}],"reduce":"count"}}"#, types.join(","))
    };
    let body = |count: usize| {
        format!(r#"{{"projections":{{{}}}}}"#, (0..count).map(wide).collect::<Vec<_>>().join(","))
    };
    assert!(Projections::parse(body(16).as_bytes()).is_ok());
    assert_eq!(fault(&body(17)), ("projections".into(), QueryLimit { limit: 4_096 }));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Projections::parse(&body);
    }

    /// A valid request with one piece replaced reaches deeper than random noise.
    #[test]
    fn no_damage_makes_it_panic(
        at in 0usize..140,
        length in 0usize..12,
        patch in r#"[\[\]{}",:\\a-z0-9/~.-]{0,12}"#,
    ) {
        let mut body = String::from(
            r#"{"projections":{"x":{"query":{"items":[{"types":["T"],"tags":["a"]}]},"init":0,"reduce":{"group":{"by":"/a/0","reduce":{"sum":"/b"}}}}}}"#,
        );
        let end = (at + length).min(body.len());
        body.replace_range(at.min(end)..end, &patch);
        let _ = Projections::parse(body.as_bytes());
    }
}
