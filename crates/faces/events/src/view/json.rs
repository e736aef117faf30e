//! JSON read one level at a time, as text. Values stay the bytes that were sent (numbers of any
//! size, key order, escapes), and nesting costs no stack because skipped values are only scanned.

use serde_json::value::RawValue;
use std::borrow::Cow;

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
    fn a_lone_surrogate_is_no_text() {
        assert_eq!(string(r#""a\"\u00e9""#).as_deref(), Some("a\"é"));
        assert_eq!(string(r#""\ud800""#), None);
    }
}
