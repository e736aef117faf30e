//! Short codes as numbers in bijective base 62: every text of 1 to 10 letters and digits is exactly
//! one number, and every number below [`CODES`] one text.

use std::fmt;
use std::ops::Deref;

/// Maximum length of a code in characters.
pub const MAX_CODE_CHARS: usize = 10;

/// The characters of a code by ascending value, which is also their order in ASCII.
pub const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The number of codes of all lengths: one more than the largest code's number.
pub const CODES: u64 = FIRST[MAX_CODE_CHARS + 1];

const _: () = assert!(CODES < 1 << 60, "a code leaves four bits of its word free");

const BASE: u64 = ALPHABET.len() as u64;

/// `FIRST[k]`: the number of the first code of `k` characters, which is the number of shorter
/// codes.
const FIRST: [u64; MAX_CODE_CHARS + 2] = {
    let mut first = [0; MAX_CODE_CHARS + 2];
    let mut chars = 2;
    while chars < first.len() {
        first[chars] = (first[chars - 1] + 1) * BASE;
        chars += 1;
    }
    first
};

/// The value of each byte plus one; 0 for bytes outside the alphabet.
const DIGITS: [u8; 256] = {
    let mut digits = [0; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        digits[ALPHABET[value] as usize] = value as u8 + 1;
        value += 1;
    }
    digits
};

/// The number of the first code of `chars` characters (1 to 10). For 11 and more it is [`CODES`],
/// the upper bound of all codes.
pub const fn first_of_length(chars: usize) -> u64 {
    if chars > MAX_CODE_CHARS { CODES } else { FIRST[chars] }
}

/// A short code: a text of 1 to 10 characters of [`ALPHABET`], stored as its number.
///
/// Codes are ordered by length, then by text.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub struct Code(u64);

/// Why a text is not a code.
#[derive(Debug, Copy, Clone, Eq, PartialEq)]
pub enum CodeFault {
    /// The text is empty.
    Empty,
    /// The text has more than [`MAX_CODE_CHARS`] bytes.
    TooLong,
    /// A character other than a letter `A-Z`, `a-z` or a digit `0-9`.
    Character {
        /// Offset of its first byte.
        at: usize,
        /// The character itself; U+FFFD if it is not UTF-8.
        found: char,
    },
}

impl fmt::Display for CodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeFault::Empty => write!(f, "is empty; a code has 1 to {MAX_CODE_CHARS} characters"),
            CodeFault::TooLong => {
                write!(f, "is too long; a code has at most {MAX_CODE_CHARS} characters")
            }
            CodeFault::Character { at, found } => write!(
                f,
                "is invalid: the character {:?} (byte {}) is not allowed; use only letters A-Z, \
                 a-z and digits 0-9",
                String::from(*found),
                at + 1
            ),
        }
    }
}

impl std::error::Error for CodeFault {}

impl Code {
    /// Parses a code; [`Code::check`] also gives the reason of a failure.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Code> {
        if text.is_empty() || text.len() > MAX_CODE_CHARS {
            return None;
        }
        let mut number = 0;
        for &byte in text {
            let digit = DIGITS[usize::from(byte)];
            if digit == 0 {
                return None;
            }
            number = number * BASE + u64::from(digit);
        }
        Some(Code(number - 1))
    }

    /// As [`Code::parse`], with the reason.
    ///
    /// # Errors
    /// [`CodeFault`]; the length is checked before the characters.
    pub fn check(text: &[u8]) -> Result<Code, CodeFault> {
        if text.is_empty() {
            return Err(CodeFault::Empty);
        }
        if text.len() > MAX_CODE_CHARS {
            return Err(CodeFault::TooLong);
        }
        Code::parse(text).ok_or_else(|| {
            let at = text.iter().position(|&byte| DIGITS[usize::from(byte)] == 0).unwrap_or(0);
            let found = String::from_utf8_lossy(&text[at..]).chars().next();
            CodeFault::Character { at, found: found.unwrap_or(char::REPLACEMENT_CHARACTER) }
        })
    }

    /// Its number, below [`CODES`].
    #[inline]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The code with this number; `None` from [`CODES`] on.
    #[inline]
    pub fn from_number(number: u64) -> Option<Code> {
        (number < CODES).then_some(Code(number))
    }

    /// Its length in characters, 1 to 10.
    #[expect(clippy::len_without_is_empty, reason = "no code is empty")]
    #[inline]
    pub fn len(self) -> usize {
        let mut chars = 1;
        while self.0 >= FIRST[chars + 1] {
            chars += 1;
        }
        chars
    }

    /// Its text, without allocating.
    pub fn as_text(self) -> CodeText {
        let len = self.len();
        let mut rest = self.0 - FIRST[len];
        let mut bytes = [b'0'; MAX_CODE_CHARS];
        for byte in bytes[..len].iter_mut().rev() {
            *byte = ALPHABET[(rest % BASE) as usize];
            rest /= BASE;
        }
        CodeText { bytes, len: len as u8 }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.as_text())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({self})")
    }
}

/// The text of a [`Code`], stored inline.
#[derive(Copy, Clone, Eq, PartialEq)]
pub struct CodeText {
    /// The text, then padding.
    bytes: [u8; MAX_CODE_CHARS],
    len: u8,
}

impl Deref for CodeText {
    type Target = str;

    fn deref(&self) -> &str {
        // `bytes` holds only the alphabet's characters, so the fallback is never used.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Display for CodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for CodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(text: &str) -> Code {
        Code::parse(text.as_bytes()).expect("a code")
    }

    #[test]
    fn numbers_run_through_every_length() {
        for (text, number) in [
            ("0", 0),
            ("9", 9),
            ("A", 10),
            ("z", 61),
            ("00", 62),
            ("zz", 62 + 62 * 62 - 1),
            ("000", 62 + 62 * 62),
            ("zzzzzzzzzz", CODES - 1),
        ] {
            assert_eq!(code(text).number(), number, "{text}");
            assert_eq!(Code::from_number(number).expect("below CODES").to_string(), text);
        }
        assert_eq!(Code::from_number(CODES), None);
        assert_eq!(Code::from_number(u64::MAX), None);
    }

    #[test]
    fn each_length_begins_where_the_shorter_ones_end() {
        let mut sum = 0;
        for chars in 1..=MAX_CODE_CHARS {
            assert_eq!(first_of_length(chars), sum);
            assert_eq!(Code::from_number(sum).expect("a code"), code(&"0".repeat(chars)));
            assert_eq!(code(&"z".repeat(chars)).len(), chars);
            sum += BASE.pow(chars as u32);
        }
        assert_eq!(first_of_length(MAX_CODE_CHARS + 1), sum);
        assert_eq!(first_of_length(usize::MAX), CODES);
        assert_eq!(first_of_length(0), 0);
    }

    #[test]
    fn every_short_text_is_its_own_number() {
        for number in 0..first_of_length(4) {
            let code = Code::from_number(number).expect("a code");
            assert_eq!(Code::parse(code.as_text().as_bytes()), Some(code));
        }
    }

    #[test]
    fn what_is_no_code_is_told_apart() {
        for (text, fault) in [
            ("", CodeFault::Empty),
            ("abcdefghijk", CodeFault::TooLong),
            ("a-b", CodeFault::Character { at: 1, found: '-' }),
            ("é", CodeFault::Character { at: 0, found: 'é' }),
            ("abc ", CodeFault::Character { at: 3, found: ' ' }),
        ] {
            assert_eq!(Code::check(text.as_bytes()), Err(fault), "{text}");
            assert_eq!(Code::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn text_is_padded_and_shown_like_a_string() {
        assert_eq!(format!("[{:>5}]", code("Yci")), "[  Yci]");
        assert_eq!(format!("{:?} {:?}", code("Yci"), code("Yci").as_text()), "Code(Yci) \"Yci\"");
    }

    proptest! {
        #[test]
        fn a_text_and_its_number_are_one(text in "[0-9A-Za-z]{1,10}") {
            let code = Code::check(text.as_bytes()).expect("a code");
            prop_assert_eq!(&*code.as_text(), text.as_str());
            prop_assert_eq!(code.len(), text.len());
            prop_assert_eq!(Code::from_number(code.number()), Some(code));
        }

        #[test]
        fn order_is_by_length_then_by_text(a in "[0-9A-Za-z]{1,10}", b in "[0-9A-Za-z]{1,10}") {
            let by_text = (a.len(), &a).cmp(&(b.len(), &b));
            prop_assert_eq!(code(&a).cmp(&code(&b)), by_text);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            prop_assert_eq!(Code::parse(&bytes), Code::check(&bytes).ok());
        }
    }
}
