//! JSON read one level at a time, as text. Values stay the bytes that were sent (numbers of any
//! size, key order, escapes), and nesting costs no stack because skipped values are only scanned.

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
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
    /// The type of a JSON text, determined by its first character alone.
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

    /// Its name for error messages.
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

/// The single value in `text`, without surrounding white space; checks the syntax of the whole
/// text.
pub(super) fn whole(text: &str) -> Result<&str, serde_json::Error> {
    serde_json::from_str::<&RawValue>(text).map(RawValue::get)
}

/// Decodes a JSON string; `None` if it is not Unicode (a lone surrogate escape).
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

/// The elements or members of one level: the first few and their total number.
pub(super) struct Level<T> {
    /// At most as many as requested.
    pub(super) kept: Vec<T>,
    /// The number of all elements or members.
    pub(super) count: usize,
}

/// Name and value of each member of the object `text`. Keeps at most `keep`, so that a body with
/// millions of tiny members is refused without using memory for them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_values_cost_no_stack() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(400_000), "]".repeat(400_000));
        assert!(whole(&deep).is_ok());
        assert!(whole(&deep[1..]).is_err());
    }

    #[test]
    fn only_what_is_asked_for_is_kept() {
        let level = elements("[1, 2,3]", 2).unwrap();
        assert_eq!((level.kept, level.count), (vec!["1", "2"], 3));
        let level = members(r#"{"a":1,"b":2}"#, 1).unwrap();
        assert_eq!((level.kept, level.count), (vec![("a".to_owned(), "1")], 2));
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
