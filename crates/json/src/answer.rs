//! Answers that are not hot: structs, written by serde in the order of their fields.

use serde::{Serialize, Serializer};
use wellspring_types::moment::push_rfc3339;

/// A struct as a JSON document.
#[must_use]
pub fn to_json(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).expect("texts, numbers and lists of them are JSON")
}

/// A moment in µs since 1970 UTC, written as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rfc3339(pub u64);

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::with_capacity(27);
        push_rfc3339(&mut text, self.0);
        serializer.serialize_str(&String::from_utf8_lossy(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_the_order_of_the_fields() {
        #[derive(Serialize)]
        struct Answer {
            later: Option<Rfc3339>,
            at: Rfc3339,
            a: bool,
        }
        let answer = Answer { later: None, at: Rfc3339(1_795_225_406_952_770), a: true };
        let text = String::from_utf8(to_json(&answer)).unwrap();
        assert_eq!(text, r#"{"later":null,"at":"2026-11-21T01:43:26.952770Z","a":true}"#);
    }
}
