//! Reads JSON values one by one: one per line, or the elements of one array. At most one value is
//! in memory.

use crate::lines::{Broken, LineReader, MAX_LINE_BYTES, reading, too_long};
use std::io::BufRead;
use wellspring_host::wire::json::without_mark;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Unknown,
    Lines,
    /// In an array; `true` before its first element.
    Array(bool),
    Ended,
}

/// Splits a stream into values without understanding them.
pub(crate) struct JsonItems<R> {
    lines: LineReader<R>,
    shape: Shape,
    buffer: Vec<u8>,
}

impl<R: BufRead> JsonItems<R> {
    /// Values of a stream.
    pub(crate) fn new(reader: R) -> JsonItems<R> {
        JsonItems { lines: LineReader::new(reader), shape: Shape::Unknown, buffer: Vec::new() }
    }

    /// Whether the stream is an array, and not a value a line. White space before it is passed.
    pub(crate) fn is_array(&mut self) -> Result<bool, Broken> {
        Ok(self.peek_past_space()? == Some(b'['))
    }

    /// The unread rest, and the number of its first line.
    pub(crate) fn into_reader(self) -> (R, u64) {
        let line = self.lines.next_number();
        (self.lines.into_source(), line)
    }

    /// The next value and the line it begins on; `None` at the end. Empty lines are passed over.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>, Broken> {
        if self.shape == Shape::Unknown {
            self.shape = match self.peek_past_space()? {
                None => Shape::Ended,
                Some(b'[') => {
                    self.lines.source().consume(1);
                    Shape::Array(true)
                }
                Some(_) => Shape::Lines,
            };
        }
        match self.shape {
            Shape::Lines => self.next_line(),
            Shape::Array(first) => self.next_element(first),
            Shape::Unknown | Shape::Ended => Ok(None),
        }
    }

    fn next_line(&mut self) -> Result<Option<(u64, &[u8])>, Broken> {
        loop {
            let line = self.lines.next_number();
            self.buffer.clear();
            if self.lines.read_into(&mut self.buffer)?.is_none() {
                self.shape = Shape::Ended;
                return Ok(None);
            }
            // Files that were joined have a mark in the middle.
            if !without_mark(&self.buffer).trim_ascii().is_empty() {
                return Ok(Some((line, without_mark(&self.buffer).trim_ascii())));
            }
        }
    }

    fn next_element(&mut self, first: bool) -> Result<Option<(u64, &[u8])>, Broken> {
        let mut next = self.peek_past_space()?;
        if next == Some(b',') && !first {
            self.lines.source().consume(1);
            next = self.peek_past_space()?;
        } else if next == Some(b']') {
            self.lines.source().consume(1);
            if self.peek_past_space()?.is_some() {
                return Err(self.broken("nothing may follow the array's closing bracket"));
            }
            self.shape = Shape::Ended;
            return Ok(None);
        } else if !first && next.is_some() {
            return Err(self.broken("expected a comma or the array's closing bracket"));
        }
        match next {
            Some(b'{') => {
                self.shape = Shape::Array(false);
                let line = self.lines.next_number();
                self.read_object()?;
                Ok(Some((line, &self.buffer)))
            }
            Some(_) => Err(self.broken("expected an object as the array's next element")),
            None => Err(self.broken("the array is not closed: the file is truncated")),
        }
    }

    /// Reads from an opening brace to the one that closes it.
    fn read_object(&mut self) -> Result<(), Broken> {
        self.buffer.clear();
        let (mut depth, mut in_string, mut escaped) = (0u64, false, false);
        let mut line = self.lines.next_number();
        loop {
            let bytes = match self.lines.source().fill_buf() {
                Ok(bytes) => bytes,
                Err(error) => return Err(self.broken(reading(&error))),
            };
            if bytes.is_empty() {
                return Err(self.broken("an object is not closed: the file is truncated"));
            }
            let mut used = bytes.len();
            let mut closed = false;
            for (i, &byte) in bytes.iter().enumerate() {
                line += u64::from(byte == b'\n');
                match (in_string, byte) {
                    (true, _) if escaped => escaped = false,
                    (true, b'\\') => escaped = true,
                    (_, b'"') => in_string = !in_string,
                    (false, b'{' | b'[') => depth += 1,
                    (false, b'}' | b']') => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    (used, closed) = (i + 1, true);
                    break;
                }
            }
            self.buffer.extend_from_slice(&bytes[..used]);
            self.lines.source().consume(used);
            self.lines.renumber(line);
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(self.broken(too_long(MAX_LINE_BYTES)));
            }
            if closed {
                return Ok(());
            }
        }
    }

    fn peek_past_space(&mut self) -> Result<Option<u8>, Broken> {
        loop {
            let first = match self.lines.source().fill_buf() {
                Ok(bytes) => bytes.first().copied(),
                Err(error) => return Err(self.broken(reading(&error))),
            };
            match first {
                Some(byte) if byte.is_ascii_whitespace() => {
                    let next = self.lines.next_number() + u64::from(byte == b'\n');
                    self.lines.renumber(next);
                    self.lines.source().consume(1);
                }
                other => return Ok(other),
            }
        }
    }

    fn broken(&self, what: impl Into<String>) -> Broken {
        self.lines.broken(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, BufReader};

    fn read(text: &str) -> Result<Vec<(u64, String)>, Broken> {
        // A tiny buffer, so that values straddle its edges.
        let mut items = JsonItems::new(BufReader::with_capacity(3, text.as_bytes()));
        let mut all = Vec::new();
        while let Some((line, item)) = items.next()? {
            all.push((line, String::from_utf8(item.to_vec()).unwrap()));
        }
        assert_eq!(items.next(), Ok(None));
        Ok(all)
    }

    #[test]
    fn lines_and_arrays_are_split_alike() {
        let want = |lines: &[(u64, &str)]| {
            Ok(lines.iter().map(|&(n, s)| (n, s.to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(read("{\"a\":1}\r\n\n  {\"b\":2}"), want(&[(1, "{\"a\":1}"), (3, "{\"b\":2}")]));
        let array = "\n[ {\"a\":\"}]\\\"\"}\n,\n{\"b\":\n[{}]} ]\n";
        assert_eq!(read(array), want(&[(2, "{\"a\":\"}]\\\"\"}"), (4, "{\"b\":\n[{}]}")]));
        assert_eq!(read("{}\n\u{feff}{}\n\u{feff}\n"), want(&[(1, "{}"), (2, "{}")]));
        for nothing in ["", " \n", "[]", "[ ]\n"] {
            assert_eq!(read(nothing), want(&[]));
        }
    }

    #[test]
    fn a_broken_array_is_an_error_with_its_line() {
        for (bad, line) in [
            ("[", 1),
            ("[\n{", 2),
            ("[{},", 1),
            ("[{}{}]", 1),
            ("[\n\n1]", 3),
            ("[{}]\nx", 2),
            ("[,{}]", 1),
        ] {
            assert_eq!(read(bad).unwrap_err().line, line, "{bad}");
        }
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let endless = io::repeat(b'x');
        let mut items = JsonItems::new(BufReader::new(endless));
        assert!(items.next().unwrap_err().what.contains("16 MiB"));
        let endless = BufReader::new(io::Read::chain(&b"[{\""[..], io::repeat(b'x')));
        assert!(JsonItems::new(endless).next().unwrap_err().what.contains("16 MiB"));
    }
}
