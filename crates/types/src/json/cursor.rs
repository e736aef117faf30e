//! A walk over JSON with known-good syntax: one pass, no copies, and no stack for skipped values.
//! On invalid JSON a step gives `None`; it never panics or loops.

/// A place in a JSON text.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the beginning of a text.
    #[must_use]
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// The next byte after white space, without consuming it.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Consumes the next byte if it is `wanted`; returns whether it was.
    pub fn eat(&mut self, wanted: u8) -> Option<bool> {
        let same = self.peek()? == wanted;
        self.at += usize::from(same);
        Some(same)
    }

    /// Consumes a string and returns it with its quotes.
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

    /// Consumes a value of any kind and returns its text.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_given_as_it_stands() {
        for value in ["1", "-1.5e+3", "null", r#""a\"b\\""#, "[ ]", r#"{"a]":[{}, "}"] }"#] {
            let text = format!(" {value} , 2");
            let mut cursor = Cursor::new(&text);
            assert_eq!(cursor.value(), Some(value));
            assert_eq!(cursor.eat(b','), Some(true));
        }
        let deep = format!("{}{}", "[".repeat(400_000), "]".repeat(400_000));
        assert_eq!(Cursor::new(&deep).value(), Some(deep.as_str()));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_stand_still(text in r#"[\[\]{}",:\\ae0-9.tn é-]{0,40}"#) {
            let mut cursor = Cursor::new(&text);
            let mut steps = 0;
            while cursor.value().is_some() || cursor.string().is_some() {
                steps += 1;
                prop_assert!(steps <= text.len());
            }
        }
    }
}
