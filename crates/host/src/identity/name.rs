//! Names of accounts, keys and tokens: short texts that are valid in a tag, a log line and a URL.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use wellspring_types::valid::check_text;

/// The rule that a name breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    /// Not 1–64 of `a`–`z`, `0`–`9`, `.`, `_`, `@`, `-`, the first a letter or a digit.
    Account,
    /// Not 1–32 of `a`–`z`, `0`–`9`.
    Key,
    /// Not 1–64 visible ASCII characters.
    Token,
    /// Not 1–64 bytes without control characters.
    Label,
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameFault::Account => "an account's name is 1 to 64 of a-z, 0-9, '.', '_', '@' and '-', the first a letter or a digit",
            NameFault::Key => "a key's id is 1 to 32 of a-z and 0-9",
            NameFault::Token => "a token's id is 1 to 64 visible ASCII characters",
            NameFault::Label => "a key's label is 1 to 64 bytes without control characters",
        })
    }
}

impl std::error::Error for NameFault {}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $fault:expr, $fits:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses the text.
            ///
            /// # Errors
            /// The rule that the text breaks.
            pub fn parse(text: &str) -> Result<$name, NameFault> {
                let fits: fn(&str) -> bool = $fits;
                if fits(text) { Ok($name(text.into())) } else { Err($fault) }
            }

            /// The name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameFault;
            fn try_from(text: String) -> Result<$name, NameFault> {
                $name::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.as_str().to_owned()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

name!(
    /// An account's name: 1–64 of `a`–`z`, `0`–`9`, `.`, `_`, `@`, `-`, the first a letter or a
    /// digit.
    AccountName,
    NameFault::Account,
    |text| {
        // Clients would normalize `..` away in a URL's path.
        let ordinary = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        text.bytes().next().is_some_and(ordinary)
            && is_of(text, 64, |byte| ordinary(byte) || b"._@-".contains(&byte))
    }
);
name!(
    /// The public identifier of an API key: 1–32 of `a`–`z`, `0`–`9`.
    KeyId,
    NameFault::Key,
    |text| is_of(text, 32, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
);
name!(
    /// The identifier of a token (`jti`): 1–64 visible ASCII characters.
    TokenId,
    NameFault::Token,
    |text| is_of(text, 64, |byte| byte.is_ascii_graphic())
);
name!(
    /// The owner's label for an API key: 1–64 bytes of UTF-8 without control characters.
    Label,
    NameFault::Label,
    |text| check_text(text, 64).is_ok()
);

fn is_of(text: &str, most: usize, allowed: impl Fn(u8) -> bool) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_may_be() {
        let longest = "a".repeat(64);
        for name in ["a", "ann", "ann.b_c@d-e.example", "0", longest.as_str()] {
            assert_eq!(AccountName::parse(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(65);
        for name in
            ["", ".", "..", "-a", "@a", "Ann", "a b", "ä", "a\n", "a:b", "a/b", long.as_str()]
        {
            assert_eq!(AccountName::parse(name), Err(NameFault::Account), "{name:?}");
        }
        assert!(KeyId::parse("0123456789abcdef").is_ok());
        for id in ["", "A", "a-b", "a".repeat(33).as_str()] {
            assert_eq!(KeyId::parse(id), Err(NameFault::Key));
        }
        assert!(TokenId::parse("Az_-~").is_ok());
        for id in ["", "a b", "é", long.as_str()] {
            assert_eq!(TokenId::parse(id), Err(NameFault::Token));
        }
        assert!(Label::parse("Jürgen's laptop").is_ok());
        for label in ["", "a\u{7f}", long.as_str()] {
            assert_eq!(Label::parse(label), Err(NameFault::Label));
        }
    }
}
