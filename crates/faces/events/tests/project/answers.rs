//! What each reducer answers, by example.

use super::{Class, class};
use super::{Fact, run, state};
use wellspring_json::FaultKind;

fn datas(datas: &[&str]) -> Vec<Fact> {
    datas.iter().map(|data| Fact::json("T", &[], data)).collect()
}

fn of(reduce: &str, list: &[&str]) -> String {
    state(reduce, "", &datas(list)).unwrap()
}

#[test]
fn the_answer_holds_states_in_order_and_a_ready_made_condition() {
    let body = r#"{"projections":{
        "z \"1\"":{"query":{"items":[{"types":["A"],"tags":["x:1"]},{"tags":["y:2"]}]},"reduce":"count"},
        "a":{"types":["A"],"tags":["x:1"],"reduce":{"last":"/n"}},
        "m":{"query":{"items":[{"types":["B","C"]},{"types":["C","B"]}]},"reduce":{"count":true}}},"after":1}"#;
    let facts = [
        Fact::json("A", &["x:1"], r#"{"n":1}"#),
        Fact::json("A", &["x:1"], r#"{"n":2}"#),
        Fact::json("A", &["x:2"], r#"{"n":3}"#),
        Fact::json("C", &["y:2"], r#"{"n":4}"#),
    ];
    assert_eq!(
        run(body, &facts).unwrap(),
        concat!(
            r#"{"states":{"z \"1\"":2,"a":2,"m":1},"position":4,"appendCondition":"#,
            r#"{"failIfEventsMatch":{"items":[{"types":["A"],"tags":["x:1"]},{"tags":["y:2"]},{"types":["B","C"]}]},"after":4}}"#
        )
    );
}

#[test]
fn one_query_of_all_events_makes_the_condition_one_of_all_events() {
    let body = r#"{"projections":{"a":{"types":["A"],"reduce":"count"},
        "b":{"query":{"items":[{"types":["B"]},{}]},"reduce":"count"}}}"#;
    let answer = run(body, &datas(&["1"])).unwrap();
    assert!(answer.contains(r#""states":{"a":0,"b":1}"#), "{answer}");
    assert!(answer.ends_with(r#"{"failIfEventsMatch":{"items":[]},"after":1}}"#), "{answer}");
}

#[test]
fn empty_states_and_init() {
    for (reduce, empty) in [
        (r#""count""#, "0"),
        (r#"{"sum":"/a"}"#, "0"),
        (r#"{"avg":"/a"}"#, "null"),
        (r#"{"min":"/a"}"#, "null"),
        (r#"{"last":"/a"}"#, "null"),
        (r#"{"distinct":"/a"}"#, "null"),
        (r#"{"group":{"by":"/a","reduce":"count"}}"#, "null"),
    ] {
        assert_eq!(state(reduce, "", &[]).unwrap(), empty, "{reduce}");
        let init = r#"{"z": 1.50, "a":[]}"#;
        assert_eq!(state(reduce, &format!(r#","init": {init} "#), &[]).unwrap(), init, "{reduce}");
    }
    let two = datas(&[r#"{"a":2}"#, r#"{"a":3.5}"#]);
    for (reduce, init, expected) in [
        (r#""count""#, "10", "12"),
        (r#""count""#, "null", "2"),
        (r#"{"sum":"/a"}"#, "0.50", "6"),
        (r#"{"sum":"/a"}"#, r#""x""#, "5.5"),
        (r#"{"max":"/a"}"#, "100", "3.5"),
        (r#"{"avg":"/a"}"#, "100", "2.75"),
        (r#"{"sum":"/b"}"#, "0.50", "0.50"),
    ] {
        let init = format!(r#","init":{init}"#);
        assert_eq!(state(reduce, &init, &two).unwrap(), expected, "{reduce} {init}");
    }
}

#[test]
fn values_come_back_as_they_were_sent() {
    let list = [r#"{"v": {"b" : 1.50, "a":"\u00e9"} }"#, r#"{"w":1}"#, r#" {"v":1e2} "#];
    assert_eq!(of(r#"{"first":"/v"}"#, &list), r#"{"b" : 1.50, "a":"\u00e9"}"#);
    assert_eq!(of(r#"{"last":"/v"}"#, &list), "1e2");
    assert_eq!(of(r#"{"last":""}"#, &list), r#"{"v":1e2}"#);
    assert_eq!(of(r#"{"min":"/v"}"#, &[r#"{"v":1.50}"#, r#"{"v":1.5}"#]), "1.50");
    assert_eq!(of(r#"{"max":"/v"}"#, &[r#"{"v":9}"#, r#"{"v":10}"#, r#"{"v":"11"}"#]), "10");
    assert_eq!(of(r#"{"first":"/v"}"#, &[r#"{"v":null}"#, r#"{"v":1}"#]), "null");
}

#[test]
fn distinct_values_are_sorted_and_compared_by_value() {
    let list = ["[1,2]", "1.0", "\"b\"", "1", "null", "\"a\"", "[1.0, 2]", "-3", "true", "{}"];
    assert_eq!(of(r#"{"distinct":""}"#, &list), r#"[null,true,-3,1.0,"a","b",[1,2],{}]"#);
}

#[test]
fn groups_nest_and_take_tags() {
    let facts = [
        Fact::json("T", &["course:b", "student:1"], r#"{"n":1}"#),
        Fact::json("T", &["course:a:x", "student:1", "course"], r#"{"n":"2"}"#),
        Fact::json("T", &["course:b", "course:c"], r#"{"n":5}"#),
    ];
    let by_course = r#"{"group":{"by":{"tag":"course"},"reduce":{"sum":"/n"}}}"#;
    assert_eq!(state(by_course, "", &facts).unwrap(), r#"{"a:x":0,"b":6,"c":5}"#);
    let nested =
        r#"{"group":{"by":{"tag":"student"},"reduce":{"group":{"by":"/n","reduce":"count"}}}}"#;
    assert_eq!(state(nested, "", &facts).unwrap(), r#"{"1":{"1":1,"2":1}}"#);
    let keys = ["1", "1.0", "\"1\"", "\"a\\n\"", "true", "null", "[1]", "{}", "\"\""];
    assert_eq!(
        of(r#"{"group":{"by":"","reduce":"count"}}"#, &keys),
        r#"{"":1,"1":3,"a\n":1,"null":1,"true":1}"#
    );
}

#[test]
fn data_that_is_not_json_is_counted_and_otherwise_skipped() {
    let mut facts = datas(&["7", "{broken", "\"\\ud800\""]);
    facts.push(Fact { is_json: false, ..Fact::json("T", &["k:v"], "8") });
    facts.push(Fact { data: vec![0xff, 0xfe], ..Fact::json("T", &["k:v"], "") });
    let answer = |reduce: &str| state(reduce, "", &facts).unwrap();
    assert_eq!(answer(r#""count""#), "5");
    assert_eq!(answer(r#"{"sum":""}"#), "7");
    assert_eq!(answer(r#"{"first":""}"#), "7");
    assert_eq!(answer(r#"{"last":""}"#), r#""\ud800""#);
    assert_eq!(answer(r#"{"distinct":""}"#), "[7]");
    assert_eq!(answer(r#"{"group":{"by":{"tag":"k"},"reduce":"count"}}"#), r#"{"v":2}"#);
}

#[test]
fn a_sum_that_cannot_be_written_is_an_error() {
    let facts = datas(&["1e999", "1"]);
    let fault = state(r#"{"sum":""}"#, "", &facts).unwrap_err();
    assert_eq!((fault.field.as_str(), class(&fault, b"")), ("projections.p.reduce", Class::Rule));
    let told = format!("{fault:?}");
    assert!(told.contains("the event at position 1;"), "{told}");
    // The event that makes the sum too great, not the greatest one.
    for reduce in [r#"{"sum":""}"#, r#"{"avg":""}"#] {
        let fault = state(reduce, "", &datas(&["1", "1e308", "\"x\"", "1e308", "5"])).unwrap_err();
        assert!(format!("{fault:?}").contains("the event at position 4;"), "{fault:?}");
    }
    let grouped = r#"{"group":{"by":{"tag":"k"},"reduce":{"sum":""}}}"#;
    let facts_of_k = [Fact::json("T", &["k:a"], "1"), Fact::json("T", &["k:b"], "-1e400")];
    let fault = state(grouped, "", &facts_of_k).unwrap_err();
    assert!(format!("{fault:?}").contains("the event at position 2;"), "{fault:?}");
    assert!(state(r#"{"avg":""}"#, "", &facts).is_err());
    assert_eq!(state(r#"{"max":""}"#, "", &facts).unwrap(), "1e999");
}

#[test]
fn events_without_a_usable_value_are_counted_for_each_projection() {
    let passed_over = |reduce: &str, list: &[&str]| {
        let body = format!(
            r#"{{"projections":{{"p":{{"query":{{"items":[]}},"reduce":{reduce}}},"q":{{"query":{{"items":[]}},"reduce":"count"}}}}}}"#
        );
        let answer = run(&body, &datas(list)).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["passed_over"].get("q"), None);
        let told = &answer["passed_over"]["p"];
        told["events"].as_u64().map(|events| (events, told["first"].as_u64().unwrap()))
    };
    let list = [r#"{"at":7}"#, r#"{"at":"2026-11-21"}"#, r#"{"at":[1]}"#, r#"{"at":null}"#, "{}"];
    for reduce in [r#"{"max":"/at"}"#, r#"{"min":"/at"}"#, r#"{"sum":"/at"}"#, r#"{"avg":"/at"}"#] {
        assert_eq!(passed_over(reduce, &list), Some((4, 2)), "{reduce}");
        assert_eq!(passed_over(reduce, &list[..1]), None, "{reduce}");
    }
    for (reduce, expected) in [
        (r#"{"group":{"by":"/at","reduce":"count"}}"#, Some((2, 3))),
        (r#"{"group":{"by":"/at","reduce":{"sum":"/at"}}}"#, Some((4, 2))),
        (r#"{"last":"/at"}"#, Some((1, 5))),
        (r#"{"distinct":"/at"}"#, Some((1, 5))),
        (r#"{"first":"/at"}"#, Some((1, 5))),
        (r#"{"group":{"by":{"tag":"k"},"reduce":"count"}}"#, None),
    ] {
        assert_eq!(passed_over(reduce, &list), expected, "{reduce}");
    }
}

#[test]
fn a_strict_projection_says_what_stood_where_a_value_was_wanted() {
    for (data, found) in [
        (r#"{"at":null}"#, "finds null at \"/at\" or \"/was\""),
        (r#"{"at":"7"}"#, "finds text at "),
        (r#"{"at":{}}"#, "finds an object at "),
        ("{}", "finds no value at "),
    ] {
        let list = datas(&["{\"was\":1}", data]);
        let fault = state(r#"{"sum":["/at","/was"]}"#, r#","strict":true"#, &list).unwrap_err();
        let FaultKind::Rule(told) = &fault.kind else { panic!("{fault:?}") };
        assert!(told.contains(found) && told.contains("in the event at position 2,"), "{told}");
        assert_eq!(fault.field, "projections.p.reduce");
        assert_eq!(state(r#"{"sum":["/at","/was"]}"#, "", &list).unwrap(), "1");
    }
    let all = datas(&["{\"was\":1}", "{\"at\":2,\"was\":3}"]);
    assert_eq!(state(r#"{"sum":["/at","/was"]}"#, r#","strict":true"#, &all).unwrap(), "3");
}

#[test]
fn groups_are_listed_in_the_order_that_was_asked_for() {
    let list = ["2", "10", "1", "10", "\"x\""];
    let listed =
        |more: &str| of(&format!(r#"{{"group":{{"by":"","reduce":{{"sum":""}}{more}}}}}"#), &list);
    assert_eq!(listed(""), r#"{"1":1,"10":20,"2":2,"x":0}"#);
    assert_eq!(
        listed(r#","order":"value","descending":true,"limit":2"#),
        r#"[{"group":"10","state":20},{"group":"2","state":2}]"#
    );
    assert_eq!(
        listed(r#","order":"key","descending":true,"limit":2"#),
        r#"[{"group":"x","state":0},{"group":"2","state":2}]"#
    );
    assert_eq!(listed(r#","limit":1"#), r#"[{"group":"1","state":1}]"#);
    // Those without a value come last, either way.
    for descending in ["true", "false"] {
        let kept = format!(
            r#"{{"group":{{"by":"","reduce":{{"max":""}},"order":"value","descending":{descending}}}}}"#
        );
        assert!(of(&kept, &list).ends_with(r#"{"group":"x","state":null}]"#), "{descending}");
    }
}

#[test]
fn events_are_grouped_by_the_time_at_which_they_were_recorded() {
    let four = ["1", "2", "3", "4"];
    let by = |unit: &str| {
        of(&format!(r#"{{"group":{{"by":{{"time":"{unit}"}},"reduce":{{"sum":""}}}}}}"#), &four)
    };
    assert_eq!(by("hour"), r#"{"2026-11-28T23:00:00Z":1,"2026-11-29T00:00:00Z":9}"#);
    assert_eq!(by("day"), r#"{"2026-11-28T00:00:00Z":1,"2026-11-29T00:00:00Z":9}"#);
    let in_berlin = r#"{"group":{"by":{"time":"day","zone":"Europe/Berlin"},"reduce":{"sum":""}}}"#;
    assert_eq!(of(in_berlin, &four), r#"{"2026-11-29T00:00:00+01:00":10}"#);
    let minutes = by("minute");
    assert!(minutes.starts_with(r#"{"2026-11-28T23:50:00Z":1,"2026-11-29T00:10:00Z":2,"#));
}
