//! Records of a CSV file, each with the line it begins on.
//!
//! Strict about quotes: an unclosed quote would otherwise swallow the rows up to the next quote,
//! silently. Only the row with the quote is invalid: reading continues with the line after the one
//! it began on.

use crate::lines::{Broken, LineReader, MAX_LINE_BYTES};
use std::io::BufRead;

/// Most bytes one record may take: without it an unclosed quote would have the file in memory.
const MAX_RECORD_BYTES: usize = MAX_LINE_BYTES;

/// What can be wrong with the quotes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuoteFault {
    /// A quote is opened and never closed.
    Unclosed,
    /// Something other than a delimiter follows a closing quote: usually an earlier one was never
    /// closed.
    TextAfter,
}

impl QuoteFault {
    /// In words.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            QuoteFault::Unclosed => {
                "a quote in this row is never closed; close it, or double it if it is part of the text"
            }
            QuoteFault::TextAfter => {
                "text follows a closing quote; close the quote, or double it if it is part of the text"
            }
        }
    }
}

/// Reads records, one at a time.
pub(crate) struct CsvReader<R> {
    lines: LineReader<R>,
    delimiter: u8,
    /// Lines to read again: those that a row with an unclosed quote had taken.
    again: Vec<u8>,
    again_at: usize,
    /// The record as it is in the file.
    raw: Vec<u8>,
    cells: Vec<u8>,
    ends: Vec<usize>,
    fault: Option<QuoteFault>,
    first_line: u64,
    first_line_bytes: usize,
}

/// The result of parsing the bytes at hand.
enum Parsed {
    Whole,
    /// A quoted cell continues after the bytes read so far.
    Open,
    Fault(QuoteFault),
}

impl<R: BufRead> CsvReader<R> {
    /// Records of a stream.
    pub(crate) fn new(source: R, delimiter: u8) -> CsvReader<R> {
        CsvReader {
            lines: LineReader::new(source),
            delimiter,
            again: Vec::new(),
            again_at: 0,
            raw: Vec::new(),
            cells: Vec::new(),
            ends: Vec::new(),
            fault: None,
            first_line: 0,
            first_line_bytes: 0,
        }
    }

    /// Reads the next record and returns the line it begins on; `None` at the end. Empty lines are
    /// passed over. If its quotes are wrong, [`fault`](Self::fault) says how, and it has no cells.
    pub(crate) fn advance(&mut self) -> Result<Option<u64>, Broken> {
        self.fault = None;
        self.cells.clear();
        self.ends.clear();
        loop {
            self.raw.clear();
            if !self.read_line()? {
                return Ok(None);
            }
            if !self.raw.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                break;
            }
        }
        (self.first_line, self.first_line_bytes) = (self.lines.next_number() - 1, self.raw.len());
        let (mut at, mut quoted) = (0, false);
        let fault = loop {
            match self.parse(&mut at, &mut quoted) {
                Parsed::Whole => return Ok(Some(self.first_line)),
                Parsed::Open if self.raw.len() < MAX_RECORD_BYTES && self.read_line()? => {}
                Parsed::Open => break QuoteFault::Unclosed,
                Parsed::Fault(fault) => break fault,
            }
        };
        self.fault = Some(fault);
        self.ends.clear();
        self.give_back_lines();
        Ok(Some(self.first_line))
    }

    /// Reads the lines of the record after its first again, each on its own: the record is invalid,
    /// and must not cost more than one row.
    pub(crate) fn give_back_lines(&mut self) {
        if self.raw.len() == self.first_line_bytes {
            return;
        }
        let mut again = self.raw.split_off(self.first_line_bytes);
        again.extend_from_slice(&self.again[self.again_at..]);
        (self.again, self.again_at) = (again, 0);
        self.lines.renumber(self.first_line + 1);
    }

    /// What is wrong with the record's quotes.
    pub(crate) fn fault(&self) -> Option<QuoteFault> {
        self.fault
    }

    /// How many cells the record has.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A cell of the record; empty where it has none.
    pub(crate) fn cell(&self, column: usize) -> &[u8] {
        if column >= self.ends.len() {
            return &[];
        }
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        &self.cells[start..self.ends[column]]
    }

    /// Bytes in all cells together.
    pub(crate) fn byte_len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Adds a line to the record; says whether there was one.
    fn read_line(&mut self) -> Result<bool, Broken> {
        let again = &self.again[self.again_at..];
        if !again.is_empty() {
            let end = again.iter().position(|&byte| byte == b'\n').map_or(again.len(), |i| i + 1);
            self.raw.extend_from_slice(&again[..end]);
            self.again_at += end;
            self.lines.renumber(self.lines.next_number() + 1);
            return Ok(true);
        }
        Ok(self.lines.read_into(&mut self.raw)?.is_some())
    }

    /// Continues at `at`, inside a quoted cell if `quoted`.
    fn parse(&mut self, at: &mut usize, quoted: &mut bool) -> Parsed {
        loop {
            if !*quoted && self.raw.get(*at) == Some(&b'"') {
                *quoted = true;
                *at += 1;
            }
            if *quoted {
                let rest = &self.raw[*at..];
                let Some(text) = rest.iter().position(|&byte| byte == b'"') else {
                    self.cells.extend_from_slice(rest);
                    *at = self.raw.len();
                    return Parsed::Open;
                };
                self.cells.extend_from_slice(&rest[..text]);
                *at += text + 1;
                if self.raw.get(*at) == Some(&b'"') {
                    self.cells.push(b'"');
                    *at += 1;
                    continue;
                }
                *quoted = false;
            } else {
                let rest = &self.raw[*at..];
                let ends = |&byte: &u8| byte == self.delimiter || byte == b'\n';
                let mut text = rest.iter().position(ends).unwrap_or(rest.len());
                if rest.get(text) != Some(&self.delimiter) && rest[..text].ends_with(b"\r") {
                    text -= 1;
                }
                self.cells.extend_from_slice(&rest[..text]);
                *at += text;
            }
            self.ends.push(self.cells.len());
            match &self.raw[*at..] {
                [] | [b'\n'] | [b'\r', b'\n'] | [b'\r'] => return Parsed::Whole,
                [byte, ..] if *byte == self.delimiter => *at += 1,
                _ => return Parsed::Fault(QuoteFault::TextAfter),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Each record as its line and cells, or as its line alone if its quotes are wrong.
    fn records(text: &str) -> Vec<(u64, Vec<String>)> {
        let mut reader = CsvReader::new(io::BufReader::with_capacity(3, text.as_bytes()), b',');
        let mut all = Vec::new();
        while let Some(line) = reader.advance().unwrap() {
            assert_eq!(reader.fault().is_some(), reader.len() == 0);
            let cell = |i| String::from_utf8(reader.cell(i).to_vec()).unwrap();
            all.push((line, (0..reader.len()).map(cell).collect()));
        }
        all
    }

    fn want(records: &[(u64, &[&str])]) -> Vec<(u64, Vec<String>)> {
        let cells = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect();
        records.iter().map(|&(line, all)| (line, cells(all))).collect()
    }

    #[test]
    fn cells_are_read_as_rfc_4180_has_them() {
        assert_eq!(
            records("a,b\r\n\r\n\"x,\"\"y\"\"\nz\",\n,\"\"\nlast,q\"uote"),
            want(&[
                (1, &["a", "b"]),
                (3, &["x,\"y\"\nz", ""]),
                (5, &["", ""]),
                (6, &["last", "q\"uote"])
            ])
        );
        assert_eq!(records("a,\r\n\"b\",\"c\"\r\n"), want(&[(1, &["a", ""]), (2, &["b", "c"])]));
        assert_eq!(records("\n\n"), want(&[]));
    }

    #[test]
    fn an_unclosed_quote_costs_its_row_alone() {
        // To the end of the file, to a quote that is closed before text, and two behind each other.
        assert_eq!(
            records("1,\"a\n2,b\n3,c\n"),
            want(&[(1, &[]), (2, &["2", "b"]), (3, &["3", "c"])])
        );
        assert_eq!(
            records("1,\"a\n2,\"b\"\n3,\"c\nd\"\n5,e"),
            want(&[(1, &[]), (2, &["2", "b"]), (3, &["3", "c\nd"]), (5, &["5", "e"])])
        );
        assert_eq!(
            records("1,\"a\n2,\"b\n3,c\n\"4\",d\n"),
            want(&[(1, &[]), (2, &[]), (3, &["3", "c"]), (4, &["4", "d"])])
        );
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        assert!(CsvReader::new(endless, b',').advance().unwrap_err().what.contains("16 MiB"));
    }
}
