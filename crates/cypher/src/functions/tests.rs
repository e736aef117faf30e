//! Whatever arguments a function gets, it returns a value or an error.

use super::catalogue::Computed;
use super::{Accumulator, Aggregate, functions, lookup};
use crate::context::{Budget, Context, Names, NoSubqueries, Parameters, Patterns, StatementTime};
use crate::temporal;
use crate::value::{
    CoordinateSystem, Date, DateTime, Distinct, Duration, LocalDateTime, LocalTime, NodeId, Path,
    Point, RelationshipId, Time, Value, compare, equals, equivalent, order, steps_of,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::sync::Arc;
use wellspring_graph::{Graph, Transaction};
use wellspring_types::random::SplitMix64;

fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![-3_i64..30, any::<i64>(), Just(i64::MIN), Just(i64::MAX), Just(1 << 53)]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        (-4_i8..4).prop_map(f64::from),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-0.0)
    ]
}

/// Texts that resemble valid input.
fn text() -> impl Strategy<Value = String> {
    let words = [
        "day",
        "week",
        "Europe/Stockholm",
        "+01:00",
        "P1Y2M",
        "2015-W30-2T21:40",
        "true",
        "1e3",
        "cartesian",
    ];
    prop_oneof![
        proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        "[-+0-9TWPZ:.,MDYHS\\[\\]]{0,14}",
        "\\PC{0,6}",
    ]
}

fn moment() -> impl Strategy<Value = Value> {
    let days =
        prop_oneof![-1_000_000_i64..1_000_000, Just(-365_243_219_161), Just(365_241_780_470)];
    let parts = (days, 0_u64..86_400_000_000_000, -64_800_i32..=64_800, any::<bool>());
    parts.prop_flat_map(|(days, nanoseconds, offset, named)| {
        let seconds = days * 86_400 + (nanoseconds / 1_000_000_000) as i64;
        let fraction = (nanoseconds % 1_000_000_000) as u32;
        let zone = named.then(|| Arc::from("Europe/Stockholm"));
        proptest::sample::select(vec![
            Value::Date(Date { days }),
            Value::LocalTime(LocalTime { nanoseconds }),
            Value::Time(Time { nanoseconds, offset }),
            Value::LocalDateTime(LocalDateTime { seconds, nanoseconds: fraction }),
            Value::DateTime(Arc::new(DateTime { seconds, nanoseconds: fraction, offset, zone })),
        ])
    })
}

fn duration() -> impl Strategy<Value = Value> {
    (integer(), integer(), integer(), 0_u32..1_000_000_000).prop_map(
        |(months, days, seconds, nanoseconds)| {
            Value::duration(Duration { months, days, seconds, nanoseconds })
        },
    )
}

fn entity() -> impl Strategy<Value = Value> {
    let node = |number| NodeId::new(number).expect("small");
    let relationship = |number| RelationshipId::new(number).expect("small");
    prop_oneof![
        (0_u64..3).prop_map(move |number| Value::Node(node(number))),
        (0_u64..3).prop_map(move |number| Value::Relationship(relationship(number))),
        vec((0_u64..3, 0_u64..3), 0..3).prop_map(move |steps| {
            let steps = steps.into_iter().map(|(by, to)| (relationship(by), node(to))).collect();
            Value::Path(Arc::new(Path { start: node(0), steps }))
        }),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let system =
        proptest::sample::select(vec![CoordinateSystem::Cartesian, CoordinateSystem::Wgs84With3d]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        integer().prop_map(Value::from),
        float().prop_map(Value::from),
        text().prop_map(|text| Value::from(text.as_str())),
        moment(),
        duration(),
        entity(),
        (system, float(), float()).prop_map(|(system, x, y)| Value::Point(Arc::new(Point {
            system,
            x,
            y,
            z: 0.0
        }))),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        let keys = [
            "year",
            "month",
            "day",
            "hour",
            "nanosecond",
            "timezone",
            "date",
            "days",
            "x",
            "y",
            "srid",
        ];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::list),
            btree_map(proptest::sample::select(keys.to_vec()), inner, 0..4).prop_map(|entries| {
                Value::map(entries.into_iter().map(|(key, value)| (key.into(), value)))
            }),
        ]
    })
}

fn with_context<R>(use_it: impl FnOnce(&mut Context<'_>) -> R) -> R {
    let mut transaction = Transaction::reading(Graph::new());
    let mut context = Context {
        transaction: &mut transaction,
        parameters: &Parameters::new(),
        database: "test",
        time: StatementTime { seconds: 1_700_000_000, nanoseconds: 0 },
        random: &mut SplitMix64::new(1),
        budget: &mut Budget::new(100_000, 1 << 20, || None),
        patterns: Patterns::default(),
        names: Names::default(),
        known: crate::context::FoundTables::default(),
        subqueries: &NoSubqueries,
        server: &crate::NoServer,
    };
    use_it(&mut context)
}

#[test]
fn functions_are_found_in_whatever_case_and_each_once() {
    assert!(lookup("TOUPPER").is_some_and(|function| function.name == "toUpper"));
    assert!(lookup("duration.inseconds").is_some() && lookup("nothing").is_none());
    let mut names: Vec<String> =
        functions().map(|function| function.name.to_ascii_lowercase()).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn every_function_is_in_the_guide() {
    let guide = include_str!("../../../../docs/cypher.md");
    let is_named = |name: &str| guide.contains(&format!("`{name}`"));
    for function in functions() {
        // Functions of the five temporal types are listed by their last part.
        let parts = function.name.split_once('.');
        let listed = is_named(function.name)
            || parts.is_some_and(|(kind, part)| is_named(kind) && is_named(&format!(".{part}")));
        assert!(listed, "{} is not in docs/cypher.md", function.name);
    }
}

/// Values whose traversal takes a while.
fn large_values() -> Vec<Value> {
    let texts = |text: &str| Value::string(text.repeat(200_000 / text.len()));
    let numbers: Vec<Value> = (0..10_000).map(Value::Integer).collect();
    let entries = (0..2_000_i64).map(|number| (number.to_string().into(), Value::from(number)));
    let nested = (0..200).fold(Value::list(numbers.clone()), |value, _| Value::list(vec![value]));
    vec![
        texts("1"),
        texts("ab "),
        texts("ä"),
        Value::list(numbers.clone()),
        Value::list(numbers.iter().map(|_| Value::from("P1D")).collect()),
        nested,
        Value::map(entries),
        Value::Bytes(vec![0; 200_000].into()),
    ]
}

#[test]
fn every_function_charges_the_size_of_its_arguments() {
    // These take constant time, whatever their arguments; `size` of a string charges by itself.
    let outlined: Vec<&str> = functions()
        .filter(|function| matches!(function.computed, Computed::Outlined(_)))
        .map(|function| function.name)
        .collect();
    assert_eq!(outlined, ["exists", "coalesce", "head", "last", "size", "isEmpty"]);
    for function in functions().filter(|function| !outlined.contains(&function.name)) {
        for count in function.least.max(1)..=function.most.min(3) {
            for (large, at) in
                large_values().iter().flat_map(|it| (0..count).map(move |at| (it, at)))
            {
                let mut arguments = vec![Value::from("day"); count];
                arguments[at] = large.clone();
                let steps = steps_of(&arguments);
                let charged = with_context(|context| {
                    *context.budget = Budget::unlimited();
                    _ = function.call(&arguments, context);
                    u64::MAX - context.budget.steps_left()
                });
                assert!(charged >= steps && steps >= 2_000, "{}: {charged}", function.name);
                let refused = with_context(|context| {
                    *context.budget = Budget::new(steps - 1, u64::MAX, || None);
                    function.call(&arguments, context).map_err(|error| error.kind)
                });
                assert!(
                    matches!(refused, Err(crate::error::ErrorKind::ResourceExhausted)),
                    "{}: {refused:?}",
                    function.name
                );
            }
        }
    }
}

#[test]
fn what_depends_on_two_sizes_takes_the_time_of_their_sum() {
    let call = |name: &str, arguments: &[Value]| {
        with_context(|context| {
            *context.budget = Budget::new(1 << 22, 64 << 20, || None);
            lookup(name).expect("a function").call(arguments, context).expect("within the budget")
        })
    };
    let text = |text: &str, times: usize| Value::string(text.repeat(times));
    let unwanted = Value::string(format!("{}b", "a".repeat(2_000_000)));
    let trimmed = call("btrim", &[text("b", 2_000_000), unwanted.clone()]);
    assert!(equivalent(&trimmed, &Value::from("")));
    assert!(equivalent(&call("ltrim", &[text("cb", 2), unwanted.clone()]), &Value::from("cbcb")));
    let parts = call("split", &[text("a", 4_000_000), unwanted.clone()]);
    assert!(equivalent(&parts, &Value::list(vec![text("a", 4_000_000)])));
    let several: Vec<Value> = (0..200).map(|n| text("a", 500 + n)).collect();
    let parts = call("split", &[text("a", 499), Value::list(several.clone())]);
    assert!(equivalent(&parts, &Value::list(vec![text("a", 499)])));
    let replaced = call("replace", &[text("a", 4_000_000), unwanted, Value::from("")]);
    assert!(equivalent(&replaced, &text("a", 4_000_000)));
}

#[test]
fn the_first_of_several_delimiters_splits() {
    let split = |text: &str, delimiters: &[&str]| {
        let delimiters = delimiters.iter().map(|it| Value::from(*it)).collect();
        with_context(|context| {
            lookup("split")
                .expect("a function")
                .call(&[Value::from(text), Value::list(delimiters)], context)
                .expect("parts")
        })
    };
    let parts = |parts: &[&str]| Value::list(parts.iter().map(|it| Value::from(*it)).collect());
    for (text, delimiters, expected) in [
        ("xaby", &["a", "ab"][..], &["x", "by"][..]),
        ("xaby", &["ab", "a"], &["x", "y"]),
        ("aa", &["a"], &["", "", ""]),
        ("äöä", &["ö", "x"], &["ä", "ä"]),
        ("", &["a", "b"], &[""]),
        ("ab", &["a", ""], &["a", "b"]),
        ("ab", &[], &["ab"]),
    ] {
        assert!(equivalent(&split(text, delimiters), &parts(expected)), "{text} {delimiters:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_argument_makes_a_function_panic(arguments in vec(value(), 3)) {
        with_context(|context| {
            for function in functions() {
                for count in function.least..=function.most.min(3) {
                    // Whether it accepts them does not matter.
                    _ = function.call(&arguments[..count], context);
                }
            }
        });
    }

    #[test]
    fn no_value_makes_arithmetic_of_time_panic(left in value(), right in value(), factor in float()) {
        if let Value::Duration(by) = &right {
            _ = temporal::plus(&left, by);
            _ = temporal::minus(&left, by);
            _ = temporal::scale(by, factor);
        }
        _ = temporal::text(&left);
    }

    #[test]
    fn no_value_makes_an_aggregation_panic(values in vec(value(), 0..6), fraction in value()) {
        let all = [
            Aggregate::Count, Aggregate::Sum, Aggregate::Average, Aggregate::Minimum, Aggregate::Maximum,
            Aggregate::Collect, Aggregate::Deviation, Aggregate::PopulationDeviation,
            Aggregate::PercentileContinuous, Aggregate::PercentileDiscrete,
        ];
        for aggregate in all {
            let mut accumulator = Accumulator::new(aggregate, true);
            let mut budget = Budget::unlimited();
            let added = values.iter().try_for_each(|value| accumulator.add(value.clone(), &fraction, &mut budget));
            if added.is_ok() {
                _ = accumulator.finish(&mut budget);
            }
        }
    }

    #[test]
    fn points_in_time_read_back_as_written(moment in moment()) {
        let kind = match &moment {
            Value::Date(_) => "date",
            Value::LocalTime(_) => "localtime",
            Value::Time(_) => "time",
            Value::LocalDateTime(_) => "localdatetime",
            _ => "datetime",
        };
        let written = temporal::text(&moment).expect("temporal");
        // No function here creates a zone name with an offset that the zone never had.
        prop_assume!(!written.contains('['));
        let read = with_context(|context| lookup(kind).expect("a function").call(&[Value::from(written.as_str())], context));
        prop_assert!(equivalent(&read.expect("readable"), &moment), "{}", written);
    }

    #[test]
    fn durations_read_back_as_written(duration in duration()) {
        let written = temporal::text(&duration).expect("temporal");
        let read = temporal::duration(&Value::from(written.as_str())).expect("readable");
        prop_assert_eq!(temporal::text(&Value::duration(read)), Some(written));
    }

    #[test]
    fn the_order_is_total_and_equivalence_goes_with_it(a in value(), b in value(), c in value()) {
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        prop_assert_eq!(order(&a, &a), Ordering::Equal);
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le());
        }
        prop_assert_eq!(Distinct::of([a.clone()]) == Distinct::of([b.clone()]), equivalent(&a, &b));
        if equals(&a, &b) == Some(true) {
            prop_assert!(equivalent(&a, &b));
        }
        if let crate::value::ValueOrder::Ordered(compared) = compare(&a, &b) {
            prop_assert_eq!(compared, order(&a, &b));
        }
    }
}
