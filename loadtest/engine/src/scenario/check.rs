//! What an answer must be like besides its status.

use super::pointer::{Pointer, PointerMatch, text_of};
use crate::workload::Head;
use serde_json::Value;

/// One thing that must hold of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Check {
    /// A value of the body, which must be JSON.
    Json(Pointer, Test),
    /// A header field.
    Header(String, Test),
    /// The body is exactly this.
    Body(String),
    /// The body contains this.
    Contains(String),
    /// The body does not contain this.
    Lacks(String),
}

/// What a value must be like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    Exists,
    Missing,
    Equals(Value),
    Differs(Value),
    /// Text: contains this text. List: contains this value.
    Contains(Value),
    StartsWith(String),
    EndsWith(String),
    /// `*` stands for any text.
    Like(String),
    AtLeast(f64),
    AtMost(f64),
    /// Length of a text in characters, of a list or an object in entries.
    Length(u64),
    /// `string`, `number`, `boolean`, `null`, `array` or `object`.
    Kind(String),
}

/// Words for [`Test::Kind`].
pub(crate) const KINDS: [&str; 6] = ["string", "number", "boolean", "null", "array", "object"];

impl Check {
    /// Whether an answer passes.
    pub(crate) fn holds(&self, head: &Head<'_>, body: &[u8]) -> bool {
        match self {
            Check::Json(pointer, test) => match pointer.find(body) {
                PointerMatch::NotJson => false,
                PointerMatch::Nothing => *test == Test::Missing,
                PointerMatch::Value(raw) => match test {
                    Test::Exists => true,
                    Test::Missing => false,
                    test => serde_json::from_str(raw.get()).is_ok_and(|value| test.holds(&value)),
                },
            },
            Check::Header(name, test) => match (head.get(name), test) {
                (None, test) => *test == Test::Missing,
                (Some(_), Test::Exists) => true,
                (Some(_), Test::Missing) => false,
                (Some(text), test) => test.holds(&header_value(text, test)),
            },
            Check::Body(text) => body == text.as_bytes(),
            Check::Contains(text) => contains(body, text.as_bytes()),
            Check::Lacks(text) => !contains(body, text.as_bytes()),
        }
    }

    /// Whether it looks at the body.
    pub(crate) fn needs_body(&self) -> bool {
        !matches!(self, Check::Header(..))
    }
}

/// A header's value as a test wants it: a number where it compares numbers.
fn header_value(text: &str, test: &Test) -> Value {
    let wants_number = match test {
        Test::Equals(value) | Test::Differs(value) => value.is_number(),
        Test::AtLeast(_) | Test::AtMost(_) => true,
        _ => false,
    };
    let number = if wants_number { serde_json::from_str(text.trim()).ok() } else { None };
    number.filter(Value::is_number).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Whether `body` contains `wanted`.
pub(crate) fn contains(body: &[u8], wanted: &[u8]) -> bool {
    find(body, wanted).is_some()
}

/// Where `wanted` first stands in `body`.
pub(crate) fn find(body: &[u8], wanted: &[u8]) -> Option<usize> {
    let Some(first) = wanted.first() else { return Some(0) };
    let last = body.len().checked_sub(wanted.len())?;
    let mut at = 0;
    while at <= last {
        at += body[at..=last].iter().position(|byte| byte == first)?;
        if body[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    None
}

impl Test {
    fn holds(&self, value: &Value) -> bool {
        let text = value.as_str();
        match self {
            Test::Exists => true,
            Test::Missing => false,
            Test::Equals(expected) => equal(value, expected),
            Test::Differs(expected) => !equal(value, expected),
            Test::Contains(expected) => match (value, expected) {
                (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
                (Value::Array(items), expected) => items.iter().any(|item| equal(item, expected)),
                _ => false,
            },
            Test::StartsWith(part) => text.is_some_and(|text| text.starts_with(part.as_str())),
            Test::EndsWith(part) => text.is_some_and(|text| text.ends_with(part.as_str())),
            Test::Like(pattern) => text.is_some_and(|text| like(text, pattern)),
            Test::AtLeast(bound) => value.as_f64().is_some_and(|number| number >= *bound),
            Test::AtMost(bound) => value.as_f64().is_some_and(|number| number <= *bound),
            Test::Length(length) => {
                let found = match value {
                    Value::String(text) => text.chars().count(),
                    Value::Array(items) => items.len(),
                    Value::Object(entries) => entries.len(),
                    _ => return false,
                };
                found as u64 == *length
            }
            Test::Kind(kind) => kind_of(value) == kind,
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => KINDS[0],
        Value::Number(_) => KINDS[1],
        Value::Bool(_) => KINDS[2],
        Value::Null => KINDS[3],
        Value::Array(_) => KINDS[4],
        Value::Object(_) => KINDS[5],
    }
}

/// Equal as JSON; 5 and 5.0 are the same number.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        #[allow(clippy::float_cmp)] // equal is what is asked
        (Value::Number(x), Value::Number(y)) => {
            x == y || (x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64()
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| equal(x, y)))
        }
        _ => a == b,
    }
}

/// Whether `text` has the form of `pattern`, in which `*` stands for any text.
fn like(text: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else {
        return text.len() >= rest.len() && text.ends_with(rest);
    };
    // The leftmost place is always good enough for the parts between.
    for part in middle.split('*') {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.len() >= last.len() && text.ends_with(last)
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Check::Json(pointer, test) => {
                write!(f, "{pointer:?} {test}", pointer = pointer.to_string())
            }
            Check::Header(name, test) => write!(f, "header {name:?} {test}"),
            Check::Body(text) => write!(f, "body is {text:?}"),
            Check::Contains(text) => write!(f, "body contains {text:?}"),
            Check::Lacks(text) => write!(f, "body does not contain {text:?}"),
        }
    }
}

impl std::fmt::Display for Test {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Test::Exists => f.write_str("exists"),
            Test::Missing => f.write_str("is missing"),
            Test::Equals(value) => write!(f, "= {value}"),
            Test::Differs(value) => write!(f, "is not {value}"),
            Test::Contains(value) => write!(f, "contains {value}"),
            Test::StartsWith(text) => write!(f, "starts with {text:?}"),
            Test::EndsWith(text) => write!(f, "ends with {text:?}"),
            Test::Like(text) => write!(f, "is like {text:?}"),
            Test::AtLeast(bound) => write!(f, "is at least {bound}"),
            Test::AtMost(bound) => write!(f, "is at most {bound}"),
            Test::Length(length) => write!(f, "has length {length}"),
            Test::Kind(kind) => write!(f, "is of type {kind}"),
        }
    }
}

/// A value taken out of an answer for later requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) source: CaptureSource,
    /// Only what stands between these two texts; an empty one is the beginning or the end.
    pub(crate) between: Option<(String, String)>,
    /// Whether an answer without it is still a success.
    pub(crate) optional: bool,
    /// Its number among the values of setup.
    pub(crate) setup: Option<u16>,
    /// Its number among the values of users.
    pub(crate) slot: Option<u16>,
}

/// Where a [`Capture`] looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaptureSource {
    Json(Pointer),
    Header(String),
    Body,
}

impl Capture {
    /// Puts the value into `into`; `false` if it is not there.
    pub(crate) fn take(&self, head: &Head<'_>, body: &[u8], into: &mut String) -> bool {
        into.clear();
        match &self.source {
            CaptureSource::Json(pointer) => match pointer.find(body) {
                PointerMatch::Value(value) => self.cut(text_of(value).as_bytes(), into),
                PointerMatch::Nothing | PointerMatch::NotJson => false,
            },
            CaptureSource::Header(name) => {
                head.get(name).is_some_and(|text| self.cut(text.as_bytes(), into))
            }
            CaptureSource::Body => self.cut(body, into),
        }
    }

    fn cut(&self, mut text: &[u8], into: &mut String) -> bool {
        if let Some((after, before)) = &self.between {
            let Some(at) = find(text, after.as_bytes()) else { return false };
            text = &text[at + after.len()..];
            if !before.is_empty() {
                let Some(end) = find(text, before.as_bytes()) else { return false };
                text = &text[..end];
            }
        }
        match std::str::from_utf8(text) {
            Ok(text) => into.push_str(text),
            Err(_) => return false,
        }
        true
    }
}

impl std::fmt::Display for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} can be captured from ", self.name)?;
        match &self.source {
            CaptureSource::Json(pointer) => write!(f, "{:?}", pointer.to_string())?,
            CaptureSource::Header(name) => write!(f, "header {name:?}")?,
            CaptureSource::Body => f.write_str("the body")?,
        }
        match &self.between {
            Some((after, before)) => write!(f, " between {after:?} and {before:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::borrow::Cow;

    fn holds(test: &Test, value: Value) -> bool {
        let check = Check::Json(Pointer::parse("/v").unwrap(), test.clone());
        check.holds(&Head::default(), json!({ "v": value }).to_string().as_bytes())
    }

    #[test]
    fn each_test_has_a_value_that_passes_and_one_that_does_not() {
        for (test, good, bad) in [
            (Test::Exists, json!(null), None),
            (Test::Equals(json!(5)), json!(5.0), Some(json!("5"))),
            (Test::Equals(json!({"a": [1]})), json!({"a": [1.0]}), Some(json!({"a": [1], "b": 2}))),
            (
                Test::Equals(json!(9007199254740993u64)),
                json!(9007199254740993u64),
                Some(json!(9007199254740992u64)),
            ),
            (Test::Differs(json!("x")), json!("y"), Some(json!("x"))),
            (Test::Contains(json!("b")), json!("abc"), Some(json!("ac"))),
            (Test::Contains(json!(2)), json!([1, 2]), Some(json!([1]))),
            (Test::StartsWith("ab".into()), json!("abc"), Some(json!("b"))),
            (Test::EndsWith("bc".into()), json!("abc"), Some(json!("b"))),
            (Test::Like("a*c".into()), json!("abc"), Some(json!("abd"))),
            (Test::AtLeast(2.0), json!(2), Some(json!(1.9))),
            (Test::AtMost(2.0), json!(-1), Some(json!("2"))),
            (Test::Length(2), json!("é€"), Some(json!([1]))),
            (Test::Kind("array".into()), json!([]), Some(json!({}))),
        ] {
            assert!(holds(&test, good), "{test}");
            if let Some(bad) = bad {
                assert!(!holds(&test, bad), "{test}");
            }
        }
    }

    #[test]
    fn missing_is_only_said_of_json_without_the_value() {
        let missing = Check::Json(Pointer::parse("/a").unwrap(), Test::Missing);
        assert!(missing.holds(&Head::default(), b"{}"));
        assert!(!missing.holds(&Head::default(), b"{\"a\":null}"));
        assert!(!missing.holds(&Head::default(), b"oops"));
    }

    #[test]
    fn headers_compare_as_numbers_where_a_number_is_expected() {
        let head = Head(vec![(Cow::Borrowed("Wellspring-Position"), Cow::Borrowed("17"))]);
        let header = |test| Check::Header("wellspring-position".into(), test).holds(&head, b"");
        assert!(header(Test::Equals(json!(17))) && header(Test::Equals(json!("17"))));
        assert!(header(Test::AtLeast(17.0)) && !header(Test::AtLeast(18.0)));
        assert!(header(Test::Exists) && !header(Test::Missing));
        assert!(!Check::Header("other".into(), Test::Exists).holds(&head, b""));
    }

    #[test]
    fn values_are_taken_from_wherever_they_stand() {
        let head = Head(vec![(Cow::Borrowed("Location"), Cow::Borrowed("http://h/orders/7?x"))]);
        let body = br#"{"id":42,"t":"<b>x</b>"}"#;
        let take = |source, between: Option<(&str, &str)>| {
            let between = between.map(|(a, b)| (a.to_owned(), b.to_owned()));
            let capture = Capture {
                name: "n".into(),
                source,
                between,
                optional: false,
                setup: None,
                slot: None,
            };
            let mut into = "old".to_owned();
            capture.take(&head, body, &mut into).then_some(into)
        };
        let pointer = |text| CaptureSource::Json(Pointer::parse(text).unwrap());
        assert_eq!(take(pointer("/id"), None).as_deref(), Some("42"));
        assert_eq!(take(pointer("/t"), Some(("<b>", "</b>"))).as_deref(), Some("x"));
        assert_eq!(take(pointer("/no"), None), None);
        let header = || CaptureSource::Header("location".into());
        assert_eq!(take(header(), Some(("/orders/", "?"))).as_deref(), Some("7"));
        assert_eq!(take(header(), Some(("/orders/", ""))).as_deref(), Some("7?x"));
        assert_eq!(take(header(), Some(("/users/", ""))), None);
        assert_eq!(take(CaptureSource::Body, Some(("\"id\":", ","))).as_deref(), Some("42"));
        assert_eq!(take(CaptureSource::Body, Some(("\"id\":", "!"))), None);
    }

    proptest! {
        #[test]
        fn finding_bytes_agrees_with_the_slow_way(body in "[ab]{0,12}", wanted in "[ab]{0,4}") {
            prop_assert_eq!(find(body.as_bytes(), wanted.as_bytes()), body.find(&wanted));
        }

        #[test]
        fn stars_agree_with_the_slow_way(text in "[ab]{0,8}", pattern in "[ab*]{0,6}") {
            fn slow(text: &[u8], pattern: &[u8]) -> bool {
                match pattern.split_first() {
                    None => text.is_empty(),
                    Some((b'*', rest)) => (0..=text.len()).any(|at| slow(&text[at..], rest)),
                    Some((byte, rest)) => text.first() == Some(byte) && slow(&text[1..], rest),
                }
            }
            prop_assert_eq!(like(&text, &pattern), slow(text.as_bytes(), pattern.as_bytes()));
        }
    }
}
