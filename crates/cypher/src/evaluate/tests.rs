//! Values of expressions that the TCK does not test.

use super::{evaluate, truth};
use crate::context::{Budget, Context, Names, NoSubqueries, Parameters, Patterns, StatementTime};
use crate::error::{Detail, ErrorKind, Result};
use crate::ir::{
    BinaryOperator, Case, Comparison, Expression, ListComprehension, MapProjectionItem, Quantifier,
    Quantity, Reduce, Slot, UnaryOperator,
};
use crate::temporal;
use crate::value::{MAX_DEPTH, Value, equivalent};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use wellspring_graph::{Graph, Transaction};
use wellspring_types::random::SplitMix64;

fn value_within(expression: &Expression, budget: &mut Budget) -> Result<Value> {
    value_of_row(expression, &mut [Value::Null, Value::Null], budget)
}

fn value_of_row(expression: &Expression, row: &mut [Value], budget: &mut Budget) -> Result<Value> {
    let mut transaction = Transaction::reading(Graph::new());
    let mut context = Context {
        transaction: &mut transaction,
        parameters: &Parameters::new(),
        database: "test",
        time: StatementTime { seconds: 0, nanoseconds: 0 },
        random: &mut SplitMix64::new(1),
        budget,
        patterns: Patterns::default(),
        names: Names::default(),
        known: crate::context::FoundTables::default(),
        subqueries: &NoSubqueries,
        server: &crate::NoServer,
    };
    evaluate(expression, row, &mut context)
}

fn value(expression: &Expression) -> Result<Value> {
    value_within(expression, &mut Budget::unlimited())
}

fn call(name: &str, arguments: &[Expression]) -> Expression {
    Expression::Function(name.into(), arguments.to_vec())
}

fn integer(number: i64) -> Expression {
    Expression::Integer(number)
}

fn string(text: &str) -> Expression {
    Expression::String(text.into())
}

fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}

fn range(to: i64) -> Expression {
    call("range", &[integer(1), integer(to)])
}

fn reduce(initial: Expression, to: i64, step: Expression) -> Expression {
    let list = range(to);
    Expression::Reduce(Box::new(Reduce {
        accumulator: Slot(0),
        initial,
        variable: Slot(1),
        list,
        step,
    }))
}

#[test]
fn integers_that_leave_64_bits_are_errors() {
    let (least, greatest) = (integer(i64::MIN), integer(i64::MAX));
    let cases = [
        binary(BinaryOperator::Add, greatest.clone(), integer(1)),
        binary(BinaryOperator::Subtract, least.clone(), integer(1)),
        binary(BinaryOperator::Multiply, greatest, integer(2)),
        binary(BinaryOperator::Divide, least.clone(), integer(-1)),
        Expression::Unary(UnaryOperator::Minus, Box::new(least.clone())),
        call("abs", std::slice::from_ref(&least)),
    ];
    for case in cases {
        assert_eq!(
            value(&case).expect_err("too large").detail,
            Detail::IntegerOverflow,
            "{case:?}"
        );
    }
    let rest = value(&binary(BinaryOperator::Modulo, least, integer(-1))).expect("a remainder");
    assert!(equivalent(&rest, &Value::from(0)));
    for operator in [BinaryOperator::Divide, BinaryOperator::Modulo] {
        let error = value(&binary(operator, integer(1), integer(0))).expect_err("nothing by zero");
        assert_eq!(
            (error.kind, error.detail),
            (ErrorKind::ArithmeticError, Detail::DivisionByZero)
        );
    }
}

#[test]
fn a_long_range_is_refused_before_it_is_made() {
    let error =
        value_within(&range(1_000_000_000_000), &mut Budget::new(1_000_000, 1 << 30, || None));
    assert_eq!(error.expect_err("too long").detail, Detail::LimitExceeded);
    let widest = call("range", &[integer(i64::MIN), integer(i64::MAX)]);
    let error = value_within(&widest, &mut Budget::new(u64::MAX - 1, u64::MAX, || None));
    assert_eq!(error.expect_err("too long").detail, Detail::LimitExceeded);
    let ends = call("range", &[integer(i64::MAX), integer(i64::MIN), integer(i64::MIN)]);
    let two = value(&ends).expect("two numbers");
    assert!(equivalent(&two, &Value::list(vec![Value::from(i64::MAX), Value::from(-1)])));
}

#[test]
fn comparing_what_is_large_takes_its_steps() {
    let large = reduce(
        Expression::List(vec![]),
        10_000,
        binary(BinaryOperator::Add, Expression::Variable(Slot(0)), integer(7)),
    );
    let same = Expression::Comparison(Box::new(large.clone()), vec![(Comparison::Equal, large)]);
    let steps_of = |expression: &Expression| {
        let mut budget = Budget::new(1 << 40, 1 << 30, || None);
        value_within(expression, &mut budget).expect("a value");
        (1_u64 << 40) - budget.steps_left()
    };
    let Expression::Comparison(first, _) = &same else { unreachable!() };
    assert!(steps_of(&same) > 2 * steps_of(first) + 10_000 * 24 / 256);
}

#[test]
fn a_text_that_doubles_ends_at_the_memory() {
    let twice =
        binary(BinaryOperator::Add, Expression::Variable(Slot(0)), Expression::Variable(Slot(0)));
    let doubling = reduce(string("x"), 100, twice);
    let mut budget = Budget::new(u64::MAX, 1 << 20, || None);
    let error = value_within(&doubling, &mut budget).expect_err("too large");
    assert_eq!(error.detail, Detail::LimitExceeded);
    assert_eq!(budget.bytes_left(), 1 << 20);
}

#[test]
fn lists_and_texts_grow_step_by_step_within_their_own_size() {
    let plus = |addend| binary(BinaryOperator::Add, Expression::Variable(Slot(0)), addend);
    for (initial, addend) in
        [(Expression::List(vec![]), Expression::Variable(Slot(1))), (string(""), string("xy"))]
    {
        let growing = call("size", &[reduce(initial, 50_000, plus(addend))]);
        let mut budget = Budget::new(100_000_000, 4 << 20, || None);
        assert!(value_within(&growing, &mut budget).is_ok_and(|size| !size.is_null()));
    }
    // The addend may be the accumulator itself.
    let doubled =
        reduce(Expression::List(vec![integer(1)]), 3, plus(Expression::Variable(Slot(0))));
    let size = value(&call("size", &[doubled])).expect("a number");
    assert!(equivalent(&size, &Value::from(8)));
}

#[test]
fn values_are_nested_so_deep_and_no_deeper() {
    let deeper = Expression::List(vec![Expression::Variable(Slot(0))]);
    let just = reduce(integer(1), i64::from(MAX_DEPTH), deeper.clone());
    assert_eq!(value(&just).expect("as deep as can be").depth(), MAX_DEPTH);
    let error = value(&reduce(integer(1), 100_000, deeper)).expect_err("too deep");
    assert_eq!(error.detail, Detail::LimitExceeded);
    let map = Expression::Map(vec![("a".into(), Expression::Variable(Slot(0)))]);
    assert!(value(&reduce(integer(1), 100_000, map)).is_err());
    let wrapped = binary(
        BinaryOperator::Add,
        Expression::List(vec![]),
        Expression::List(vec![Expression::Variable(Slot(0))]),
    );
    assert!(value(&reduce(integer(1), 100_000, wrapped)).is_err());
}

#[test]
fn deep_expressions_find_stack() {
    let mut chain = integer(0);
    for _ in 0..50_000 {
        chain = binary(BinaryOperator::Add, chain, integer(1));
    }
    let sum = value(&chain).expect("a number");
    assert!(equivalent(&sum, &Value::from(50_000)));
    // Dropping it recurses as deeply.
    stacker::grow(256 << 20, || drop(chain));
}

#[test]
fn what_decides_alone_is_not_evaluated_further() {
    let fails = binary(BinaryOperator::Divide, integer(1), integer(0));
    let no = binary(BinaryOperator::And, Expression::Boolean(false), fails.clone());
    assert_eq!(truth(&value(&no).expect("false")).expect("a truth"), Some(false));
    let unknown = binary(BinaryOperator::Or, Expression::Null, Expression::Boolean(true));
    assert_eq!(truth(&value(&unknown).expect("true")).expect("a truth"), Some(true));
    let first = call("coalesce", &[Expression::Null, integer(1)]);
    assert!(equivalent(&value(&first).expect("a number"), &Value::from(1)));
    assert!(value(&fails).is_err());
}

#[test]
fn regular_expressions_match_the_whole_and_are_bounded() {
    let matches = |pattern: &str| {
        value(&binary(BinaryOperator::Matches, string("Wellspring"), string(pattern)))
    };
    assert!(equivalent(&matches("(?i)well.*").expect("a truth"), &Value::from(true)));
    assert!(equivalent(&matches("Well").expect("a truth"), &Value::from(false)));
    assert!(equivalent(&matches("\\p{Lu}\\w+").expect("a truth"), &Value::from(true)));
    for pattern in ["(", "(((a{1000}){1000}){1000})", "a{99999999}"] {
        assert_eq!(
            matches(pattern).expect_err("no pattern").kind,
            ErrorKind::ArgumentError,
            "{pattern}"
        );
    }
}

#[test]
fn functions_of_strings_count_characters() {
    let cases = [
        (call("substring", &[string("häuser"), integer(1), integer(3)]), Value::from("äus")),
        (call("left", &[string("häuser"), integer(99)]), Value::from("häuser")),
        (call("right", &[string("häuser"), integer(2)]), Value::from("er")),
        (call("reverse", &[string("aé")]), Value::from("éa")),
        (call("size", &[string("äöü")]), Value::from(3)),
        (call("replace", &[string("aaa"), string("a"), string("bb")]), Value::from("bbbbbb")),
        (call("trim", &[string(" \u{a0}x ")]), Value::from("x")),
        (call("toInteger", &[string("0.9e1")]), Value::from(9)),
        (call("toInteger", &[Expression::Float(1e300)]), Value::Null),
        (call("toFloat", &[string("x")]), Value::Null),
        (call("round", &[Expression::Float(-1.5)]), Value::from(-1.0)),
        (call("round", &[Expression::Float(2.345), integer(2)]), Value::from(2.35)),
        (
            call("split", &[string("a,b;c"), Expression::List(vec![string(","), string(";")])]),
            list(&["a", "b", "c"]),
        ),
        (call("split", &[string("ab"), string("")]), list(&["a", "b"])),
    ];
    for (expression, expected) in cases {
        let came = value(&expression).expect("a value");
        assert!(equivalent(&came, &expected), "{expression:?}: {came:?}");
    }
    assert!(value(&call("left", &[string("x"), integer(-1)])).is_err());
}

fn list(texts: &[&str]) -> Value {
    Value::list(texts.iter().map(|text| Value::from(*text)).collect())
}

#[test]
fn what_is_written_reads_back() {
    for (function, text) in [
        ("date", "-0001-12-31"),
        ("date", "+12345-01-01"),
        ("time", "23:59:59.500-18:00"),
        ("localdatetime", "2020-02-29T00:00:00.000000001"),
        ("datetime", "2017-10-29T02:30+01:00[Europe/Stockholm]"),
        ("datetime", "2017-10-29T02:30+02:00[Europe/Stockholm]"),
        ("duration", "P1Y-2M3DT-4H5M-0.000000001S"),
    ] {
        let read = value(&call(function, &[string(text)])).expect("readable");
        let written = temporal::text(&read).expect("temporal");
        let again = value(&call(function, &[string(&written)])).expect("readable");
        assert!(equivalent(&read, &again), "{text}: {written}");
        if function != "duration" {
            assert_eq!(written, text);
        }
    }
}

#[test]
fn a_comprehension_leaves_out_what_is_not_true() {
    let expression = Expression::ListComprehension(Box::new(ListComprehension {
        variable: Slot(1),
        list: Expression::List(vec![integer(1), Expression::Null, integer(3)]),
        predicate: Some(Expression::Unary(
            UnaryOperator::IsNotNull,
            Box::new(Expression::Variable(Slot(1))),
        )),
        result: None,
    }));
    let came = value(&expression).expect("a list");
    assert!(equivalent(&came, &Value::list(vec![Value::from(1), Value::from(3)])));
}

fn leaf() -> impl Strategy<Value = Expression> {
    let slots =
        prop_oneof![Just(0), Just(1), Just(7)].prop_map(|slot| Expression::Variable(Slot(slot)));
    prop_oneof![
        Just(Expression::Null),
        any::<bool>().prop_map(Expression::Boolean),
        prop_oneof![-3_i64..9, any::<i64>()].prop_map(Expression::Integer),
        any::<f64>().prop_map(Expression::Float),
        select(vec!["", "a", "(", "P1D", "2020-01-01", "day"]).prop_map(string),
        slots,
        Just(Expression::Parameter("absent".into())),
    ]
}

fn operator() -> impl Strategy<Value = BinaryOperator> {
    use BinaryOperator as B;
    let logical = [B::Or, B::Xor, B::And, B::In];
    let numbers = [B::Add, B::Subtract, B::Multiply, B::Divide, B::Modulo, B::Power];
    let texts = [B::StartsWith, B::EndsWith, B::Contains, B::Matches];
    select([&logical[..], &numbers, &texts].concat())
}

fn with_variables(inner: &BoxedStrategy<Expression>) -> impl Strategy<Value = Expression> + use<> {
    let four = (inner.clone(), inner.clone(), inner.clone(), any::<bool>());
    let quantities = select(vec![Quantity::All, Quantity::Any, Quantity::None, Quantity::Single]);
    let quantified =
        (quantities, inner.clone(), inner.clone()).prop_map(|(quantity, list, predicate)| {
            Expression::Quantifier(Box::new(Quantifier {
                quantity,
                variable: Slot(1),
                list,
                predicate,
            }))
        });
    let others = four.prop_map(|(a, b, c, reduces)| {
        if reduces {
            Expression::Reduce(Box::new(Reduce {
                accumulator: Slot(0),
                initial: a,
                variable: Slot(1),
                list: b,
                step: c,
            }))
        } else {
            Expression::ListComprehension(Box::new(ListComprehension {
                variable: Slot(1),
                list: a,
                predicate: Some(b),
                result: Some(c),
            }))
        }
    });
    prop_oneof![quantified, others]
}

fn any_expression() -> impl Strategy<Value = Expression> {
    leaf().prop_recursive(4, 40, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let many = || vec(inner.clone(), 0..4);
        let functions =
            select(crate::functions::functions().map(|function| function.name).collect::<Vec<_>>());
        let comparisons = select(vec![
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::GreaterOrEqual,
        ]);
        let unary = select(vec![
            UnaryOperator::Not,
            UnaryOperator::Plus,
            UnaryOperator::Minus,
            UnaryOperator::IsNull,
        ]);
        prop_oneof![
            (boxed(), select(vec!["year", "x", "a"]))
                .prop_map(|(subject, key)| Expression::Property(subject, key.into())),
            (boxed(), boxed()).prop_map(|(subject, index)| Expression::Index(subject, index)),
            (boxed(), boxed()).prop_map(|(list, to)| Expression::Slice(list, None, Some(to))),
            many().prop_map(Expression::List),
            many().prop_map(|values| Expression::Map(
                values.into_iter().map(|value| ("a".into(), value)).collect()
            )),
            (boxed(), inner.clone()).prop_map(|(subject, entry)| {
                let items = vec![
                    MapProjectionItem::AllProperties,
                    MapProjectionItem::Entry("b".into(), entry),
                ];
                Expression::MapProjection(subject, items)
            }),
            (unary, boxed()).prop_map(|(operator, operand)| Expression::Unary(operator, operand)),
            (operator(), boxed(), boxed())
                .prop_map(|(operator, left, right)| Expression::Binary(operator, left, right)),
            (boxed(), vec((comparisons, inner.clone()), 1..3))
                .prop_map(|(first, rest)| Expression::Comparison(first, rest)),
            boxed().prop_map(|subject| Expression::HasLabels(subject, vec!["A".into()])),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(subject, when, then)| {
                let alternatives = vec![(when, then)];
                Expression::Case(Box::new(Case {
                    subject: Some(subject),
                    alternatives,
                    otherwise: None,
                }))
            }),
            (functions, many()).prop_map(|(name, arguments)| {
                let function = crate::functions::lookup(name).expect("in the catalogue");
                let filled = arguments.into_iter().chain(std::iter::repeat(Expression::Integer(1)));
                let count = function.least.max(function.most.min(2));
                Expression::Function(name.into(), filled.take(count).collect())
            }),
            with_variables(&inner.clone().boxed()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_expression_comes_to_a_value_or_an_error_and_gives_its_memory_back(expression in any_expression()) {
        let mut budget = Budget::new(20_000, 1 << 20, || None);
        _ = value_within(&expression, &mut budget);
        prop_assert_eq!(budget.bytes_left(), 1 << 20);
    }
}

#[test]
fn an_instant_is_also_told_by_the_seconds_since_1970() {
    let fields = Expression::Map(vec![
        ("epochSeconds".into(), integer(1_000_000_000)),
        ("nanosecond".into(), integer(5)),
        ("timezone".into(), string("Europe/Stockholm")),
    ]);
    let told = value(&call("datetime", &[fields])).expect("a point in time");
    let text = temporal::text(&told).expect("temporal");
    assert_eq!(text, "2001-09-09T03:46:40.000000005+02:00[Europe/Stockholm]");
}

/// Large values as an expression reads them: from the row, each a copy of its own.
fn large_rows() -> Vec<[Value; 2]> {
    let row = |make: &dyn Fn() -> Value| [make(), make()];
    let numbers = || Value::list((0..20_000).map(Value::Integer).collect());
    vec![
        row(&|| Value::string("a".repeat(400_000))),
        row(&numbers),
        row(&|| (0..200).fold(numbers(), |value, _| Value::list(vec![value]))),
        row(&|| Value::map((0..4_000_i64).map(|n| (n.to_string().into(), Value::from(n))))),
    ]
}

/// Every operator on two values.
fn operators() -> Vec<Expression> {
    use BinaryOperator as B;
    use Comparison as C;
    let slot = |number| Expression::Variable(Slot(number));
    let all = [
        B::Or,
        B::Xor,
        B::And,
        B::Add,
        B::Subtract,
        B::Multiply,
        B::Divide,
        B::Modulo,
        B::Power,
        B::In,
        B::StartsWith,
        B::EndsWith,
        B::Contains,
        B::Matches,
    ];
    // A new operator must be listed above.
    for operator in all {
        match operator {
            B::Or | B::Xor | B::And | B::Add | B::Subtract | B::Multiply | B::Divide => {}
            B::Modulo | B::Power | B::In | B::StartsWith | B::EndsWith => {}
            B::Contains | B::Matches => {}
        }
    }
    let comparisons =
        [C::Equal, C::NotEqual, C::Less, C::LessOrEqual, C::Greater, C::GreaterOrEqual];
    let binary = all.map(|operator| binary(operator, slot(0), slot(1)));
    let compared = comparisons
        .map(|comparison| Expression::Comparison(Box::new(slot(0)), vec![(comparison, slot(1))]));
    let alternatives = vec![(slot(1), integer(1))];
    let case = Case { subject: Some(slot(0)), alternatives, otherwise: None };
    let in_list = self::binary(B::In, slot(0), Expression::List(vec![slot(1)]));
    let all_of = Expression::ListComprehension(Box::new(ListComprehension {
        variable: Slot(1),
        list: slot(0),
        predicate: None,
        result: None,
    }));
    let properties =
        Expression::MapProjection(Box::new(slot(0)), vec![MapProjectionItem::AllProperties]);
    let more = [
        Expression::Case(Box::new(case)),
        in_list,
        all_of,
        properties,
        Expression::Slice(Box::new(slot(0)), None, None),
        Expression::Index(Box::new(Expression::Map(vec![])), Box::new(slot(0))),
    ];
    binary.into_iter().chain(compared).chain(more).collect()
}

#[test]
fn every_operator_charges_the_size_of_its_operands() {
    for expression in operators() {
        // These look at the elements of a list only from outside.
        let is_shallow = matches!(
            expression,
            Expression::Binary(BinaryOperator::Add, ..)
                | Expression::ListComprehension(_)
                | Expression::Slice(..)
        );
        for mut row in large_rows() {
            let steps = match &row[0] {
                Value::List(items) if is_shallow => items.len() as u64,
                other => other.steps(),
            };
            let mut budget = Budget::unlimited();
            let came = value_of_row(&expression, &mut row.clone(), &mut budget);
            let charged = u64::MAX - budget.steps_left();
            // A value of another type is refused at once, or makes it null.
            let is_refused = match came {
                Ok(value) => value.is_null(),
                Err(error) => {
                    matches!(error.kind, ErrorKind::TypeError | ErrorKind::ArgumentError)
                }
            };
            assert!(is_refused || charged >= steps, "{expression:?}: {charged} of {steps}");
            if !is_refused {
                let mut budget = Budget::new(steps - 1, u64::MAX, || None);
                let error = value_of_row(&expression, &mut row, &mut budget).expect_err("too few");
                assert_eq!(error.kind, ErrorKind::ResourceExhausted, "{expression:?}");
            }
        }
    }
}
