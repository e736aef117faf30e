//! Equality of the language, as constraints judge by it.

use super::{Canonical, Value};

impl Value {
    /// Whether the language calls both equal: `1` and `1.0` are, NaN is equal to nothing, and one
    /// instant seen from two offsets is two values.
    pub(crate) fn equals(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Integer(_), Value::Float(_)) | (Value::Float(_), Value::Integer(_)) => {
                Canonical::new(self) == Canonical::new(other)
            }
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(b))
            }
            _ => self == other,
        }
    }
}
