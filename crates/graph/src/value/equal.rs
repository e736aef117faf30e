//! Cypher's equality, which constraints use.

use super::{Canonical, Value};

impl Value {
    /// Whether Cypher considers both equal: `1` equals `1.0`, NaN equals nothing, and one instant
    /// at two offsets is two values.
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
