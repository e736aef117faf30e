//! A pull reader over the bytes of a request.
//!
//! Not derived, because a fault must name its path (`events[3].tags[0]`), payloads must stay byte
//! for byte as sent, and nothing may recurse on client input. Strings without escapes are borrowed.
//! Property tests compare its view of JSON with serde_json's.

use crate::encoding::{is_wide, without_mark};
use std::borrow::Cow;
use wellspring_types::Invalid;
use wellspring_types::valid::{Reason, join_path};

/// What is expected of a document in another encoding.
const NOT_WIDE: &str = "UTF-8, not UTF-16 or UTF-32,";

/// Deepest nesting of arrays and objects accepted in one document.
pub const MAX_DEPTH: usize = 512;

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// Not JSON; names what was expected. The position matters, the path does not.
    Syntax(&'static str),
    /// JSON, but of the wrong type.
    WrongType {
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: &'static str,
    },
    /// An unknown field; lists the known ones.
    Unknown(&'static str),
    /// A required field is missing.
    Missing,
    /// A repeated field.
    Duplicate,
    /// A field that excludes another one; names the other one in the same object.
    Beside(&'static str),
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// A rule of the field itself.
    Rule(String),
    /// More work than one request may ask for, whatever its size.
    TooCostly {
        /// What is too much.
        detail: String,
        /// The limit.
        limit: u64,
    },
    /// Larger than a limit.
    TooLarge {
        /// What is too large, as a sentence about the field.
        detail: String,
        /// The limit.
        limit: u64,
    },
}

/// A fault, with its place in the bytes and in the structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Path of the field, empty for the document itself.
    pub field: String,
    /// Byte offset.
    pub at: usize,
    /// What is wrong.
    pub kind: FaultKind,
}

impl Fault {
    /// A fault of the value whose path starts here.
    pub fn new(at: usize, kind: FaultKind) -> Box<Fault> {
        Box::new(Fault { field: String::new(), at, kind })
    }

    /// A fault of the named field.
    pub fn of(field: &str, at: usize, kind: FaultKind) -> Box<Fault> {
        Box::new(Fault { field: field.to_owned(), at, kind })
    }

    /// A broken rule of the value whose path starts here becomes a fault of the document.
    pub fn of_invalid(invalid: Invalid, at: usize) -> Box<Fault> {
        let kind = match (invalid.reason, invalid.reason.limit()) {
            (reason @ (Reason::TooManyTerms { .. } | Reason::TooManyAsked { .. }), Some(limit)) => {
                FaultKind::TooCostly { detail: reason.to_string(), limit: limit as u64 }
            }
            (reason, Some(limit)) => {
                FaultKind::TooLarge { detail: reason.to_string(), limit: limit as u64 }
            }
            (reason, None) => FaultKind::Rule(reason.to_string()),
        };
        Fault::of(&invalid.field, at, kind)
    }

    /// The same fault seen from the enclosing structure.
    pub fn within(mut self: Box<Fault>, outer: &str) -> Box<Fault> {
        self.field = join_path(outer, &self.field);
        self
    }

    /// Line and column, both from 1, of the fault in the document.
    pub fn line_and_column(&self, document: &[u8]) -> (usize, usize) {
        let before = &document[..self.at.min(document.len())];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        (line, before.len() - start + 1)
    }
}

/// Longest part of a client's own name that a fault repeats, in characters: the path helps a
/// reader and does not echo a megabyte.
const MAX_ECHO: usize = 64;

/// A name as it stands in a path.
#[must_use]
pub fn shown_name(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_ECHO) {
        Some((end, _)) => Cow::Owned(format!("{}…", &name[..end])),
        None => Cow::Borrowed(name),
    }
}

/// The result of reading.
pub type ReadResult<T> = Result<T, Box<Fault>>;

/// Bytes with a meaning in a string: its end, an escape, what must be escaped.
static SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special
};

/// A place in a document. All reading moves forward.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a str,
    /// The bytes of `text`.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of `bytes`, which must be valid UTF-8.
    pub fn new(bytes: &'a [u8]) -> ReadResult<Cursor<'a>> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cursor::of_text(text)),
            Err(_) if is_wide(bytes) => Err(Fault::new(0, FaultKind::Syntax(NOT_WIDE))),
            Err(e) => Err(Fault::new(e.valid_up_to(), FaultKind::Syntax("valid UTF-8"))),
        }
    }

    /// At the beginning of a text, after a byte-order mark.
    pub fn of_text(text: &'a str) -> Cursor<'a> {
        let bytes = text.as_bytes();
        Cursor { text, bytes, at: bytes.len() - without_mark(bytes).len() }
    }

    /// Byte offset of the next value.
    pub fn at(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    fn syntax<T>(&self, expected: &'static str) -> ReadResult<T> {
        if is_wide(self.bytes) {
            return Err(Fault::new(0, FaultKind::Syntax(NOT_WIDE)));
        }
        Err(Fault::new(self.at, FaultKind::Syntax(expected)))
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// The next byte that is not white space, not consumed.
    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    /// Whether the next value is `null`, which is consumed then.
    pub fn null(&mut self) -> ReadResult<bool> {
        if self.peek() == Some(b'n') { self.word(b"null").map(|()| true) } else { Ok(false) }
    }

    /// Whether the next value is an object, an array or a string.
    pub fn next_is(&mut self, opening: u8) -> bool {
        self.peek() == Some(opening)
    }

    /// Nothing but white space may follow.
    pub fn end(&mut self) -> ReadResult<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.syntax("the end of the document"),
        }
    }

    fn word(&mut self, word: &'static [u8]) -> ReadResult<()> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        self.syntax("a JSON value")
    }

    /// Whether this whole word is next.
    fn is_at(&self, word: &[u8]) -> bool {
        let rest = self.bytes[self.at..].strip_prefix(word);
        rest.is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
    }

    /// The fault of a next value of the wrong type.
    pub fn wrong<T>(&mut self, expected: &'static str) -> ReadResult<T> {
        let found = match self.peek() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') if self.is_at(b"true") || self.is_at(b"false") => "a boolean",
            Some(b'n') if self.is_at(b"null") => "null",
            Some(b'-' | b'0'..=b'9') => "a number",
            _ => return self.syntax("a JSON value"),
        };
        Err(Fault::new(self.at, FaultKind::WrongType { expected, found }))
    }

    /// An object: `field` gets each key and must read its value. Faults are put under the key.
    pub fn object(
        &mut self,
        mut field: impl FnMut(&str, &mut Cursor<'a>) -> ReadResult<()>,
    ) -> ReadResult<()> {
        if self.peek() != Some(b'{') {
            return self.wrong("an object");
        }
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.syntax("a field name in quotes");
            }
            let key = self.text()?;
            if self.peek() != Some(b':') {
                return self.syntax("`:` after a field name");
            }
            self.at += 1;
            field(&key, self).map_err(|fault| fault.within(&shown_name(&key)))?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.syntax("`,` or `}`"),
            }
        }
    }

    /// An array: `element` gets each index and must read the element.
    pub fn array(
        &mut self,
        mut element: impl FnMut(usize, &mut Cursor<'a>) -> ReadResult<()>,
    ) -> ReadResult<()> {
        if self.peek() != Some(b'[') {
            return self.wrong("an array");
        }
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        for i in 0.. {
            element(i, self).map_err(|fault| fault.within(&format!("[{i}]")))?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.syntax("`,` or `]`"),
            }
        }
        Ok(())
    }

    /// A string, borrowed if it holds no escapes.
    pub fn string(&mut self) -> ReadResult<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return self.wrong("a string");
        }
        self.text()
    }

    /// A string; the cursor is on its opening quote.
    fn text(&mut self) -> ReadResult<Cow<'a, str>> {
        let start = self.at + 1;
        let escaped = self.skip_text()?;
        // Both ends are ASCII quotes, so no character is cut.
        let inner = &self.text[start..self.at - 1];
        if escaped { unescape(inner, start).map(Cow::Owned) } else { Ok(Cow::Borrowed(inner)) }
    }

    /// Skips a string and tells whether it contains escapes.
    fn skip_text(&mut self) -> ReadResult<bool> {
        self.at += 1;
        let mut escaped = false;
        loop {
            // Most of a string is plain: it is skipped without further distinction.
            let rest = &self.bytes[self.at..];
            self.at +=
                rest.iter().position(|&byte| SPECIAL[usize::from(byte)]).unwrap_or(rest.len());
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at += 1;
                    self.skip_escape()?;
                }
                Some(0..=0x1f) => return self.syntax("control characters in strings escaped"),
                Some(_) => self.at += 1,
                None => return self.syntax("the closing quote of a string"),
            }
        }
    }

    fn skip_escape(&mut self) -> ReadResult<()> {
        match self.bytes.get(self.at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 1..self.at + 5);
                if digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    self.at += 5;
                    return Ok(());
                }
                self.syntax("four hexadecimal digits after `\\u`")
            }
            _ => self.syntax("a valid escape after `\\`"),
        }
    }

    /// An unsigned integer.
    pub fn u64(&mut self) -> ReadResult<u64> {
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return self.wrong("a non-negative integer");
        }
        let at = self.at;
        let text = self.raw()?;
        let rule = || {
            let number = String::from_utf8_lossy(&text[..text.len().min(32)]);
            let rule = format!("must be an integer from 0 to 2^64-1, not {number}");
            Fault::new(at, FaultKind::Rule(rule))
        };
        std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or_else(rule)
    }

    /// `true` or `false`.
    pub fn boolean(&mut self) -> ReadResult<bool> {
        let word: &[u8] = if self.next_is(b't') { b"true" } else { b"false" };
        if self.peek().is_none() || !self.is_at(word) {
            return self.wrong("true or false");
        }
        self.at += word.len();
        Ok(word == b"true")
    }

    /// Any value, as its original bytes.
    pub fn raw(&mut self) -> ReadResult<&'a [u8]> {
        self.skip_space();
        let start = self.at;
        self.skip_value()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Skips one value. Iterative: each level of nesting costs one bit.
    fn skip_value(&mut self) -> ReadResult<()> {
        let mut objects = [0u64; MAX_DEPTH / 64];
        let mut depth = 0usize;
        let in_object = |objects: &[u64], depth: usize| {
            objects[(depth - 1) / 64] >> ((depth - 1) % 64) & 1 == 1
        };
        loop {
            match self.peek() {
                Some(opening @ (b'{' | b'[')) => {
                    if depth == MAX_DEPTH {
                        return Err(Fault::new(self.at, FaultKind::TooDeep));
                    }
                    self.at += 1;
                    let bit = 1u64 << (depth % 64);
                    let word = &mut objects[depth / 64];
                    *word = if opening == b'{' { *word | bit } else { *word & !bit };
                    depth += 1;
                    let closing = if opening == b'{' { b'}' } else { b']' };
                    if self.peek() != Some(closing) {
                        if opening == b'{' {
                            self.skip_key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                    depth -= 1;
                }
                _ => self.skip_scalar()?,
            }
            // A value has ended: close what it closes, or continue with its sibling.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let object = in_object(&objects, depth);
                match (self.peek(), object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        if object {
                            self.skip_key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        depth -= 1;
                    }
                    (_, true) => return self.syntax("`,` or `}`"),
                    (_, false) => return self.syntax("`,` or `]`"),
                }
            }
        }
    }

    fn skip_key(&mut self) -> ReadResult<()> {
        if self.peek() != Some(b'"') {
            return self.syntax("a field name in quotes");
        }
        self.skip_text()?;
        if self.peek() != Some(b':') {
            return self.syntax("`:` after a field name");
        }
        self.at += 1;
        Ok(())
    }

    fn skip_scalar(&mut self) -> ReadResult<()> {
        match self.peek() {
            Some(b'"') => self.skip_text().map(|_| ()),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            _ => self.syntax("a JSON value"),
        }
    }

    fn skip_number(&mut self) -> ReadResult<()> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> ReadResult<()> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { self.syntax("a digit") } else { Ok(()) }
    }
}

/// Resolves the escapes of a string, which must be well-formed. `at` is its offset.
fn unescape(text: &str, at: usize) -> ReadResult<String> {
    let lone = || Fault::new(at, FaultKind::Rule("contains half of a surrogate pair".into()));
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(slash) = rest.find('\\') {
        out.push_str(&rest[..slash]);
        let code = rest.as_bytes()[slash + 1];
        rest = &rest[slash + 2..];
        let plain = match code {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = hex(&rest[..4]);
                rest = &rest[4..];
                if (0xd800..0xdc00).contains(&high) {
                    let low = rest.strip_prefix("\\u").map(|r| hex(&r[..4]));
                    let Some(low @ 0xdc00..0xe000) = low else { return Err(lone()) };
                    rest = &rest[6..];
                    char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                        .ok_or_else(lone)?
                } else {
                    char::from_u32(high).ok_or_else(lone)?
                }
            }
            other => other as char,
        };
        out.push(plain);
    }
    out.push_str(rest);
    Ok(out)
}

fn hex(digits: &str) -> u32 {
    u32::from_str_radix(digits, 16).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    fn raw(document: &[u8]) -> ReadResult<Vec<u8>> {
        let mut cursor = Cursor::new(document)?;
        let value = cursor.raw()?.to_vec();
        cursor.end()?;
        Ok(value)
    }

    #[test]
    fn values_stay_the_bytes_they_were() {
        for text in ["1e400", "-0.0E+1", r#"{"b":1,"a":2,"b":3}"#, r#""\u00e9\/é""#, "[ 1 ,\n2 ]"]
        {
            assert_eq!(raw(format!(" {text}\n").as_bytes()).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_mark_is_passed_over_and_other_encodings_are_named() {
        assert_eq!(raw("\u{feff} {\"a\":1}".as_bytes()).unwrap(), b"{\"a\":1}");
        assert!(raw("\u{feff}\u{feff}1".as_bytes()).is_err(), "one");
        for wide in
            [&b"\xff\xfe{\0}\0"[..], b"\xfe\xff\0{\0}", b"{\0}\0", b"\0{\0}", b"[\0\0\0]\0\0\0"]
        {
            let fault = raw(wide).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Syntax(NOT_WIDE), "{wide:?}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for bad in [
            "",
            "01",
            "+1",
            "1.",
            ".5",
            "1e",
            "nul",
            "[1,]",
            "{,}",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"a\nb\"",
            "[}",
            "{]",
            "[1 2]",
            "1 1",
            "\"",
            "{1:2}",
            "-",
        ] {
            assert!(raw(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(raw(b"\"\xff\"").is_err());
    }

    #[test]
    fn depth_is_bounded_and_never_recursed_on() {
        let nested = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        assert!(raw(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(raw(&nested(MAX_DEPTH + 1)).unwrap_err().kind, FaultKind::TooDeep);
        assert!(raw(&nested(1_000_000)).is_err());
        assert!(raw(&vec![b'['; 1_000_000]).is_err());
        let objects = "{\"a\":".repeat(1_000_000);
        assert!(raw(objects.as_bytes()).is_err());
    }

    #[test]
    fn faults_know_line_and_column() {
        let document = b"{\n  \"a\": tru }";
        let fault = raw(document).unwrap_err();
        assert_eq!(fault.line_and_column(document), (2, 8));
    }

    #[test]
    fn paths_join() {
        let fault = Fault::new(0, FaultKind::Missing).within("[2]").within("events");
        assert_eq!(fault.within("body").field, "body.events[2]");
    }

    #[test]
    fn half_a_surrogate_pair_is_no_text_but_may_stay_in_a_payload() {
        for text in [r#""\ud800""#, r#""\udc00x""#, r#""\ud800\u0041""#, r#""\ud800\n""#] {
            assert!(Cursor::new(text.as_bytes()).unwrap().string().is_err(), "{text}");
            assert!(raw(text.as_bytes()).is_ok());
        }
        let pair = Cursor::new(br#""\ud83d\ude00""#).unwrap().string().unwrap().into_owned();
        assert_eq!(pair, "😀");
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_on_what_json_is(document in r#"[\[\]{}",:0-9eE.+\-a\\u ntrufls]{0,12}"#) {
            let theirs = serde_json::from_str::<&RawValue>(&document).is_ok();
            prop_assert_eq!(raw(document.as_bytes()).is_ok(), theirs, "{}", document);
        }

        #[test]
        fn strings_read_as_serde_json_reads_them(text in any::<String>()) {
            let written = serde_json::to_string(&text).unwrap();
            let read = Cursor::new(written.as_bytes()).unwrap().string().unwrap().into_owned();
            prop_assert_eq!(read, text);
        }

        #[test]
        fn arbitrary_bytes_never_panic(document in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = raw(&document);
        }
    }
}
