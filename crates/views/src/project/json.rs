//! JSON read one level at a time, as text. Values stay the bytes that were sent
//! (numbers of any size, key order, escapes), nesting costs no stack because
//! what is skipped is only scanned, and of two equal keys the last one counts.

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The JSON type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    /// The type of a JSON text, judged by its first character alone.
    pub(super) fn of(text: &str) -> Kind {
        match text.trim_start().as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::Text,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Its name in a sentence.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "a boolean",
            Kind::Number => "a number",
            Kind::Text => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

/// The one value that `text` holds, without the white space around it; checks the syntax of all of it.
pub(super) fn whole(text: &str) -> Result<&str, serde_json::Error> {
    serde_json::from_str::<&RawValue>(text).map(RawValue::get)
}

/// The text a JSON string stands for; `None` if it is not Unicode (a lone surrogate escape).
pub(super) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
}

/// Writes `text` as a JSON string.
pub(super) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Elements or members of one level: the first few, and how many there are.
pub(super) struct Level<T> {
    /// At most as many as were asked for.
    pub(super) kept: Vec<T>,
    /// All that were seen.
    pub(super) count: usize,
}

/// Name and value of each member of the object `text`; keeps at most `keep` so
/// that a body of millions of tiny members costs no memory before it is refused.
pub(super) fn members(text: &str, keep: usize) -> Result<Level<(String, &str)>, serde_json::Error> {
    let mut source = Deserializer::from_str(text);
    let level = source.deserialize_map(Members { keep })?;
    source.end().map(|()| level)
}

/// The elements of the array `text`; keeps at most `keep`.
pub(super) fn elements(text: &str, keep: usize) -> Result<Level<&str>, serde_json::Error> {
    let mut source = Deserializer::from_str(text);
    let level = source.deserialize_seq(Elements { keep })?;
    source.end().map(|()| level)
}

/// The value of member `key` of the object `text`; `None` also if `text` is not well formed.
pub(super) fn member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut source = Deserializer::from_str(text);
    let found = source.deserialize_map(Member { key }).ok()?;
    source.end().ok()?;
    found
}

/// Element `index` of the array `text`; `None` also if `text` is not well formed.
pub(super) fn element(text: &str, index: usize) -> Option<&str> {
    let mut source = Deserializer::from_str(text);
    let found = source.deserialize_seq(Element { index }).ok()?;
    source.end().ok()?;
    found
}

struct Members {
    keep: usize,
}

impl<'de> Visitor<'de> for Members {
    type Value = Level<(String, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut level = Level { kept: Vec::new(), count: 0 };
        loop {
            if level.count < self.keep {
                let Some(name) = map.next_key::<String>()? else { break };
                level.kept.push((name, map.next_value::<&RawValue>()?.get()));
            } else {
                let Some(IgnoredAny) = map.next_key()? else { break };
                map.next_value::<IgnoredAny>()?;
            }
            level.count += 1;
        }
        Ok(level)
    }
}

struct Elements {
    keep: usize,
}

impl<'de> Visitor<'de> for Elements {
    type Value = Level<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut level = Level { kept: Vec::new(), count: 0 };
        loop {
            if level.count < self.keep {
                let Some(raw) = seq.next_element::<&RawValue>()? else { break };
                level.kept.push(raw.get());
            } else {
                let Some(IgnoredAny) = seq.next_element()? else { break };
            }
            level.count += 1;
        }
        Ok(level)
    }
}

struct Member<'k> {
    key: &'k str,
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(same) = map.next_key_seed(SameKey { key: self.key.as_bytes() })? {
            if same {
                found = Some(map.next_value::<&RawValue>()?.get());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Compares a key as bytes, so that a key which is no Unicode text (lone
/// surrogates) does not hide the members beside it.
#[derive(Clone, Copy)]
struct SameKey<'k> {
    key: &'k [u8],
}

impl<'de> DeserializeSeed<'de> for SameKey<'_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<bool, D::Error> {
        source.deserialize_bytes(self)
    }
}

impl Visitor<'_> for SameKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<bool, E> {
        Ok(bytes == self.key)
    }
}

struct Element {
    index: usize,
}

impl<'de> Visitor<'de> for Element {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        for _ in 0..self.index {
            if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = seq.next_element::<&RawValue>()?.map(RawValue::get);
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        assert_eq!(member(r#"{"a":1,"b":2,"\u0061":[ 3 ]}"#, "a"), Some("[ 3 ]"));
        assert_eq!(member(r#"{"a":1} x"#, "a"), None);
        assert_eq!(member("[1]", "a"), None);
    }

    #[test]
    fn a_key_that_is_no_text_hides_nothing() {
        assert_eq!(member(r#"{"\ud800":1,"a":2,"b":"\udfff"}"#, "a"), Some("2"));
    }

    #[test]
    fn deep_values_cost_no_stack() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(400_000), "]".repeat(400_000));
        assert_eq!(member(&deep, "a").map(str::len), Some(800_000));
        assert!(whole(&deep).is_ok());
        assert!(whole(&deep[1..]).is_err());
    }

    #[test]
    fn only_what_is_asked_for_is_kept() {
        let level = elements("[1, 2,3]", 2).unwrap();
        assert_eq!((level.kept, level.count), (vec!["1", "2"], 3));
        let level = members(r#"{"a":1,"b":2}"#, 1).unwrap();
        assert_eq!((level.kept, level.count), (vec![("a".to_owned(), "1")], 2));
        assert_eq!(element("[1,2]", 2), None);
        assert_eq!(element("[1,2]", 1), Some("2"));
    }

    #[test]
    fn a_string_is_written_as_the_standard_writer_writes_it() {
        let text = "a\"\\\n\r\t\u{8}\u{c}\u{1}\u{7f}é\u{2028}😀";
        let mut out = String::new();
        push_string(&mut out, text);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        assert_eq!(string(&out).as_deref(), Some(text));
        assert_eq!(string(r#""\ud800""#), None);
    }
}
