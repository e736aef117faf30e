//! A walk over JSON whose syntax has been checked before: one pass, no copies,
//! no stack for what is skipped. On text that is not JSON a step gives `None`;
//! it never panics and never stands still.

/// A place in a JSON text.
#[derive(Debug, Clone)]
pub struct TrustedCursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> TrustedCursor<'a> {
    /// At the beginning of a text.
    #[must_use]
    pub fn new(text: &'a str) -> TrustedCursor<'a> {
        TrustedCursor { text, at: 0 }
    }

    /// The next byte that is not white space, not consumed.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Consumes the next byte if it is `wanted`, and tells whether it was.
    pub fn eat(&mut self, wanted: u8) -> Option<bool> {
        let same = self.peek()? == wanted;
        self.at += usize::from(same);
        Some(same)
    }

    /// Where the next byte is that is not white space.
    pub(crate) fn place(&mut self) -> Option<usize> {
        self.peek()?;
        Some(self.at)
    }

    /// What has been consumed since a place.
    pub(crate) fn since(&self, place: usize) -> Option<&'a str> {
        self.text.get(place..self.at)
    }

    /// Consumes a string and gives it with its quotes.
    pub fn string(&mut self) -> Option<&'a str> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at;
        self.at += 1;
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            let stop = rest.iter().position(|&byte| byte == b'"' || byte == b'\\')?;
            if rest[stop] == b'"' {
                self.at += stop + 1;
                return self.text.get(start..self.at);
            }
            self.at += stop + 2;
        }
    }

    /// Consumes a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let end =
            rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"+-.".contains(byte)));
        let end = end.unwrap_or(rest.len());
        self.at += end;
        (end > 0).then_some(())
    }

    /// Consumes a value of any kind and gives it as it stands.
    pub fn value(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.at;
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    self.at += 1;
                    depth += 1;
                }
                b'}' | b']' => {
                    self.at += 1;
                    depth = depth.checked_sub(1)?;
                }
                b',' | b':' if depth > 0 => self.at += 1,
                _ => self.scalar()?,
            }
            if depth == 0 {
                return self.text.get(start..self.at);
            }
        }
    }
}

/// Whether a JSON string as written, with its quotes, stands for this text. One that is no Unicode
/// (a lone surrogate escape) stands for none.
#[must_use]
pub fn string_is(written: &str, text: &str) -> bool {
    let Some(inner) = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return false;
    };
    if !inner.contains('\\') {
        return inner == text;
    }
    let (mut written, mut wanted) = (inner.chars(), text.chars());
    loop {
        match (next_char(&mut written), wanted.next()) {
            (Some(Some(found)), Some(wanted)) if found == wanted => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// The next character that a string stands for; `Some(None)` if an escape is no character.
fn next_char(written: &mut std::str::Chars<'_>) -> Option<Option<char>> {
    let found = written.next()?;
    if found != '\\' {
        return Some(Some(found));
    }
    Some(match written.next() {
        Some('u') => escaped(written),
        Some('b') => Some('\u{8}'),
        Some('f') => Some('\u{c}'),
        Some('n') => Some('\n'),
        Some('r') => Some('\r'),
        Some('t') => Some('\t'),
        Some(itself @ ('"' | '\\' | '/')) => Some(itself),
        _ => None,
    })
}

/// The character of `XXXX` behind `\u`, or of a surrogate and `\uXXXX` behind it.
fn escaped(written: &mut std::str::Chars<'_>) -> Option<char> {
    let mut unit = || (0..4).try_fold(0, |unit, _| Some(unit << 4 | written.next()?.to_digit(16)?));
    let first = unit()?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    if written.next()? != '\\' || written.next()? != 'u' {
        return None;
    }
    let second = (0..4).try_fold(0, |unit, _| Some(unit << 4 | written.next()?.to_digit(16)?))?;
    let low = second.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10 | low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_given_as_it_stands() {
        for value in ["1", "-1.5e+3", "null", r#""a\"b\\""#, "[ ]", r#"{"a]":[{}, "}"] }"#] {
            let text = format!(" {value} , 2");
            let mut cursor = TrustedCursor::new(&text);
            assert_eq!(cursor.value(), Some(value));
            assert_eq!(cursor.eat(b','), Some(true));
        }
        let deep = format!("{}{}", "[".repeat(400_000), "]".repeat(400_000));
        assert_eq!(TrustedCursor::new(&deep).value(), Some(deep.as_str()));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_stand_still(text in r#"[\[\]{}",:\\ae0-9.tn é-]{0,40}"#) {
            let mut cursor = TrustedCursor::new(&text);
            let mut steps = 0;
            while cursor.value().is_some() || cursor.string().is_some() {
                steps += 1;
                prop_assert!(steps <= text.len());
            }
        }
    }

    proptest! {
        #[test]
        fn escapes_stand_for_what_serde_json_reads(
            inner in r#"([a-z"/é😀]|\\["\\/bfnrtux]|\\u(d[89a-f]|00|20)[0-9a-fA-F]{2}){0,6}"#
        ) {
            let written = format!("\"{inner}\"");
            match serde_json::from_str::<String>(&written) {
                Ok(text) => {
                    prop_assert!(string_is(&written, &text));
                    let (more, longer) = (format!("{text}x"), format!("\"{inner}x\""));
                    prop_assert!(!string_is(&written, &more) && !string_is(&longer, &text));
                }
                // What serde_json refuses is not known to be well formed.
                Err(_) => { let _ = string_is(&written, &inner); }
            }
        }
    }

    #[test]
    fn a_lone_surrogate_is_no_text() {
        for lone in [r#""\ud800""#, r#""\udfff""#, r#""\ud800\u0041""#, r#""\ud800x""#] {
            assert!(!string_is(lone, "\u{fffd}") && !string_is(lone, ""), "{lone}");
        }
        assert!(string_is(r#""\ud83d\ude00""#, "😀"));
    }
}
