//! Records of a CSV file, each with the line it begins on.
//!
//! Strict about quotes: what opens one and never closes it would otherwise swallow the rows behind
//! it up to the next quote, silently. Such a row is at fault alone: reading goes on with the line
//! after the one it began on.

use crate::import::json_items::{Broken, reading};
#[cfg(test)]
use std::io;
use std::io::{BufRead, Read as _};
use wellspring_types::limits::MAX_REQUEST_BYTES;

/// Most bytes one record may take: without it an unclosed quote would have the file in memory.
const MAX_RECORD_BYTES: usize = MAX_REQUEST_BYTES;

/// What can be wrong with the quotes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuoteFault {
    /// A quote is opened and never closed.
    Unclosed,
    /// Something other than a delimiter stands behind a closing quote: usually an earlier one was
    /// never closed.
    TextBehind,
}

impl QuoteFault {
    /// In words.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            QuoteFault::Unclosed => {
                "a quote is opened in this row and never closed; close it, or write it twice if it \
                 belongs to the text"
            }
            QuoteFault::TextBehind => {
                "text stands behind a closing quote; is a quote in this row not closed? A quote \
                 that belongs to the text is written twice"
            }
        }
    }
}

/// Reads records, one at a time.
pub(crate) struct CsvReader<R> {
    source: R,
    delimiter: u8,
    /// Lines read again: those that a row with an unclosed quote had taken.
    again: Vec<u8>,
    again_at: usize,
    line: u64,
    /// The record as it stands in the file.
    raw: Vec<u8>,
    cells: Vec<u8>,
    ends: Vec<usize>,
    fault: Option<QuoteFault>,
    first_line: u64,
    first_line_bytes: usize,
}

/// What parsing as far as the bytes go came to.
enum Parsed {
    Whole,
    /// A quoted cell goes on behind what has been read.
    Open,
    Fault(QuoteFault),
}

impl<R: BufRead> CsvReader<R> {
    /// Records of a stream.
    pub(crate) fn new(source: R, delimiter: u8) -> CsvReader<R> {
        CsvReader {
            source,
            delimiter,
            again: Vec::new(),
            again_at: 0,
            line: 1,
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
        (self.first_line, self.first_line_bytes) = (self.line - 1, self.raw.len());
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

    /// Has the lines of the record behind its first read again, each on its own: there is something
    /// wrong with the record, and it shall cost no more than one row.
    pub(crate) fn give_back_lines(&mut self) {
        if self.raw.len() == self.first_line_bytes {
            return;
        }
        let mut again = self.raw.split_off(self.first_line_bytes);
        again.extend_from_slice(&self.again[self.again_at..]);
        (self.again, self.again_at) = (again, 0);
        self.line = self.first_line + 1;
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
        let before = self.raw.len();
        let again = &self.again[self.again_at..];
        if !again.is_empty() {
            let end = again.iter().position(|&byte| byte == b'\n').map_or(again.len(), |i| i + 1);
            self.raw.extend_from_slice(&again[..end]);
            self.again_at += end;
        }
        if self.raw.last() != Some(&b'\n') || self.raw.len() == before {
            let mut limited = self.source.by_ref().take(MAX_RECORD_BYTES as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.raw);
            read.map_err(|error| self.broken(reading(&error)))?;
        }
        let read = self.raw.len() - before;
        if read > MAX_RECORD_BYTES {
            return Err(
                self.broken(format!("the line is longer than {} MiB", MAX_RECORD_BYTES >> 20))
            );
        }
        self.line += u64::from(read > 0);
        Ok(read > 0)
    }

    /// Goes on at `at`, inside a quoted cell if `quoted`.
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
                _ => return Parsed::Fault(QuoteFault::TextBehind),
            }
        }
    }

    fn broken(&self, what: String) -> Broken {
        Broken { line: self.line, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
