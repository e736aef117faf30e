//! Equality (`=`) and comparison (`<`), both three-valued: an unknown result is null.

use super::order::{cmp_instants, cmp_times};
use super::{Entries, Value};
use std::cmp::Ordering;

/// The relation between two values, from which `<`, `<=`, `>` and `>=` follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOrder {
    /// The values are comparable.
    Ordered(Ordering),
    /// One is NaN: every comparison is false.
    NotANumber,
    /// One is null, or their types are not comparable: every comparison is null.
    Unknown,
}

/// `left = right`; `None` is null.
pub fn equals(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Integer(a), Value::Integer(b)) => Some(a == b),
        (Value::String(a), Value::String(b)) => Some(a == b),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a == b),
        (Value::Float(a), Value::Float(b)) => Some(a == b),
        (Value::Integer(a), Value::Float(b)) => {
            Some(cmp_integer_float(*a, *b) == Some(Ordering::Equal))
        }
        (Value::Float(a), Value::Integer(b)) => {
            Some(cmp_integer_float(*b, *a) == Some(Ordering::Equal))
        }
        (Value::List(a), Value::List(b)) => equal_lists(a, b),
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b),
        (Value::Node(a), Value::Node(b)) => Some(a == b),
        (Value::Relationship(a), Value::Relationship(b)) => Some(a == b),
        (Value::Path(a), Value::Path(b)) => Some(a == b),
        (Value::Date(a), Value::Date(b)) => Some(a == b),
        (Value::LocalTime(a), Value::LocalTime(b)) => Some(a == b),
        (Value::Time(a), Value::Time(b)) => Some(a == b),
        (Value::LocalDateTime(a), Value::LocalDateTime(b)) => Some(a == b),
        (Value::DateTime(a), Value::DateTime(b)) => Some(a == b),
        (Value::Duration(a), Value::Duration(b)) => Some(a == b),
        (Value::Point(a), Value::Point(b)) => Some(a == b),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a == b),
        _ => Some(false),
    }
}

/// False beats null beats true: one pair that differs decides.
fn all_equal<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Option<bool> {
    let mut so_far = Some(true);
    for (left, right) in pairs {
        match equals(left, right) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => so_far = None,
        }
    }
    so_far
}

fn equal_lists(left: &[Value], right: &[Value]) -> Option<bool> {
    if left.len() != right.len() {
        return Some(false);
    }
    all_equal(left.iter().zip(right))
}

fn equal_maps(left: &Entries, right: &Entries) -> Option<bool> {
    if !left.keys().eq(right.keys()) {
        return Some(false);
    }
    all_equal(left.values().zip(right.values()))
}

/// Compares `left` with `right` for `<`, `<=`, `>` and `>=`.
pub fn compare(left: &Value, right: &Value) -> ValueOrder {
    let order = match (left, right) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => return number_order(a.partial_cmp(b)),
        (Value::Integer(a), Value::Float(b)) => return number_order(cmp_integer_float(*a, *b)),
        (Value::Float(a), Value::Integer(b)) => {
            return number_order(cmp_integer_float(*b, *a).map(Ordering::reverse));
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::LocalTime(a), Value::LocalTime(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => cmp_times(a, b),
        (Value::LocalDateTime(a), Value::LocalDateTime(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => cmp_instants(a, b),
        (Value::List(a), Value::List(b)) => return compare_lists(a, b),
        _ => return ValueOrder::Unknown,
    };
    ValueOrder::Ordered(order)
}

fn number_order(order: Option<Ordering>) -> ValueOrder {
    order.map_or(ValueOrder::NotANumber, ValueOrder::Ordered)
}

/// By the first elements that differ; a prefix of a list is less than the list.
fn compare_lists(left: &[Value], right: &[Value]) -> ValueOrder {
    related_lists(left, right).1
}

/// Whether two values are equal, and their relation, in one traversal of nested lists.
fn related(left: &Value, right: &Value) -> (Option<bool>, ValueOrder) {
    match (left, right) {
        (Value::List(a), Value::List(b)) => related_lists(a, b),
        _ => (equals(left, right), compare(left, right)),
    }
}

fn related_lists(left: &[Value], right: &[Value]) -> (Option<bool>, ValueOrder) {
    let have_one_length = left.len() == right.len();
    let mut pairs = left.iter().zip(right);
    while let Some((a, b)) = pairs.next() {
        match related(a, b) {
            (Some(true), _) => {}
            (Some(false), standing) => return (Some(false), standing),
            // Unknown, unless a later pair or the lengths tell that the lists differ.
            (None, _) => {
                let differ = !have_one_length || all_equal(pairs) == Some(false);
                return (if differ { Some(false) } else { None }, ValueOrder::Unknown);
            }
        }
    }
    (Some(have_one_length), ValueOrder::Ordered(left.len().cmp(&right.len())))
}

/// Exact even where a 64-bit float cannot represent the integer. `None` if the float is NaN.
pub(super) fn cmp_integer_float(integer: i64, float: f64) -> Option<Ordering> {
    /// 2^63, the first float above every integer.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        return None;
    }
    if float >= BEYOND {
        return Some(Ordering::Less);
    }
    if float < -BEYOND {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    let fraction = float - whole;
    // Within ±2^63 the conversion is exact.
    Some(integer.cmp(&(whole as i64)).then(0.0.partial_cmp(&fraction)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn list(items: &[Value]) -> Value {
        Value::list(items.to_vec())
    }

    #[test]
    fn null_makes_a_comparison_unknown_unless_something_else_decides() {
        let (one, two, null) = (Value::from(1), Value::from(2), Value::Null);
        assert_eq!(equals(&null, &null), None);
        assert_eq!(
            equals(&list(std::slice::from_ref(&null)), &list(std::slice::from_ref(&one))),
            None
        );
        let (a, b) = (list(&[one.clone(), null.clone()]), list(&[two, null]));
        assert_eq!(equals(&a, &b), Some(false));
        assert_eq!(equals(&one, &Value::from("1")), Some(false));
    }

    #[test]
    fn integers_and_floats_are_compared_exactly() {
        assert_eq!(equals(&Value::from(1), &Value::from(1.0)), Some(true));
        let large = i64::MAX;
        assert_eq!(cmp_integer_float(large, large as f64), Some(Ordering::Less));
        assert_eq!(cmp_integer_float(large - 1, f64::NEG_INFINITY), Some(Ordering::Greater));
        assert_eq!(cmp_integer_float(-3, -3.5), Some(Ordering::Greater));
        assert_eq!(cmp_integer_float(i64::MIN, i64::MIN as f64), Some(Ordering::Equal));
    }

    /// The definition that `compare` follows; it traverses nested lists once for each level.
    fn by_levels(left: &Value, right: &Value) -> ValueOrder {
        let (Value::List(a), Value::List(b)) = (left, right) else { return compare(left, right) };
        for (a, b) in a.iter().zip(b.iter()) {
            match equals(a, b) {
                Some(true) => {}
                Some(false) => return by_levels(a, b),
                None => return ValueOrder::Unknown,
            }
        }
        ValueOrder::Ordered(a.len().cmp(&b.len()))
    }

    fn nested() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), Just(Value::from(1)), Just(Value::from("a"))];
        leaf.prop_recursive(3, 12, 3, |inner| vec(inner, 0..3).prop_map(Value::list))
    }

    proptest! {
        #[test]
        fn nested_lists_are_compared_in_one_traversal(a in nested(), b in nested()) {
            prop_assert_eq!(compare(&a, &b), by_levels(&a, &b));
            if let (Value::List(a), Value::List(b)) = (&a, &b) {
                prop_assert_eq!(related_lists(a, b).0, equal_lists(a, b));
            }
        }
    }

    #[test]
    fn nan_is_neither_less_nor_more_and_strings_are_not_compared_with_numbers() {
        assert_eq!(compare(&Value::from(f64::NAN), &Value::from(1)), ValueOrder::NotANumber);
        assert_eq!(compare(&Value::from(f64::NAN), &Value::from("a")), ValueOrder::Unknown);
    }

    #[test]
    fn lists_are_compared_by_their_first_difference() {
        let (one, two, three) = (Value::from(1), Value::from(2), Value::from(3));
        let a = list(&[one.clone(), two]);
        assert_eq!(compare(&a, &list(&[three, Value::Null])), ValueOrder::Ordered(Ordering::Less));
        assert_eq!(compare(&a, &list(&[one.clone(), Value::Null])), ValueOrder::Unknown);
        assert_eq!(compare(&a, &list(&[one])), ValueOrder::Ordered(Ordering::Greater));
    }
}
