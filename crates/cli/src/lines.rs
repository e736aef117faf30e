//! Reads numbered lines of bounded length from a stream. All tools read
//! line-based input with it.

use std::io::{self, BufRead, ErrorKind, Read as _};
use wellspring_types::limits::MAX_REQUEST_BYTES;

/// Longest line, in bytes. An event of the largest payload fits, every character of it escaped.
pub(crate) const MAX_LINE_BYTES: usize = MAX_REQUEST_BYTES;

/// Why reading cannot go on: where the next line begins is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Where, counted from 1.
    pub(crate) line: u64,
    /// The error.
    pub(crate) what: String,
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// By a line end.
    Whole,
    /// By the end of the stream.
    Cut,
}

/// Reads lines.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    source: R,
    /// The byte at the end of a line.
    end: u8,
    /// Number of the next line, from 1.
    next: u64,
}

impl<R: BufRead> LineReader<R> {
    /// The lines of a stream.
    pub(crate) fn new(source: R) -> LineReader<R> {
        LineReader::ending(source, b'\n')
    }

    /// Lines that end with this byte.
    pub(crate) fn ending(source: R, end: u8) -> LineReader<R> {
        LineReader { source, end, next: 1 }
    }

    /// Number of the next line, from 1.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// Continues with this line number.
    pub(crate) fn renumber(&mut self, next: u64) {
        self.next = next;
    }

    /// Appends the next line to `line`, its end included, and says how it ends; `None` at the end
    /// of the stream.
    ///
    /// # Errors
    /// The stream cannot be read on, or the line is longer than [`MAX_LINE_BYTES`].
    pub(crate) fn read_into(&mut self, line: &mut Vec<u8>) -> Result<Option<LineEnd>, Broken> {
        let start = line.len();
        let mut limited = self.source.by_ref().take(MAX_LINE_BYTES as u64 + 1);
        let read = limited.read_until(self.end, line);
        read.map_err(|error| self.broken(reading(&error)))?;
        let end = match &line[start..] {
            [] => return Ok(None),
            [.., last] if *last == self.end => LineEnd::Whole,
            rest if rest.len() > MAX_LINE_BYTES => {
                return Err(self.broken(too_long(MAX_LINE_BYTES)));
            }
            _ => LineEnd::Cut,
        };
        self.next += 1;
        Ok(Some(end))
    }

    /// The stream, for what is not read by lines.
    pub(crate) fn source(&mut self) -> &mut R {
        &mut self.source
    }

    /// The rest of the stream.
    pub(crate) fn into_source(self) -> R {
        self.source
    }

    /// An error at the next line.
    pub(crate) fn broken(&self, what: impl Into<String>) -> Broken {
        Broken { line: self.next, what: what.into() }
    }
}

/// What to say of a line, or of anything else without an end, that is longer than it may be.
pub(crate) fn too_long(most_bytes: usize) -> String {
    format!("longer than {} MiB", most_bytes >> 20)
}

/// What to say when the input cannot be read on.
pub(crate) fn reading(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "it is cut off: it ends too early".to_owned(),
        _ => format!("cannot continue reading: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn lines_are_numbered_and_say_how_they_end() {
        let mut lines = LineReader::new(BufReader::with_capacity(2, &b"one\n\nthree"[..]));
        let mut read = || {
            let mut line = Vec::new();
            let end = lines.read_into(&mut line).unwrap();
            (String::from_utf8(line).unwrap(), end, lines.next_number())
        };
        assert_eq!(read(), ("one\n".to_owned(), Some(LineEnd::Whole), 2));
        assert_eq!(read(), ("\n".to_owned(), Some(LineEnd::Whole), 3));
        assert_eq!(read(), ("three".to_owned(), Some(LineEnd::Cut), 4));
        assert_eq!(read(), (String::new(), None, 4));
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let mut lines = LineReader::new(BufReader::new(io::repeat(b'x')));
        let broken = lines.read_into(&mut Vec::new()).unwrap_err();
        assert!(broken.line == 1 && broken.what.contains("16 MiB"), "{broken:?}");
    }
}
