//! JSON Pointer (RFC 6901), evaluated on the raw text of an event's data.

use super::error::ProjectError;
use super::json::{self, Kind};

/// Longest pointer, in bytes.
pub(super) const MAX_POINTER_BYTES: usize = 1024;
/// Most tokens of a pointer: each costs one more scan of what is left of the value.
pub(super) const MAX_POINTER_TOKENS: usize = 32;

/// A parsed pointer. No tokens = the whole data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    key: String,
    /// The same token as an array index, if it can be one.
    index: Option<usize>,
}

impl Pointer {
    /// Reads `text`: empty, or tokens that each begin with `/`, with `~0` for `~` and `~1` for `/`.
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

    /// The value it points at, as sent; `None` if there is none or `data` is not JSON.
    pub(super) fn find<'a>(&self, data: &'a str) -> Option<&'a str> {
        // Every step scans its value to the end: a later member of the same
        // name replaces an earlier one, and the first step checks the syntax of all of it.
        let Some((first, rest)) = self.tokens.split_first() else {
            return json::whole(data).ok();
        };
        rest.iter().try_fold(first.step(data)?, |value, token| token.step(value))
    }
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

    fn step<'a>(&self, value: &'a str) -> Option<&'a str> {
        match Kind::of(value) {
            Kind::Object => json::member(value, &self.key),
            Kind::Array => json::element(value, self.index?),
            _ => None,
        }
    }
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
    use super::super::error::ProjectErrorKind;
    use super::*;

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
        for broken in ["", "{", r#"{"a":1}}"#, r#"{"a":1,}"#, "nul"] {
            assert_eq!(find("/a", broken), None, "{broken}");
            assert_eq!(find("", broken), None, "{broken}");
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
