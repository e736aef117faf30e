//! Values as ordered bytes: the sort order of indexes and the key of equality lookups.

use super::{NANOSECONDS, Value, put_varint};

/// Number of bytes of a canonical form that an index stores unchanged.
pub const PREFIX_BYTES: usize = 16;

/// The canonical form of one value or several. Values that Cypher considers equal have the same
/// form (`1` and `1.0`), and byte order is Cypher's order within a kind of values.
///
/// It is coarser than equality: the same instant at different offsets has one form. Matches are
/// candidates that must be compared again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Canonical(Vec<u8>);

impl Canonical {
    /// The form of one value.
    #[must_use]
    pub fn new(value: &Value) -> Canonical {
        let mut bytes = Vec::with_capacity(24);
        put(&mut bytes, value);
        Canonical(bytes)
    }

    /// The form of several values, the most significant first.
    pub fn of_all<'a>(values: impl IntoIterator<Item = &'a Value>) -> Canonical {
        let mut bytes = Vec::with_capacity(24);
        values.into_iter().for_each(|value| put(&mut bytes, value));
        Canonical(bytes)
    }

    /// The first bytes, padded with zeros.
    #[must_use]
    pub fn prefix(&self) -> [u8; PREFIX_BYTES] {
        let mut prefix = [0; PREFIX_BYTES];
        let length = self.0.len().min(PREFIX_BYTES);
        prefix[..length].copy_from_slice(&self.0[..length]);
        prefix
    }

    /// A hash of all bytes. Snapshots store it, so it must not change.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ self.0.len() as u64;
        for chunk in self.0.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            state = mix(state ^ u64::from_le_bytes(word));
        }
        state
    }
}

fn mix(mut state: u64) -> u64 {
    state = (state ^ state >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    state = (state ^ state >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    state ^ state >> 33
}

fn put(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Boolean(value) => out.extend([1, u8::from(*value)]),
        Value::Integer(value) => put_integer(out, *value),
        Value::Float(value) => put_float(out, *value),
        Value::String(text) => {
            out.push(3);
            put_escaped(out, text.as_bytes());
        }
        Value::Bytes(bytes) => {
            out.push(4);
            put_escaped(out, bytes);
        }
        Value::List(items) => {
            out.push(5);
            items.iter().for_each(|item| put(out, item));
            out.push(0);
        }
        Value::Point(point) => {
            out.push(6);
            put_varint(out, point.system.srid().into());
            for coordinate in [point.x, point.y, point.z] {
                put_ordered(out, coordinate);
            }
        }
        _ => put_temporal(out, value),
    }
}

fn put_temporal(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Date(date) => {
            out.push(7);
            put_signed(out, date.days);
        }
        Value::LocalTime(time) => {
            out.push(8);
            out.extend(time.nanoseconds.to_be_bytes());
        }
        Value::Time(time) => {
            out.push(9);
            let offset = i64::from(time.offset) * NANOSECONDS as i64;
            put_signed(out, (time.nanoseconds as i64).wrapping_sub(offset));
        }
        Value::LocalDateTime(at) => {
            out.push(10);
            put_signed(out, at.seconds);
            out.extend(at.nanoseconds.to_be_bytes());
        }
        Value::DateTime(at) => {
            out.push(11);
            put_signed(out, at.seconds);
            out.extend(at.nanoseconds.to_be_bytes());
        }
        Value::Duration(duration) => {
            out.push(12);
            put_signed(out, duration.months);
            put_signed(out, duration.days);
            put_signed(out, duration.seconds);
            out.extend(duration.nanoseconds.to_be_bytes());
        }
        _ => {}
    }
}

/// Bytes terminated by two zeros, so that no form is a prefix of another.
fn put_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(1);
        }
    }
    out.extend([0, 0]);
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    out.extend((value as u64 ^ 1 << 63).to_be_bytes());
}

/// Encodes a float so that byte order is numeric order; NaN comes last, and both zeros are equal.
fn put_ordered(out: &mut Vec<u8>, value: f64) {
    let bits = match value {
        _ if value.is_nan() => f64::NAN.to_bits() & !(1 << 63),
        _ if value == 0.0 => 0,
        _ => value.to_bits(),
    };
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.extend(ordered.to_be_bytes());
}

/// Encodes a number as the nearest float and the difference, which is zero for a float.
fn put_float(out: &mut Vec<u8>, value: f64) {
    out.push(2);
    put_ordered(out, value);
    out.extend(ROUNDING.to_be_bytes());
}

fn put_integer(out: &mut Vec<u8>, value: i64) {
    out.push(2);
    let nearest = value as f64;
    put_ordered(out, nearest);
    // At most half the distance between floats near 2^63, which is 1,024.
    let off = i128::from(value) - nearest as i128;
    out.extend((i128::from(ROUNDING) + off).clamp(0, 0xffff).to_le_bytes()[..2].iter().rev());
}

/// The difference of a number that is exactly a float.
const ROUNDING: u16 = 0x8000;

#[cfg(test)]
mod tests {
    use super::*;

    fn form(value: impl Into<Value>) -> Canonical {
        Canonical::new(&value.into())
    }

    #[test]
    fn equal_numbers_are_one_form_and_order_is_kept() {
        assert_eq!(form(1), form(1.0));
        assert_eq!(form(0.0), form(-0.0));
        assert_eq!(form(f64::NAN), form(-f64::NAN));
        assert_ne!(form(i64::MAX), form(i64::MAX - 1));
        let ordered = [
            form(f64::NEG_INFINITY),
            form(i64::MIN),
            form(i64::MIN + 1),
            form(-1.5),
            form(-1),
            form(0),
            form(0.5),
            form(1),
            form((1i64 << 53) - 1),
            form(1i64 << 53),
            form((1i64 << 53) + 1),
            form(i64::MAX - 1),
            form(i64::MAX),
            form(9.3e18),
            form(f64::INFINITY),
            form(f64::NAN),
        ];
        assert!(ordered.windows(2).all(|pair| pair[0] < pair[1]), "{ordered:?}");
    }

    #[test]
    fn texts_keep_their_order_and_lists_are_told_apart() {
        let texts = ["", "\0", "\0a", "a", "a\0", "ab", "b"];
        assert!(texts.windows(2).all(|pair| form(pair[0]) < form(pair[1])));
        let list = |items: &[Value]| Canonical::new(&Value::List(items.into()));
        assert_eq!(list(&[1.into(), 2.0.into()]), list(&[1.0.into(), 2.into()]));
        assert_ne!(list(&["a".into(), "b".into()]), list(&["ab".into()]));
    }

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(form("Wellspring").hash(), 8_508_005_813_114_307_881);
    }
}
