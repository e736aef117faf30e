//! JSON Pointer (RFC 6901), evaluated on JSON as it was sent.

use crate::trusted::{TrustedCursor, string_is};
use std::fmt;

/// A pointer. Without steps it points at the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    key: String,
    /// The same step as an array index, if it can be one.
    index: Option<usize>,
}

/// Why a text is no pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerFault {
    /// It is not empty and does not begin with `/`.
    Start,
    /// A `~` that is neither `~0` nor `~1`.
    Escape {
        /// The byte of the text at which it stands.
        at: usize,
    },
    /// It has more steps than the caller allows.
    Steps,
}

impl Pointer {
    /// Reads a pointer: empty, or at most `most` steps that each begin with `/`, with `~0` for `~`
    /// and `~1` for `/`. Finding a value recurses once for each step.
    ///
    /// # Errors
    /// [`PointerFault`].
    pub fn parse(text: &str, most: usize) -> Result<Pointer, PointerFault> {
        let mut parts = text.split('/');
        if !parts.next().unwrap_or_default().is_empty() {
            return Err(PointerFault::Start);
        }
        let mut steps = Vec::new();
        let mut at = 0;
        for part in parts {
            at += 1;
            if steps.len() == most {
                return Err(PointerFault::Steps);
            }
            let key = unescape(part).map_err(|inside| PointerFault::Escape { at: at + inside })?;
            steps.push(Step { index: index_of(&key), key });
            at += part.len();
        }
        Ok(Pointer { text: text.to_owned(), steps })
    }

    /// The steps, each with the index that it is in an array, if it can be one.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.steps.iter().map(|step| (&*step.key, step.index))
    }

    /// The value it points at, as sent; `None` if there is none. Of members of the same name the
    /// last counts. The syntax of `json` has been checked before; on other text this finds anything
    /// or nothing, and panics nowhere. One pass, whatever the number of steps.
    #[must_use]
    pub fn find<'a>(&self, json: &'a str) -> Option<&'a str> {
        descend(&mut TrustedCursor::new(json), &self.steps)?
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Resolves the escapes of one step, or tells at which byte there is none that exists.
fn unescape(part: &str) -> Result<String, usize> {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        match rest.as_bytes().get(at + 1) {
            Some(b'0') => out.push('~'),
            Some(b'1') => out.push('/'),
            _ => return Err(part.len() - rest.len() + at),
        }
        rest = &rest[at + 2..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Consumes one value and gives what `steps` point at in it, if anything. The
/// outer `None` means that the text is not JSON.
fn descend<'a>(cursor: &mut TrustedCursor<'a>, steps: &[Step]) -> Option<Option<&'a str>> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(Some(cursor.value()?));
    };
    let mut found = None;
    match cursor.peek()? {
        b'{' => {
            cursor.eat(b'{')?;
            while !cursor.eat(b'}')? {
                let same = string_is(cursor.string()?, &step.key);
                cursor.eat(b':')?;
                // A later member of the same name replaces an earlier one, so none ends the search.
                if same {
                    found = descend(cursor, rest)?;
                } else {
                    cursor.value()?;
                }
                cursor.eat(b',')?;
            }
        }
        b'[' => {
            cursor.eat(b'[')?;
            let mut index = 0;
            while !cursor.eat(b']')? {
                if step.index == Some(index) {
                    found = descend(cursor, rest)?;
                } else {
                    cursor.value()?;
                }
                cursor.eat(b',')?;
                index += 1;
            }
        }
        _ => {
            cursor.value()?;
        }
    }
    Some(found)
}

/// An array index as the RFC allows it: digits without a leading zero. `-` (the
/// element after the last) names nothing that could be read.
fn index_of(key: &str) -> Option<usize> {
    let digits = !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit());
    if !digits || (key.len() > 1 && key.starts_with('0')) {
        return None;
    }
    key.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    const MOST: usize = 32;

    fn find<'a>(pointer: &str, data: &'a str) -> Option<&'a str> {
        Pointer::parse(pointer, MOST).unwrap().find(data)
    }

    #[test]
    fn the_examples_of_the_rfc_hold() {
        let data = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,
            "i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        for (pointer, value) in [
            ("", data),
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(find(pointer, data), Some(value), "{pointer}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let data = r#" {"a":[10,{"b":1e999}],"n":3} "#;
        for pointer in
            ["/b", "/a/2", "/a/-", "/a/01", "/a/+1", "/a/x", "/n/0", "/a/99999999999999999999"]
        {
            assert_eq!(find(pointer, data), None, "{pointer}");
        }
        assert_eq!(find("/a/1/b", data), Some("1e999"));
        assert_eq!(find("", data), Some(data.trim()));
    }

    #[test]
    fn the_last_of_two_equal_names_counts() {
        assert_eq!(find("/a", r#"{"a":1,"b":2,"\u0061":[ 3 ]}"#), Some("[ 3 ]"));
        assert_eq!(find("/a/b", r#"{"a":{"b":1},"a":{"c":2}}"#), None);
        assert_eq!(find("/a/b", r#"{"a":1e999,"a":{"b":1}}"#), Some("1"));
        assert_eq!(find("/a", r#"{"\ud800":1,"a":2,"b":"\udfff"}"#), Some("2"));
    }

    fn key() -> impl Strategy<Value = String> {
        let known = prop::sample::select(vec!["a", "b", "0", "1", "", "~", "/", "a/b", "é\"\\"]);
        prop_oneof![4 => known.prop_map(str::to_owned), 1 => any::<String>()]
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            key().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let members = prop::collection::vec((key(), inner.clone()), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                members.prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    fn pointer_text(keys: &[String]) -> String {
        let escaped = keys.iter().map(|key| key.replace('~', "~0").replace('/', "~1"));
        escaped.fold(String::new(), |text, key| text + "/" + &key)
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_serde_json_finds(
            json in json(), keys in prop::collection::vec(key(), 0..4), pretty: bool,
        ) {
            let text = if pretty { format!(" {}\n", serde_json::to_string_pretty(&json).unwrap()) } else { json.to_string() };
            let pointer = pointer_text(&keys);
            let found = find(&pointer, &text);
            let read = found.map(|found| serde_json::from_str::<Value>(found).unwrap());
            prop_assert_eq!(read.as_ref(), json.pointer(&pointer));
        }

        #[test]
        fn no_text_makes_it_panic(
            text in prop_oneof![r#"[\[\]{}",:\\ae01.tn é-]{0,40}"#, any::<String>()],
            keys in prop::collection::vec(key(), 0..4),
        ) {
            for pointer in ["", "/a", "/0", "/a/0/a", &pointer_text(&keys)] {
                let _ = find(pointer, &text);
                let _ = find(pointer, &format!("{{\"a\":{text}"));
            }
        }
    }

    #[test]
    fn malformed_pointers_are_refused_where_they_go_wrong() {
        for (bad, fault) in [
            ("a", PointerFault::Start),
            ("a/b", PointerFault::Start),
            ("/~", PointerFault::Escape { at: 1 }),
            ("/a~", PointerFault::Escape { at: 2 }),
            ("/a/b~2", PointerFault::Escape { at: 4 }),
            (&"/".repeat(MOST + 1), PointerFault::Steps),
        ] {
            assert_eq!(Pointer::parse(bad, MOST), Err(fault), "{bad}");
        }
        assert!(Pointer::parse(&"/".repeat(MOST), MOST).is_ok());
    }
}
