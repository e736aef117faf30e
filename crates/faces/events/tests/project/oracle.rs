//! The slow, obvious fold over `serde_json::Value`, compared with the real one.

use super::{Fact, run, value};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use wellspring_types::QueryItem;

/// Decimals are drawn as thousandths, so the oracle can add integers.
fn thousandths(number: &Value) -> i64 {
    (number.as_f64().unwrap() * 1000.0).round() as i64
}

fn naive(reduce: &Value, facts: &[&Fact]) -> Value {
    if reduce == "count" || reduce.get("count").is_some() {
        return json!(facts.len());
    }
    let (name, argument) = reduce.as_object().unwrap().iter().next().unwrap();
    if name == "group" {
        return naive_group(argument, facts);
    }
    let at = argument.as_str().unwrap();
    let found: Vec<Value> = facts.iter().filter_map(|fact| find(fact, at)).collect();
    let numbers: Vec<Value> = found.iter().filter(|value| value.is_number()).cloned().collect();
    let total: i64 = numbers.iter().map(thousandths).sum();
    let extreme = |best: Option<&Value>| best.cloned().unwrap_or(Value::Null);
    match name.as_str() {
        "sum" => json!(total as f64 / 1000.0),
        "avg" if numbers.is_empty() => Value::Null,
        "avg" => json!(total as f64 / 1000.0 / numbers.len() as f64),
        "min" => extreme(numbers.iter().min_by_key(|number| thousandths(number))),
        "max" => extreme(numbers.iter().max_by_key(|number| thousandths(number))),
        "first" => extreme(found.first()),
        "last" => extreme(found.last()),
        "distinct" => naive_distinct(&found),
        other => panic!("{other}"),
    }
}

fn find(fact: &Fact, at: &str) -> Option<Value> {
    if !fact.is_json {
        return None;
    }
    serde_json::from_slice::<Value>(&fact.data).ok()?.pointer(at).cloned()
}

fn naive_group(group: &Value, facts: &[&Fact]) -> Value {
    let mut groups: BTreeMap<String, Vec<&Fact>> = BTreeMap::new();
    for fact in facts {
        let keys: Vec<String> = match &group["by"] {
            Value::String(at) => {
                find(fact, at).and_then(|found| key_of(&found)).into_iter().collect()
            }
            by => {
                let prefix = format!("{}:", by["tag"].as_str().unwrap());
                let tags = fact.tags.iter();
                tags.filter_map(|tag| tag.strip_prefix(&prefix).map(str::to_owned)).collect()
            }
        };
        for key in keys {
            groups.entry(key).or_default().push(fact);
        }
    }
    if groups.is_empty() {
        return Value::Null;
    }
    let states = groups.into_iter().map(|(key, facts)| (key, naive(&group["reduce"], &facts)));
    Value::Object(states.collect::<Map<String, Value>>())
}

fn key_of(found: &Value) -> Option<String> {
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) => {
            let float = found.as_f64().unwrap();
            Some(if float == 0.0 { "0".into() } else { float.to_string() })
        }
        Value::Bool(_) | Value::Null => Some(found.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn naive_distinct(found: &[Value]) -> Value {
    let mut list: Vec<Value> = Vec::new();
    for value in found {
        if !list.iter().any(|known| same(known, value)) {
            list.push(value.clone());
        }
    }
    list.sort_by(compare);
    if list.is_empty() { Value::Null } else { Value::Array(list) }
}

/// null < false < true < numbers < strings < arrays < objects; arrays and objects member by member.
fn compare(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    let members = |map: &Map<String, Value>| -> Vec<Value> {
        map.iter().flat_map(|(key, value)| [json!(key), value.clone()]).collect()
    };
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(_), Value::Number(_)) => thousandths(a).cmp(&thousandths(b)),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare_lists(a, b),
        (Value::Object(a), Value::Object(b)) => compare_lists(&members(a), &members(b)),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_lists(a: &[Value], b: &[Value]) -> Ordering {
    let first = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
    first.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Equal values: numbers by size whatever their spelling, averages within rounding.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-12 * a.abs().max(1.0)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w)))
        }
        _ => a == b,
    }
}

fn any_scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (-50i32..50).prop_map(|n| n.to_string()),
        2 => (-99_999i32..99_999).prop_map(|n| format!("{}e-3", n)),
        1 => (-9i32..9, 0u32..100).prop_map(|(n, f)| format!("{n}.{f:03}")),
        2 => "[a-c]{0,2}".prop_map(|s| format!("\"{s}\"")),
        1 => prop_oneof![Just("\"\\u0061\""), Just("\"\\n\\\"\""), Just("\"é\"")].prop_map(str::to_owned),
        1 => prop_oneof![Just("null"), Just("true"), Just("false"), Just("[]"), Just("[ 0 ]"), Just("{}"), Just("[1,2]")]
            .prop_map(str::to_owned),
    ]
}

fn any_object() -> impl Strategy<Value = String> {
    let key = prop_oneof![Just("a"), Just("b"), Just("\\u0062"), Just("~/"), Just("")];
    let member = (key, any_scalar()).prop_map(|(key, value)| format!(r#""{key}" : {value}"#));
    prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(", ")))
}

fn any_data() -> impl Strategy<Value = (String, bool)> {
    prop_oneof![
        4 => any_object().prop_map(|text| (text, true)),
        2 => (any_object(), any_scalar()).prop_map(|(o, s)| (format!(r#"{{"a":[{s}, {o}],"b":{s}}}"#), true)),
        1 => any_scalar().prop_map(|text| (text, true)),
        1 => any_scalar().prop_map(|text| (text, false)),
        1 => Just(("{\"a\":1".to_owned(), true)),
    ]
}

fn any_fact() -> impl Strategy<Value = Fact> {
    let tags = prop::sample::subsequence(vec!["k:1", "k:2", "k:1:2", "j:1", "k", ":x"], 0..5);
    (prop_oneof![Just("A"), Just("B")], tags, any_data()).prop_map(|(event_type, tags, data)| {
        Fact { is_json: data.1, ..Fact::json(event_type, &tags, &data.0) }
    })
}

fn any_pointer() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just("/a"), 4 => Just("/b"), 1 => Just(""), 1 => Just("/"), 1 => Just("/~0~1"),
        1 => Just("/a/0"), 1 => Just("/a/1/b"), 1 => Just("/a/-"), 1 => Just("/a/00"),
    ]
}

fn any_reducer() -> impl Strategy<Value = Value> {
    let named = prop_oneof![
        Just("sum"),
        Just("avg"),
        Just("min"),
        Just("max"),
        Just("first"),
        Just("last"),
        Just("distinct"),
    ];
    let leaf = prop_oneof![
        1 => Just(json!("count")),
        7 => (named, any_pointer()).prop_map(|(name, at)| json!({ name: at })),
    ];
    leaf.prop_recursive(3, 4, 1, |inner| {
        let by = prop_oneof![
            any_pointer().prop_map(|at| json!(at)),
            prop_oneof![Just("k"), Just("j")].prop_map(|key| json!({ "tag": key })),
        ];
        (by, inner).prop_map(|(by, reduce)| json!({"group": {"by": by, "reduce": reduce}}))
    })
}

fn any_item() -> impl Strategy<Value = Value> {
    let types = prop::sample::subsequence(vec!["A", "B"], 0..=2);
    let tags = prop::sample::subsequence(vec!["k:1", "j:1"], 0..=2);
    (types, tags).prop_map(|(types, tags)| json!({"types": types, "tags": tags}))
}

fn matches(items: &[Value], fact: &Fact) -> bool {
    let texts = |list: &Value| serde_json::from_value::<Vec<String>>(list.clone()).unwrap();
    let tags = fact.tags.iter().map(String::as_str);
    items.is_empty()
        || items.iter().any(|item| {
            let item = QueryItem { types: texts(&item["types"]), tags: texts(&item["tags"]) };
            item.matches(&fact.event_type, tags.clone())
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_answer_agrees_with_the_naive_fold(
        wanted in prop::collection::vec((any_reducer(), prop::collection::vec(any_item(), 0..3)), 1..4),
        facts in prop::collection::vec(any_fact(), 0..12),
    ) {
        let projections: Map<String, Value> = wanted
            .iter()
            .enumerate()
            .map(|(i, (reduce, items))| (i.to_string(), json!({"query": {"items": items}, "reduce": reduce})))
            .collect();
        let answer = value(&run(&json!({ "projections": projections }).to_string(), &facts).unwrap());
        prop_assert_eq!(&answer["position"], &json!(facts.len()));
        for (i, (reduce, items)) in wanted.iter().enumerate() {
            let seen: Vec<&Fact> = facts.iter().filter(|fact| matches(items, fact)).collect();
            let (found, expected) = (&answer["states"][i.to_string()], naive(reduce, &seen));
            prop_assert!(same(found, &expected), "{reduce}: {found} is not {expected}");
        }
        let condition = &answer["appendCondition"]["failIfEventsMatch"]["items"];
        let union: Vec<Value> = condition.as_array().unwrap().iter().map(|item| {
            json!({"types": item.get("types").cloned().unwrap_or(json!([])),
                   "tags": item.get("tags").cloned().unwrap_or(json!([]))})
        }).collect();
        for fact in &facts {
            let any = wanted.iter().any(|(_, items)| matches(items, fact));
            prop_assert_eq!(matches(&union, fact), any);
        }
    }
}
