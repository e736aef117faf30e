//! A byte encoding of JSON values: equal exactly when the values are equal (members in any order,
//! numbers and strings in any spelling), and ordered null < false < true < numbers < strings <
//! arrays < objects.

use super::json;
use super::number;
use wellspring_json::TrustedCursor;

/// Maximum nesting of a value that can be compared; bounds the recursion below.
pub(super) const MAX_DEPTH: usize = 128;

const END: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const NUMBER: u8 = 4;
const STRING: u8 = 5;
const ARRAY: u8 = 6;
const OBJECT: u8 = 7;

/// Why a value has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The value is nested more than [`MAX_DEPTH`] levels deep.
    TooDeep,
    /// It contains a string that is not Unicode text, or is not JSON.
    NotText,
}

/// The key of one JSON value with valid syntax.
pub(super) fn sort_key(text: &str) -> Result<Vec<u8>, NoKey> {
    let mut key = Vec::with_capacity(text.len() + 16);
    push_value(&mut TrustedCursor::new(text), &mut key, MAX_DEPTH)?;
    Ok(key)
}

fn push_value(
    cursor: &mut TrustedCursor<'_>,
    key: &mut Vec<u8>,
    depth: usize,
) -> Result<(), NoKey> {
    match cursor.peek().ok_or(NoKey::NotText)? {
        b'{' => push_object(cursor, key, depth.checked_sub(1).ok_or(NoKey::TooDeep)?),
        b'[' => push_array(cursor, key, depth.checked_sub(1).ok_or(NoKey::TooDeep)?),
        b'"' => push_string(key, cursor.string().ok_or(NoKey::NotText)?),
        _ => {
            match cursor.value().ok_or(NoKey::NotText)? {
                "null" => key.push(NULL),
                "false" => key.push(FALSE),
                "true" => key.push(TRUE),
                number => {
                    key.push(NUMBER);
                    number::push_sort_key(number, key).ok_or(NoKey::NotText)?;
                }
            }
            Ok(())
        }
    }
}

fn push_array(
    cursor: &mut TrustedCursor<'_>,
    key: &mut Vec<u8>,
    depth: usize,
) -> Result<(), NoKey> {
    key.push(ARRAY);
    cursor.eat(b'[');
    while !cursor.eat(b']').ok_or(NoKey::NotText)? {
        push_value(cursor, key, depth)?;
        cursor.eat(b',');
    }
    key.push(END);
    Ok(())
}

fn push_object(
    cursor: &mut TrustedCursor<'_>,
    key: &mut Vec<u8>,
    depth: usize,
) -> Result<(), NoKey> {
    let mut members: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    cursor.eat(b'{');
    while !cursor.eat(b'}').ok_or(NoKey::NotText)? {
        let (mut name, mut value) = (Vec::new(), Vec::new());
        push_string(&mut name, cursor.string().ok_or(NoKey::NotText)?)?;
        cursor.eat(b':');
        push_value(cursor, &mut value, depth)?;
        cursor.eat(b',');
        members.push((name, value));
    }
    // Stable, so that of equal names the last one sent comes last; only that one counts.
    members.sort_by(|a, b| a.0.cmp(&b.0));
    key.push(OBJECT);
    for (i, (name, value)) in members.iter().enumerate() {
        if members.get(i + 1).is_none_or(|next| next.0 != *name) {
            key.extend_from_slice(name);
            key.extend_from_slice(value);
        }
    }
    key.push(END);
    Ok(())
}

/// A zero byte ends a string. A zero byte inside it is followed by 0xFF, which starts no other part
/// of a key, so a string sorts before every longer one that it is a prefix of.
fn push_string(key: &mut Vec<u8>, raw: &str) -> Result<(), NoKey> {
    let text = json::string(raw).ok_or(NoKey::NotText)?;
    key.push(STRING);
    for byte in text.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    key.push(END);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_ordered_by_kind_then_value() {
        let rising = [
            "null",
            "false",
            "true",
            "-1e9",
            "-2",
            "-0.5",
            "0",
            "0.5",
            "2",
            "10",
            "1e9",
            r#""""#,
            r#""\u0000""#,
            r#""\u0000a""#,
            r#""\u0001""#,
            r#""a""#,
            r#""a\u0000""#,
            r#""ab""#,
            r#""é""#,
            "[]",
            "[1]",
            "[1,1]",
            "[2]",
            "[[]]",
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1,"b":0}"#,
            r#"{"a":2}"#,
        ];
        for pair in rising.windows(2) {
            assert!(sort_key(pair[0]).unwrap() < sort_key(pair[1]).unwrap(), "{pair:?}");
        }
    }

    #[test]
    fn spelling_does_not_matter() {
        let one = sort_key(r#"{"a":[1.0,"é\/"],"b":{}}"#).unwrap();
        let other =
            sort_key(r#" { "b" : { } , "a":7, "\u0061" : [ 10e-1 , "\u00e9/" ] } "#).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn deep_values_and_broken_strings_have_no_key() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(sort_key(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(sort_key(&nested(MAX_DEPTH + 1)), Err(NoKey::TooDeep));
        assert_eq!(sort_key(&nested(1_000_000)), Err(NoKey::TooDeep));
        assert_eq!(sort_key(r#""\ud800""#), Err(NoKey::NotText));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"[\[\]{}",:\\ae0-9.tn é-]{0,40}"#) {
            let _ = sort_key(&text);
        }
    }
}
