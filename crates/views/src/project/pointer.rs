//! JSON Pointer (RFC 6901), evaluated on the raw text of an event's data.

use super::cursor::Cursor;
use super::error::ProjectError;
use super::json;

/// Maximum length of a pointer, in bytes.
pub(super) const MAX_POINTER_BYTES: usize = 1024;
/// Maximum number of tokens of a pointer; finding a value recurses once for each.
pub(super) const MAX_POINTER_TOKENS: usize = 32;

/// A parsed pointer. No tokens refer to the whole data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    key: String,
    /// The token as an array index, if it is one.
    index: Option<usize>,
}

impl Pointer {
    /// Parses `text`: empty, or tokens that each begin with `/`, with `~0` for `~` and `~1` for
    /// `/`.
    pub(super) fn parse(text: &str, field: &str) -> Result<Pointer, ProjectError> {
        if text.len() > MAX_POINTER_BYTES {
            let detail = format!("is longer than {MAX_POINTER_BYTES} bytes");
            return Err(ProjectError::limit(field, MAX_POINTER_BYTES, detail));
        }
        if text.is_empty() {
            return Ok(Pointer { tokens: Vec::new() });
        }
        let Some(rest) = text.strip_prefix('/') else {
            let detail =
                format!("must be a JSON Pointer: empty, or beginning with /, as in /{text}");
            return Err(ProjectError::rule(field, detail));
        };
        let tokens = rest
            .split('/')
            .map(|token| Token::parse(token, field))
            .collect::<Result<Vec<Token>, ProjectError>>()?;
        if tokens.len() > MAX_POINTER_TOKENS {
            let detail = format!("has more than {MAX_POINTER_TOKENS} steps");
            return Err(ProjectError::limit(field, MAX_POINTER_TOKENS, detail));
        }
        Ok(Pointer { tokens })
    }

    /// The referenced value as sent; `None` if it does not exist. `data` must have valid syntax.
    /// One pass, whatever the number of tokens.
    pub(super) fn find<'a>(&self, data: &'a str) -> Option<&'a str> {
        descend(&mut Cursor::new(data), &self.tokens)?
    }
}

/// Consumes one value and returns what `tokens` refer to in it, if anything. The outer `None` means
/// that the text is not JSON.
fn descend<'a>(cursor: &mut Cursor<'a>, tokens: &[Token]) -> Option<Option<&'a str>> {
    let Some((token, rest)) = tokens.split_first() else {
        return Some(Some(cursor.value()?));
    };
    let mut found = None;
    match cursor.peek()? {
        b'{' => {
            cursor.eat(b'{')?;
            while !cursor.eat(b'}')? {
                let same = token.is(cursor.string()?);
                cursor.eat(b':')?;
                // A later member of the same name replaces an earlier one, so the search continues
                // to the end.
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
                if token.index == Some(index) {
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

impl Token {
    fn parse(text: &str, field: &str) -> Result<Token, ProjectError> {
        let mut key = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '~' => match chars.next() {
                    Some('0') => key.push('~'),
                    Some('1') => key.push('/'),
                    _ => {
                        let detail = "must write ~ as ~0 and / as ~1 inside a step";
                        return Err(ProjectError::rule(field, detail));
                    }
                },
                c => key.push(c),
            }
        }
        let index = index_of(&key);
        Ok(Token { key, index })
    }

    /// Whether a member's name, as sent with its quotes, equals this token.
    fn is(&self, name: &str) -> bool {
        json::string(name).is_some_and(|name| name == self.key)
    }
}

/// An array index according to the RFC: digits without a leading zero. `-` (the element after the
/// last) never refers to an existing value.
fn index_of(key: &str) -> Option<usize> {
    let digits = !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit());
    if !digits || (key.len() > 1 && key.starts_with('0')) {
        return None;
    }
    key.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::error::ProjectErrorKind;
    use super::*;
    use proptest::prelude::*;

    fn find<'a>(pointer: &str, data: &'a str) -> Option<&'a str> {
        Pointer::parse(pointer, "p").unwrap().find(data)
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
        for pointer in ["/b", "/a/2", "/a/-", "/a/01", "/a/x", "/n/0", "/a/99999999999999999999"] {
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

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"[\[\]{}",:\\ae01.tn é-]{0,40}"#) {
            for pointer in ["", "/a", "/0", "/a/0/a"] {
                let _ = Pointer::parse(pointer, "p").unwrap().find(&text);
            }
        }
    }

    #[test]
    fn malformed_pointers_are_refused() {
        for bad in ["a", "/~", "/~2", "/a~"] {
            let fault = Pointer::parse(bad, "p").unwrap_err();
            assert_eq!(fault.kind, ProjectErrorKind::Rule, "{bad}");
        }
        for long in ["/".repeat(MAX_POINTER_TOKENS + 1), "/".repeat(MAX_POINTER_BYTES + 1)] {
            let fault = Pointer::parse(&long, "p").unwrap_err();
            assert!(matches!(fault.kind, ProjectErrorKind::Limit { .. }));
        }
    }
}
