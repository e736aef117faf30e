//! The slow, obvious fold over `serde_json::Value`, compared with the real one.

use super::{Fact, run, value};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
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
    let at = argument;
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

/// The value at a pointer, or at the first of several that has one; `null` is the last resort.
fn find(fact: &Fact, at: &Value) -> Option<Value> {
    if !fact.is_json {
        return None;
    }
    let data = serde_json::from_slice::<Value>(&fact.data).ok()?;
    let pointers = match at {
        Value::Array(list) => list.clone(),
        single => vec![single.clone()],
    };
    let mut found = pointers.iter().filter_map(|at| data.pointer(at.as_str().unwrap()).cloned());
    let (null, value): (Vec<Value>, Vec<Value>) = found.by_ref().partition(Value::is_null);
    value.into_iter().chain(null).next()
}

/// The groups of a fact.
fn keys_of(by: &Value, fact: &Fact) -> Vec<String> {
    if let Some(key) = by.get("tag") {
        let prefix = format!("{}:", key.as_str().unwrap());
        let tags = fact.tags.iter();
        return tags.filter_map(|tag| tag.strip_prefix(&prefix).map(str::to_owned)).collect();
    }
    find(fact, by).and_then(|found| key_of(&found)).into_iter().collect()
}

/// Those without a value that the reducer can use.
fn passed_over<'f>(reduce: &Value, facts: &[&'f Fact]) -> Vec<&'f Fact> {
    if reduce == "count" {
        return Vec::new();
    }
    let (name, argument) = reduce.as_object().unwrap().iter().next().unwrap();
    let without = |is_usable: &dyn Fn(&Value) -> bool| {
        let is_without = |fact: &&&Fact| !find(fact, argument).is_some_and(|at| is_usable(&at));
        facts.iter().filter(is_without).copied().collect::<Vec<&Fact>>()
    };
    match name.as_str() {
        "sum" | "avg" | "min" | "max" => without(&Value::is_number),
        "first" | "last" | "distinct" => without(&|_| true),
        _ => {
            let by = &argument["by"];
            let mut groups: BTreeMap<String, Vec<&Fact>> = BTreeMap::new();
            let mut passed: Vec<&Fact> = Vec::new();
            for fact in facts {
                let keys = keys_of(by, fact);
                if keys.is_empty() && by.get("tag").is_none() {
                    passed.push(fact);
                }
                keys.into_iter().for_each(|key| groups.entry(key).or_default().push(fact));
            }
            for facts in groups.values() {
                passed.extend(passed_over(&argument["reduce"], facts));
            }
            passed
        }
    }
}

fn naive_group(group: &Value, facts: &[&Fact]) -> Value {
    let mut groups: BTreeMap<String, Vec<&Fact>> = BTreeMap::new();
    for fact in facts {
        for key in keys_of(&group["by"], fact) {
            groups.entry(key).or_default().push(fact);
        }
    }
    if groups.is_empty() {
        return Value::Null;
    }
    let states = groups.into_iter().map(|(key, facts)| (key, naive(&group["reduce"], &facts)));
    if group.get("limit").is_none() {
        return Value::Object(states.collect::<Map<String, Value>>());
    }
    let mut listed: Vec<(String, Value)> = states.collect();
    let descending = group["descending"] == true;
    if group["order"] == "value" {
        listed.sort_by(|(_, a), (_, b)| match (a.is_null(), b.is_null()) {
            (false, false) if descending => compare(b, a),
            (false, false) => compare(a, b),
            (a, b) => a.cmp(&b),
        });
    } else if descending {
        listed.reverse();
    }
    let limit = group["limit"].as_u64().unwrap() as usize;
    let shown = listed.into_iter().take(limit);
    shown.map(|(key, state)| json!({"group": key, "state": state})).collect()
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

fn any_path() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => any_pointer().prop_map(|at| json!(at)),
        1 => prop::collection::vec(any_pointer(), 1..4).prop_map(|at| json!(at)),
    ]
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
        7 => (named, any_path()).prop_map(|(name, at)| json!({ name: at })),
    ];
    leaf.prop_recursive(3, 4, 1, |inner| {
        let by = prop_oneof![
            any_path(),
            prop_oneof![Just("k"), Just("j")].prop_map(|key| json!({ "tag": key })),
        ];
        let listing = prop::option::of((any::<bool>(), any::<bool>(), 1_u64..4));
        (by, inner, listing).prop_map(|(by, reduce, listing)| {
            let mut group = json!({"by": by, "reduce": reduce});
            if let Some((by_value, descending, limit)) = listing {
                let has_many = reduce.get("group").is_some() || reduce.get("distinct").is_some();
                group["order"] = json!(if by_value && !has_many { "value" } else { "key" });
                group["descending"] = json!(descending);
                group["limit"] = json!(limit);
            }
            json!({ "group": group })
        })
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
            let place = |fact: &&Fact| facts.iter().position(|it| std::ptr::eq(it, *fact)).unwrap() + 1;
            let passed: BTreeSet<usize> = passed_over(reduce, &seen).iter().map(place).collect();
            let told = answer["passed_over"].get(i.to_string()).cloned();
            let expected = passed.first().map(|first| json!({"events": passed.len(), "first": first}));
            prop_assert_eq!(told, expected, "{}", reduce);
            let body = json!({"projections": {"p": {"query": {"items": items}, "reduce": reduce, "strict": true}}});
            let refused = run(&body.to_string(), &facts).err().map(|fault| format!("{fault:?}"));
            match passed.first() {
                Some(first) => {
                    let told = format!("in the event at position {first},");
                    prop_assert!(refused.is_some_and(|refused| refused.contains(&told)), "{reduce} {first}");
                }
                None => prop_assert_eq!(refused, None, "{}", reduce),
            }
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
