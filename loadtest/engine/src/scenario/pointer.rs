//! JSON Pointers (RFC 6901), followed through a body without building a tree of it.

use crate::invalid::Invalid;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A path to a value within JSON: `/short_code`, `/items/0/id`; the empty text is the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    text: String,
    tokens: Vec<String>,
}

/// What a pointer led to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PointerMatch<'b> {
    /// This value, as it stands in the body.
    Value(&'b RawValue),
    /// Nothing is there.
    Nothing,
    /// The body is not JSON.
    NotJson,
}

impl Pointer {
    /// Reads a pointer.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let expected = || {
            format!(
                "expected a JSON Pointer like \"/short_code\" or \"/items/0/id\", found {text:?}"
            )
        };
        if !text.is_empty() && !text.starts_with('/') {
            return Err(expected().into());
        }
        let mut tokens = Vec::new();
        for token in text.split('/').skip(1) {
            let plain = token.replace("~1", "").replace("~0", "");
            if plain.contains('~') {
                return Err(
                    format!("{}; \"~\" is written ~0 and \"/\" is written ~1", expected()).into()
                );
            }
            tokens.push(token.replace("~1", "/").replace("~0", "~"));
        }
        Ok(Pointer { text: text.to_owned(), tokens })
    }

    /// The value it leads to in `body`. All of the body is read: what follows
    /// the value must be JSON too. Of equal keys the last counts.
    pub(crate) fn find<'b>(&self, body: &'b [u8]) -> PointerMatch<'b> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        match (Walk { left: &self.tokens }).deserialize(&mut reader) {
            Ok(found) if reader.end().is_ok() => {
                found.map_or(PointerMatch::Nothing, PointerMatch::Value)
            }
            _ => PointerMatch::NotJson,
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The text of a value: of a string its content, of anything else its JSON.
pub(crate) fn text_of(value: &RawValue) -> Cow<'_, str> {
    let raw = value.get();
    if raw.starts_with('"')
        && let Ok(text) = serde_json::from_str::<String>(raw)
    {
        return Cow::Owned(text);
    }
    Cow::Borrowed(raw)
}

struct Walk<'p> {
    left: &'p [String],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        match self.left {
            [] => serde::Deserialize::deserialize(reader).map(Some),
            [token, left @ ..] => reader.deserialize_any(MemberVisitor { token, left }),
        }
    }
}

struct MemberVisitor<'p> {
    token: &'p str,
    left: &'p [String],
}

impl MemberVisitor<'_> {
    /// The index in a list, if the token is one (no sign, no leading zeros).
    fn index(&self) -> Option<usize> {
        let digits = !self.token.is_empty() && self.token.bytes().all(|b| b.is_ascii_digit());
        let plain = digits && (self.token == "0" || !self.token.starts_with('0'));
        if plain { self.token.parse().ok() } else { None }
    }
}

impl<'de> Visitor<'de> for MemberVisitor<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(here) = map.next_key_seed(KeyIs(self.token))? {
            if here {
                found = map.next_value_seed(Walk { left: self.left })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let wanted = self.index();
        let mut found = None;
        let mut at = 0;
        loop {
            if wanted == Some(at) {
                match list.next_element_seed(Walk { left: self.left })? {
                    Some(value) => found = value,
                    None => break,
                }
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            at += 1;
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

struct KeyIs<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for KeyIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn find(pointer: &str, body: &str) -> Option<String> {
        match Pointer::parse(pointer).unwrap().find(body.as_bytes()) {
            PointerMatch::Value(value) => Some(text_of(value).into_owned()),
            PointerMatch::Nothing => None,
            PointerMatch::NotJson => panic!("{body} is JSON"),
        }
    }

    #[test]
    fn the_examples_of_the_rfc_lead_where_it_says() {
        let body = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        for (pointer, expected) in [
            ("/foo", "[\"bar\",\"baz\"]"),
            ("/foo/0", "bar"),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
            ("", body),
        ] {
            assert_eq!(find(pointer, body).as_deref(), Some(expected), "{pointer}");
        }
        for nowhere in ["/bar", "/foo/2", "/foo/-", "/foo/00", "/foo/0/x", "/a~1b/0"] {
            assert_eq!(find(nowhere, body), None, "{nowhere}");
        }
    }

    #[test]
    fn numbers_keep_every_digit_and_the_last_of_equal_keys_counts() {
        assert_eq!(
            find("/n", "{\"n\":9007199254740993123456789}").as_deref(),
            Some("9007199254740993123456789")
        );
        assert_eq!(find("/n", "{\"n\":1,\"n\":2}").as_deref(), Some("2"));
    }

    #[test]
    fn what_is_not_json_is_said_to_be_so() {
        let pointer = Pointer::parse("/a").unwrap();
        for body in ["", "{\"a\":1", "{\"a\":1} x", "<html>", "{\"a\":1,}"] {
            assert!(matches!(pointer.find(body.as_bytes()), PointerMatch::NotJson), "{body}");
        }
        assert!(matches!(pointer.find(b"\xff"), PointerMatch::NotJson));
        assert!(Pointer::parse("a").unwrap_err().to_string().contains("expected a JSON Pointer"));
        assert!(Pointer::parse("/a~2").unwrap_err().to_string().contains("~0"));
    }

    proptest! {
        #[test]
        fn it_finds_what_a_tree_would(pointer in "(/[ab01~]{0,2}){0,3}", seed in 0u8..4) {
            let body = match seed {
                0 => json!({"a": {"b": [1, {"a": "x"}]}, "0": null}),
                1 => json!([[0, 1], {"1": [true]}]),
                2 => json!({"": {"": {"": 1}}}),
                _ => json!("a"),
            };
            let text = body.to_string();
            if let Ok(parsed) = Pointer::parse(&pointer) {
                let expected = body.pointer(&pointer).cloned();
                let found = match parsed.find(text.as_bytes()) {
                    PointerMatch::Value(raw) => Some(serde_json::from_str::<Value>(raw.get()).unwrap()),
                    _ => None,
                };
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn any_bytes_are_survived(body: Vec<u8>) {
            let _ = Pointer::parse("/a/0").unwrap().find(&body);
        }
    }
}
