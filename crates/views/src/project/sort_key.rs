//! Bytes that stand for a JSON value: equal exactly when the values are equal
//! (members in any order, numbers and strings in any spelling), and ordered
//! null < false < true < numbers < strings < arrays < objects.

use super::json::{self, Kind};
use super::number::Number;

/// Deepest nesting of a value that can be compared; the recursion below is bounded by it.
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
    /// It is nested more than [`MAX_DEPTH`] deep.
    TooDeep,
    /// It holds a string that is no Unicode text, or is not JSON.
    NotText,
}

/// The key of one JSON value, whose syntax has been checked before.
pub(super) fn sort_key(text: &str) -> Result<Vec<u8>, NoKey> {
    let mut key = Vec::with_capacity(text.len() + 16);
    Cursor { text, at: 0 }.value(&mut key, MAX_DEPTH)?;
    Ok(key)
}

/// Walks valid JSON once. On text that is not, it stops with [`NoKey::NotText`]; it never panics.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next byte that is not white space, not consumed.
    fn peek(&mut self) -> Result<u8, NoKey> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied().ok_or(NoKey::NotText)
    }

    /// Consumes the next byte if it is `wanted`.
    fn eat(&mut self, wanted: u8) -> Result<bool, NoKey> {
        let same = self.peek()? == wanted;
        self.at += usize::from(same);
        Ok(same)
    }

    /// Consumes bytes while `more` holds and returns the text passed over.
    fn take(&mut self, more: impl Fn(u8) -> bool) -> Result<&'a str, NoKey> {
        let rest = self.text.get(self.at..).ok_or(NoKey::NotText)?;
        let end = rest.bytes().position(|byte| !more(byte)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).filter(|text| !text.is_empty()).ok_or(NoKey::NotText)
    }

    /// A string with its quotes.
    fn string(&mut self) -> Result<&'a str, NoKey> {
        self.peek()?;
        let rest = self.text.get(self.at..).ok_or(NoKey::NotText)?;
        let mut escaped = false;
        for (i, byte) in rest.bytes().enumerate().skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.at += i + 1;
                    return rest.get(..=i).ok_or(NoKey::NotText);
                }
                _ => {}
            }
        }
        Err(NoKey::NotText)
    }

    fn value(&mut self, key: &mut Vec<u8>, depth: usize) -> Result<(), NoKey> {
        self.peek()?;
        match Kind::of(&self.text[self.at..]) {
            Kind::Object => self.object(key, depth),
            Kind::Array => self.array(key, depth),
            Kind::Text => push_string(key, self.string()?),
            Kind::Number => {
                let number = self.take(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))?;
                key.push(NUMBER);
                Number::parse(number).ok_or(NoKey::NotText)?.push_sort_key(key);
                Ok(())
            }
            Kind::Null | Kind::Boolean => {
                key.push(match self.take(|b| b.is_ascii_alphabetic())? {
                    "null" => NULL,
                    "false" => FALSE,
                    "true" => TRUE,
                    _ => return Err(NoKey::NotText),
                });
                Ok(())
            }
        }
    }

    fn array(&mut self, key: &mut Vec<u8>, depth: usize) -> Result<(), NoKey> {
        let depth = depth.checked_sub(1).ok_or(NoKey::TooDeep)?;
        self.at += 1;
        key.push(ARRAY);
        while !self.eat(b']')? {
            self.value(key, depth)?;
            self.eat(b',')?;
        }
        key.push(END);
        Ok(())
    }

    fn object(&mut self, key: &mut Vec<u8>, depth: usize) -> Result<(), NoKey> {
        let depth = depth.checked_sub(1).ok_or(NoKey::TooDeep)?;
        self.at += 1;
        let mut members: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        while !self.eat(b'}')? {
            let (mut name, mut value) = (Vec::new(), Vec::new());
            push_string(&mut name, self.string()?)?;
            self.eat(b':')?;
            self.value(&mut value, depth)?;
            self.eat(b',')?;
            members.push((name, value));
        }
        // Stable, so that of equal names the last one sent stands last; only it counts.
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
}

/// A zero byte ends a string; one inside it is followed by 0xFF, which begins no
/// other part of a key, so that a string sorts before every longer one it begins.
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
