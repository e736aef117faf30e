//! Equivalence, as used by DISTINCT and grouping. Null equals null, NaN equals NaN, 1 equals 1.0.

use super::{Value, order};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::LazyLock;

/// Whether DISTINCT and grouping treat two values as equal.
pub fn equivalent(left: &Value, right: &Value) -> bool {
    order(left, right) == Ordering::Equal
}

/// Whether every value that equals this one is equivalent to it, and none that does not: then a
/// hash table finds what equals it. Null and NaN equal nothing, and neither do lists with them.
pub fn meets_by_hash(value: &Value) -> bool {
    match value {
        Value::Boolean(_)
        | Value::Integer(_)
        | Value::String(_)
        | Value::Node(_)
        | Value::Relationship(_)
        | Value::Date(_)
        | Value::LocalDateTime(_) => true,
        Value::Float(float) => !float.is_nan(),
        Value::List(items) => items.iter().all(meets_by_hash),
        _ => false,
    }
}

/// Values as the key of a hash table, compared by equivalence. They are hashed once: a table that
/// grows does not traverse its keys again.
#[derive(Debug, Clone)]
pub struct Distinct<V> {
    hash: u64,
    values: V,
}

/// A set of such keys.
pub type DistinctSet<V> = HashSet<Distinct<V>, BuildHasherDefault<KnownHash>>;

/// A map with such keys.
pub type DistinctMap<V, T> = HashMap<Distinct<V>, T, BuildHasherDefault<KnownHash>>;

/// The key of all hashes, which no client knows.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl<V: AsRef<[Value]>> Distinct<V> {
    /// A key of these values.
    pub fn of(values: V) -> Self {
        let mut state = KEY.build_hasher();
        values.as_ref().iter().for_each(|value| hash(value, &mut state));
        Self { hash: state.finish(), values }
    }

    /// Its values.
    pub fn values(&self) -> &V {
        &self.values
    }
}

impl<V: AsRef<[Value]>> PartialEq for Distinct<V> {
    fn eq(&self, other: &Self) -> bool {
        let (left, right) = (self.values.as_ref(), other.values.as_ref());
        self.hash == other.hash
            && left.len() == right.len()
            && left.iter().zip(right).all(|(left, right)| equivalent(left, right))
    }
}

impl<V: AsRef<[Value]>> Eq for Distinct<V> {}

impl<V> Hash for Distinct<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Passes a known hash on to the table.
#[derive(Debug, Default)]
pub struct KnownHash(u64);

impl Hasher for KnownHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {}
}

/// Hashes equivalent values alike.
fn hash<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Null => state.write_u8(0),
        Value::Boolean(truth) => (1_u8, truth).hash(state),
        Value::Integer(integer) => (2_u8, integer).hash(state),
        Value::Float(float) => hash_float(*float, state),
        Value::String(text) => (4_u8, text).hash(state),
        Value::List(items) => {
            (5_u8, items.len()).hash(state);
            items.iter().for_each(|item| hash(item, state));
        }
        Value::Map(entries) => {
            (6_u8, entries.len()).hash(state);
            for (key, value) in entries.iter() {
                key.hash(state);
                hash(value, state);
            }
        }
        Value::Node(id) => (7_u8, id).hash(state),
        Value::Relationship(id) => (8_u8, id).hash(state),
        Value::Path(path) => (9_u8, path).hash(state),
        Value::Date(date) => (10_u8, date).hash(state),
        Value::LocalTime(time) => (11_u8, time).hash(state),
        Value::Time(time) => (12_u8, time).hash(state),
        Value::LocalDateTime(time) => (13_u8, time).hash(state),
        Value::DateTime(time) => (14_u8, time).hash(state),
        Value::Duration(duration) => (15_u8, duration).hash(state),
        Value::Point(point) => {
            (16_u8, point.system.srid()).hash(state);
            [point.x, point.y, point.z].iter().for_each(|float| hash_float(*float, state));
        }
        Value::Bytes(bytes) => (17_u8, bytes).hash(state),
    }
}

/// A float with an integer value hashes like that integer.
fn hash_float<H: Hasher>(float: f64, state: &mut H) {
    let integer = float as i64;
    if float.fract() == 0.0
        && super::compare::cmp_integer_float(integer, float) == Some(Ordering::Equal)
    {
        (2_u8, integer).hash(state);
    } else if float.is_nan() {
        state.write_u8(3);
    } else {
        (3_u8, float.to_bits()).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_values_meet_in_a_hash_table() {
        let same = [
            [Value::from(1), Value::from(1.0)],
            [Value::from(0.0), Value::from(-0.0)],
            [Value::from(f64::NAN), Value::from(-f64::NAN)],
            [Value::Null, Value::Null],
            [
                Value::list(vec![Value::from(2), Value::Null]),
                Value::list(vec![Value::from(2.0), Value::Null]),
            ],
        ];
        for pair in same {
            let table: DistinctSet<_> =
                pair.clone().into_iter().map(|value| Distinct::of([value])).collect();
            assert_eq!(table.len(), 1, "{pair:?}");
        }
    }

    #[test]
    fn what_only_resembles_is_kept_apart() {
        let values =
            [Value::from(1), Value::from("1"), Value::from(1.5), Value::Null, Value::from(true)];
        let large = [Value::from(i64::MAX), Value::from(i64::MAX as f64)];
        let all = values.into_iter().chain(large);
        let table: DistinctSet<_> = all.map(|value| Distinct::of([value])).collect();
        assert_eq!(table.len(), 7);
    }
}
