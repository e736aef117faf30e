//! A streaming JSON reader. Events have a fixed form, so it builds no tree of values; a rebuild
//! reads millions of events.

use super::{EventFault, fault};
use std::borrow::Cow;

/// JSON text and the position of the reader.
pub(super) struct Json<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A number: an integer if it is written as one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

/// The kind of a value, from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    List,
    Text,
    Number,
    True,
    False,
    Null,
}

impl<'a> Json<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Json<'a> {
        Json { bytes, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, EventFault> {
        fault(format!("invalid JSON: expected {expected} at byte {}", self.at))
    }

    /// Whether the next byte is `byte`; consumes it if so.
    fn passes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8) -> Result<(), EventFault> {
        if self.passes(byte) { Ok(()) } else { self.wrong(&format!("'{}'", char::from(byte))) }
    }

    fn word(&mut self, word: &str) -> Result<(), EventFault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return self.wrong(word);
        }
        self.at += word.len();
        Ok(())
    }

    /// The kind of the next value.
    pub(super) fn kind(&mut self) -> Result<Kind, EventFault> {
        self.skip_space();
        Ok(match self.peek() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            Some(b'"') => Kind::Text,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            Some(b't') => Kind::True,
            Some(b'f') => Kind::False,
            Some(b'n') => Kind::Null,
            _ => return self.wrong("a value"),
        })
    }

    /// Checks that only white space remains.
    pub(super) fn end(&mut self) -> Result<(), EventFault> {
        self.skip_space();
        if self.at < self.bytes.len() { self.wrong("the end") } else { Ok(()) }
    }

    /// Reads an object; `field` reads each field's value.
    pub(super) fn object(
        &mut self,
        mut field: impl FnMut(&mut Json<'a>, &str) -> Result<(), EventFault>,
    ) -> Result<(), EventFault> {
        self.expect(b'{')?;
        if self.passes(b'}') {
            return Ok(());
        }
        loop {
            let name = self.text()?;
            self.expect(b':')?;
            field(self, &name)?;
            if self.passes(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Reads a list; `item` reads each value.
    pub(super) fn list(
        &mut self,
        mut item: impl FnMut(&mut Json<'a>) -> Result<(), EventFault>,
    ) -> Result<(), EventFault> {
        self.expect(b'[')?;
        if self.passes(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.passes(b']') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Reads `true` or `false`.
    pub(super) fn boolean(&mut self) -> Result<bool, EventFault> {
        match self.kind()? {
            Kind::True => self.word("true").map(|()| true),
            Kind::False => self.word("false").map(|()| false),
            _ => self.wrong("true or false"),
        }
    }

    /// Reads a string.
    pub(super) fn text(&mut self) -> Result<Cow<'a, str>, EventFault> {
        self.expect(b'"')?;
        let mut whole: Cow<'a, str> = Cow::Borrowed("");
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let Some(length) = plain else { return self.wrong("the end of a string") };
            let Ok(run) = std::str::from_utf8(&rest[..length]) else { return self.wrong("UTF-8") };
            if whole.is_empty() {
                whole = Cow::Borrowed(run);
            } else {
                whole.to_mut().push_str(run);
            }
            self.at += length;
            match rest[length] {
                b'"' => {
                    self.at += 1;
                    return Ok(whole);
                }
                b'\\' => {
                    self.at += 1;
                    let letter = self.escaped()?;
                    whole.to_mut().push(letter);
                }
                _ => return self.wrong("an escaped control character"),
            }
        }
    }

    /// Reads the character after a backslash.
    fn escaped(&mut self) -> Result<char, EventFault> {
        let letter = self.peek();
        self.at += 1;
        Ok(match letter {
            Some(letter @ (b'"' | b'\\' | b'/')) => letter.into(),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.four_digits()?;
                let code = match first {
                    0xd800..0xdc00 => {
                        self.word("\\u")?;
                        let second = self.four_digits()?;
                        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
                        low.map(|low| 0x1_0000 + ((first - 0xd800) << 10) + low)
                    }
                    code => Some(code),
                };
                match code.and_then(char::from_u32) {
                    Some(letter) => letter,
                    None => return self.wrong("a pair of surrogates"),
                }
            }
            _ => return self.wrong("an escape"),
        })
    }

    fn four_digits(&mut self) -> Result<u32, EventFault> {
        let digits = self.bytes.get(self.at..self.at + 4).unwrap_or_default();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return self.wrong("four hexadecimal digits");
        }
        self.at += 4;
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0);
        Ok(digits.iter().fold(0, |code, digit| code << 4 | value(*digit)))
    }

    fn digits(&mut self) -> Result<usize, EventFault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { self.wrong("a digit") } else { Ok(self.at - start) }
    }

    /// Reads a number: a 64-bit integer or a finite float.
    pub(super) fn number(&mut self) -> Result<Number, EventFault> {
        self.skip_space();
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let leads_with_zero = self.peek() == Some(b'0');
        if self.digits()? > 1 && leads_with_zero {
            return self.wrong("a number without leading zeros");
        }
        let mut is_float = false;
        if self.peek() == Some(b'.') {
            is_float = true;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_float = true;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        let number = if is_float {
            text.parse().ok().filter(|value: &f64| value.is_finite()).map(Number::Float)
        } else {
            text.parse().ok().map(Number::Integer)
        };
        number.map_or_else(|| fault(format!("the number {text} is out of range")), Ok)
    }

    /// Reads a non-negative integer.
    pub(super) fn natural(&mut self) -> Result<u64, EventFault> {
        match self.number()? {
            Number::Integer(value @ 0..) => Ok(value as u64),
            _ => self.wrong("a natural number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value as Tree;

    /// Parses the whole text.
    fn whole<T>(
        text: &str,
        read: impl FnOnce(&mut Json<'_>) -> Result<T, EventFault>,
    ) -> Option<T> {
        let mut json = Json::new(text.as_bytes());
        let value = read(&mut json).ok()?;
        json.end().ok().map(|()| value)
    }

    proptest! {
        #[test]
        fn strings_are_those_of_another_reader(body in r#"([a-zé\u{2028}\u{1}]|\\["\\/bfnrtux]|\\u[dD][89a-fA-F][0-9]{2}|\\u00[0-9a-f]{2}|"){0,8}"#) {
            let text = format!("\"{body}\"");
            let expected: Option<String> = serde_json::from_str(&text).ok();
            prop_assert_eq!(whole(&text, |json| json.text().map(Cow::into_owned)), expected);
        }

        #[test]
        fn numbers_are_those_of_another_reader(text in "-?[0-9]{0,3}[0-9]{0,18}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{0,3})?") {
            let expected = match serde_json::from_str(&text) {
                Ok(Tree::Number(number)) => number
                    .as_i64()
                    .map(Number::Integer)
                    .or(number.as_f64().filter(|_| number.is_f64()).map(Number::Float)),
                _ => None,
            };
            let read = whole(&text, |json| json.number());
            // Integers that are too large, and minus zero, are floats for other readers.
            let is_whole = !text.contains(['.', 'e', 'E']);
            if !(is_whole && matches!(expected, Some(Number::Float(_)))) {
                prop_assert_eq!(read, expected);
            }
        }

        #[test]
        fn whatever_is_written_is_read(text in any::<String>()) {
            let mut json = String::new();
            super::super::put_text(&mut json, &text);
            prop_assert_eq!(whole(&json, |json| json.text().map(Cow::into_owned)), Some(text.clone()));
            prop_assert_eq!(serde_json::from_str::<String>(&json).ok(), Some(text));
        }
    }

    #[test]
    fn objects_and_lists_have_commas_between_and_no_others() {
        let read = |text: &str| {
            whole(text, |json| {
                let mut fields = Vec::new();
                json.object(|json, name| {
                    let mut items = 0;
                    fields.push(name.to_owned());
                    json.list(|json| {
                        items += 1;
                        json.boolean().map(|_| ())
                    })
                })?;
                Ok(fields.join(","))
            })
        };
        assert_eq!(read(r#" { "a" : [ true , false ] , "b":[]} "#).as_deref(), Some("a,b"));
        assert_eq!(read("{}").as_deref(), Some(""));
        for bad in [
            "",
            "{",
            "{,}",
            r#"{"a":[],}"#,
            r#"{"a":[true,]}"#,
            r#"{"a":[tru]}"#,
            "{}x",
            r#"{"a"}"#,
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
