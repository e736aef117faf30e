//! Records of a CSV file, each with the line it begins on. `csv-core` splits them.
//!
//! Strict about quotes, which `csv-core` is not: an unclosed quote would otherwise swallow the rows
//! up to the next quote, silently. Only the row with the quote is invalid: reading continues with
//! the line after the one it began on.

use crate::import::csv::dialect::CsvDialect;
use crate::lines::{Broken, LineEnd, LineReader, MAX_LINE_BYTES};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use std::io::BufRead;

/// Most bytes one record may take: without it an unclosed quote would have the file in memory.
const MAX_RECORD_BYTES: usize = MAX_LINE_BYTES;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What can be wrong with the writing of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordFault {
    /// A quote is opened and never closed.
    Unclosed,
    /// Something other than a delimiter follows a closing quote: usually an earlier one was never
    /// closed.
    TextAfter,
    /// A quote opens after a space, and would be a part of the cell.
    SpaceBefore,
    /// A line feed in a file whose lines end with carriage returns, or the reverse, outside of
    /// quotes.
    OtherLineEnd,
    /// A byte 0, which no text has.
    Nul,
}

impl RecordFault {
    /// In words.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            RecordFault::Unclosed => {
                "a quote in this row is never closed; close it, or double it if it is part of the text"
            }
            RecordFault::TextAfter => {
                "text follows a closing quote; close the quote, or double it if it is part of the text"
            }
            RecordFault::SpaceBefore => {
                "a space stands before an opening quote; remove the space, or put the whole cell in quotes"
            }
            RecordFault::OtherLineEnd => {
                "a line end of another kind than that of the first line stands in this row, outside of quotes; \
                 write all line ends of the file alike, or put the cell in quotes"
            }
            RecordFault::Nul => {
                "the row holds a byte 0, which no text has; is the file damaged, or not UTF-8?"
            }
        }
    }
}

/// Reads records, one at a time.
pub(crate) struct CsvRecords<R> {
    lines: LineReader<R>,
    dialect: CsvDialect,
    parser: Reader,
    /// Lines to read again: those that a row with an unclosed quote had taken.
    again: Vec<u8>,
    again_at: usize,
    /// The record as it is in the file.
    raw: Vec<u8>,
    /// The text of all cells, and room.
    cells: Vec<u8>,
    /// The end of each cell in it, with spare capacity.
    ends: Vec<usize>,
    /// Number of cells of the record.
    count: usize,
    fault: Option<RecordFault>,
    first_line: u64,
    first_line_bytes: usize,
}

impl<R: BufRead> CsvRecords<R> {
    /// Records of a stream in this dialect, without the line `sep=;`.
    pub(crate) fn new(source: R, dialect: CsvDialect) -> CsvRecords<R> {
        let parser =
            ReaderBuilder::new().delimiter(dialect.delimiter).terminator(Terminator::CRLF).build();
        CsvRecords {
            lines: LineReader::ending(source, dialect.line_end),
            dialect,
            parser,
            again: Vec::new(),
            again_at: 0,
            raw: Vec::new(),
            cells: vec![0; 4 << 10],
            ends: vec![0; 64],
            count: 0,
            fault: None,
            first_line: 0,
            first_line_bytes: 0,
        }
    }

    /// Reads the next record and returns the line it begins on; `None` at the end. Empty lines are
    /// passed over. If it is written wrongly, [`fault`](Self::fault) says how, and it has no cells.
    pub(crate) fn advance(&mut self) -> Result<Option<u64>, Broken> {
        self.fault = None;
        self.count = 0;
        loop {
            self.raw.clear();
            if !self.read_line()? {
                return Ok(None);
            }
            let is_preamble = self.dialect.has_separator_line && self.lines.next_number() == 2;
            if !is_preamble && !is_line_end(&self.raw) {
                break;
            }
        }
        // Of files that were joined: it is part of no text.
        if self.raw.starts_with(BOM) {
            self.raw.drain(..BOM.len());
        }
        (self.first_line, self.first_line_bytes) = (self.lines.next_number() - 1, self.raw.len());
        self.fault = self.parse()?;
        if self.fault.is_some() {
            self.count = 0;
            self.give_back_lines();
        }
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

    /// The syntax error of the record.
    pub(crate) fn fault(&self) -> Option<RecordFault> {
        self.fault
    }

    /// Number of cells of the record.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// A cell of the record; empty where it has none.
    pub(crate) fn cell(&self, column: usize) -> &[u8] {
        if column >= self.count {
            return &[];
        }
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        &self.cells[start..self.ends[column]]
    }

    /// Bytes in all cells together.
    pub(crate) fn byte_len(&self) -> usize {
        self.ends[..self.count].last().copied().unwrap_or(0)
    }

    /// Adds a line to the record; says whether there was one.
    fn read_line(&mut self) -> Result<bool, Broken> {
        let end = self.dialect.line_end;
        let again = &self.again[self.again_at..];
        if !again.is_empty() {
            let bytes = again.iter().position(|&byte| byte == end).map_or(again.len(), |at| at + 1);
            self.raw.extend_from_slice(&again[..bytes]);
            self.again_at += bytes;
            self.lines.renumber(self.lines.next_number() + 1);
            return Ok(true);
        }
        let read = self.lines.read_into(&mut self.raw)?;
        if read == Some(LineEnd::Cut) {
            // So that a quote which is still open shows.
            self.raw.push(end);
        }
        Ok(read.is_some())
    }

    /// Splits the record into cells, and reads on where a quote is open.
    fn parse(&mut self) -> Result<Option<RecordFault>, Broken> {
        self.parser.reset();
        let (mut taken, mut text) = (0, 0);
        loop {
            let (result, read, wrote, ended) = self.parser.read_record(
                &self.raw[taken..],
                &mut self.cells[text..],
                &mut self.ends[self.count..],
            );
            taken += read;
            text += wrote;
            self.count += ended;
            match result {
                ReadRecordResult::OutputFull => self.cells.resize(self.cells.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::InputEmpty
                    if self.raw.len() < MAX_RECORD_BYTES && self.read_line()? => {}
                ReadRecordResult::InputEmpty => return Ok(Some(RecordFault::Unclosed)),
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        Ok(self.fault_of_writing(taken))
    }

    /// The error of a record whose cells end here.
    fn fault_of_writing(&self, taken: usize) -> Option<RecordFault> {
        if !is_line_end(&self.raw[taken..]) {
            return Some(RecordFault::OtherLineEnd);
        }
        if self.raw.contains(&0) {
            return Some(RecordFault::Nul);
        }
        if self.raw.contains(&b'"') { self.fault_of_quotes() } else { None }
    }

    /// Compares the record with how its cells are written: each as it is, or in quotes.
    fn fault_of_quotes(&self) -> Option<RecordFault> {
        let mut rest = self.raw.as_slice();
        for column in 0..self.count {
            let cell = self.cell(column);
            if rest.starts_with(b"\"") {
                let Some(after) = after_quoted(rest, cell) else {
                    return Some(RecordFault::TextAfter);
                };
                rest = after;
            } else {
                if cell.trim_ascii_start().starts_with(b"\"") {
                    return Some(RecordFault::SpaceBefore);
                }
                rest = rest.get(cell.len()..).unwrap_or_default();
            }
            if column + 1 < self.count {
                match rest.split_first() {
                    Some((&byte, after)) if byte == self.dialect.delimiter => rest = after,
                    _ => return Some(RecordFault::TextAfter),
                }
            }
        }
        (!is_line_end(rest)).then_some(RecordFault::TextAfter)
    }
}

/// What follows a cell in quotes; `None` if that is not how the cell is written.
fn after_quoted<'a>(raw: &'a [u8], cell: &[u8]) -> Option<&'a [u8]> {
    let mut rest = raw.strip_prefix(b"\"")?;
    for part in cell.split_inclusive(|&byte| byte == b'"') {
        rest = rest.strip_prefix(part)?;
        if part.ends_with(b"\"") {
            rest = rest.strip_prefix(b"\"")?;
        }
    }
    rest.strip_prefix(b"\"")
}

/// Whether nothing but line ends is left.
fn is_line_end(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Each record as its line and cells, or as its line alone if it is written wrongly.
    fn records(text: &str) -> Vec<(u64, Vec<String>)> {
        let dialect = CsvDialect { line_end: line_end(text), ..CsvDialect::default() };
        let source = io::BufReader::with_capacity(3, text.as_bytes());
        let mut reader = CsvRecords::new(source, dialect);
        let mut all = Vec::new();
        while let Some(line) = reader.advance().unwrap() {
            assert_eq!(reader.fault().is_some(), reader.len() == 0);
            let cell = |i| String::from_utf8(reader.cell(i).to_vec()).unwrap();
            all.push((line, (0..reader.len()).map(cell).collect()));
        }
        all
    }

    fn line_end(text: &str) -> u8 {
        if text.contains('\n') { b'\n' } else { b'\r' }
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
    fn lines_end_with_what_programs_write() {
        let all = want(&[(1, &["a", "b"]), (2, &["1", "x"]), (4, &["2", "y"])]);
        for end in ["\n", "\r\n", "\r", "\r\r\n"] {
            assert_eq!(records(&["a,b", "1,x", "", "2,y", ""].join(end)), all, "{end:?}");
            assert_eq!(records(&["a,b", "1,x", "", "2,y"].join(end)), all, "{end:?}");
        }
        // Within quotes line ends are text, even if they differ from the file's own.
        assert_eq!(records("a\r\"1\r2\"\r"), want(&[(1, &["a"]), (2, &["1\r2"])]));
        assert_eq!(
            records("a\r\n\"1\r\n2\"\r\n\"\r\"\n"),
            want(&[(1, &["a"]), (2, &["1\r\n2"]), (4, &["\r"])])
        );
        // Outside of them the other kind is no text.
        assert_eq!(
            records("a,b\n1,x\r2,y\n3,z\n"),
            want(&[(1, &["a", "b"]), (2, &[]), (3, &["3", "z"])])
        );
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
        assert_eq!(records("1,\"a\r2,b\r"), want(&[(1, &[]), (2, &["2", "b"])]));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_a_fault() {
        let fault = |text: &str| {
            let mut reader = CsvRecords::new(text.as_bytes(), CsvDialect::default());
            reader.advance().unwrap();
            reader.fault()
        };
        for (text, expected) in [
            ("\"b\"x,1\n", RecordFault::TextAfter),
            ("\"b\" ,1\n", RecordFault::TextAfter),
            ("\"a\"\"\"b\",1\n", RecordFault::TextAfter),
            ("1, \"Ann, Bob\"\n", RecordFault::SpaceBefore),
            ("a\0,1\n", RecordFault::Nul),
            ("\"a\0\",1\n", RecordFault::Nul),
            ("a\rb,1\n", RecordFault::OtherLineEnd),
            ("1,\"", RecordFault::Unclosed),
        ] {
            assert_eq!(fault(text), Some(expected), "{text:?}");
        }
        for text in ["\"a\"\"\",1\n", "\"\",\"\"\n", "5\" pipe,1\n", "\"\"\"\"\n", "a,\"b\""] {
            assert_eq!(fault(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_mark_of_a_joined_file_is_no_text() {
        assert_eq!(records("a,b\n\u{feff}c,d\n"), want(&[(1, &["a", "b"]), (2, &["c", "d"])]));
    }

    #[test]
    fn many_and_long_cells_have_room() {
        let many = vec!["x".repeat(100); 500];
        let all = records(&format!("{}\n", many.join(",")));
        assert_eq!(all, [(1, many)]);
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let broken = CsvRecords::new(endless, CsvDialect::default()).advance().unwrap_err();
        assert!(broken.what.contains("16 MiB"));
    }
}
