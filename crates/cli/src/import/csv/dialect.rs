//! Detects the delimiter and the quoting of a CSV file from its first rows.

use crate::exit::Failure;
use crate::import::csv::records::CsvRecords;

/// Delimiters in the order of preference.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Rows that are looked at.
const MAX_ROWS: usize = 1_000;

/// The dialect of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CsvDialect {
    /// The byte between cells.
    pub(crate) delimiter: u8,
    /// The byte at the end of lines: a line feed, or a carriage return where no line feed follows.
    pub(crate) line_end: u8,
    /// Whether the first line is `sep=;`, which Excel writes and reads.
    pub(crate) has_separator_line: bool,
}

impl Default for CsvDialect {
    /// Commas and line feeds.
    fn default() -> CsvDialect {
        CsvDialect { delimiter: b',', line_end: b'\n', has_separator_line: false }
    }
}

/// The first rows as a candidate splits them.
struct Split {
    delimiter: u8,
    rows: usize,
    /// Rows with as many cells as the header.
    fitting: usize,
}

impl CsvDialect {
    /// The dialect of a file that begins like this; `is_whole` says that nothing follows. The
    /// delimiter is `given`, or else that of a line `sep=`, or else the one that splits the header
    /// and fits the rows; `usual` if none splits the header.
    ///
    /// # Errors
    /// Usage, if two delimiters fit equally.
    pub(crate) fn of(
        start: &[u8],
        is_whole: bool,
        given: Option<u8>,
        usual: u8,
    ) -> Result<CsvDialect, Failure> {
        let line_end = line_end(start);
        let separator = separator_line(start);
        let has_separator_line = separator.is_some();
        let mut dialect = CsvDialect { delimiter: usual, line_end, has_separator_line };
        dialect.delimiter = match given.or(separator) {
            Some(delimiter) => delimiter,
            None => dialect.guessed(start, is_whole)?,
        };
        Ok(dialect)
    }

    /// The delimiter that fits.
    fn guessed(self, start: &[u8], is_whole: bool) -> Result<u8, Failure> {
        let usual = self.delimiter;
        let split = |delimiter| CsvDialect { delimiter, ..self }.split(start, is_whole);
        let splits: Vec<Split> = DELIMITERS.into_iter().filter_map(split).collect();
        let part = |split: &Split| (split.fitting * 1_000).checked_div(split.rows).unwrap_or(1_000);
        let best = splits.iter().map(part).max().unwrap_or_default();
        let fitting: Vec<u8> =
            splits.iter().filter(|s| part(s) == best).map(|s| s.delimiter).collect();
        let has_rows = splits.iter().any(|split| split.rows > 0);
        match fitting[..] {
            [] => Ok(usual),
            [one] => Ok(one),
            _ if !has_rows && fitting.contains(&usual) => Ok(usual),
            [one, another, ..] => Err(Failure::usage(format!(
                "cells may be separated by {} or by {}: both fit the first rows; say which, with \
                 --delimiter",
                name(one),
                name(another)
            ))),
        }
    }

    /// Splits the first rows; `None` if the header stays one cell.
    fn split(self, start: &[u8], is_whole: bool) -> Option<Split> {
        let mut records = CsvRecords::new(start, self);
        records.advance().ok()??;
        let columns = records.len();
        let mut split = Split { delimiter: self.delimiter, rows: 0, fitting: 0 };
        let mut last_fits = false;
        while split.rows < MAX_ROWS && records.advance().ok()?.is_some() {
            last_fits = records.len() == columns;
            split.rows += 1;
            split.fitting += usize::from(last_fits);
        }
        if !is_whole && split.rows > 0 && split.rows < MAX_ROWS {
            // It may be cut off.
            split.rows -= 1;
            split.fitting -= usize::from(last_fits);
        }
        (columns > 1).then_some(split)
    }

    /// The delimiter in words.
    pub(crate) fn delimiter_name(self) -> String {
        name(self.delimiter)
    }
}

fn name(delimiter: u8) -> String {
    match delimiter {
        b',' => "commas".to_owned(),
        b';' => "semicolons".to_owned(),
        b'\t' => "tabs".to_owned(),
        b'|' => "vertical bars".to_owned(),
        other => format!("the character {:?}", char::from(other)),
    }
}

/// The end of the first line outside of quotes.
fn line_end(start: &[u8]) -> u8 {
    let mut quoted = false;
    for (at, byte) in start.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => return b'\n',
            b'\r' if !quoted => {
                let next = start[at..].iter().find(|byte| **byte != b'\r');
                return if next == Some(&b'\n') { b'\n' } else { b'\r' };
            }
            _ => {}
        }
    }
    b'\n'
}

/// The delimiter that a first line `sep=;` names.
fn separator_line(start: &[u8]) -> Option<u8> {
    let end = start.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
    let line = &start[..end];
    let line = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")).unwrap_or(line);
    match line {
        [s, e, p, b'=', delimiter]
            if [s, e, p].map(u8::to_ascii_lowercase) == *b"sep" && is_delimiter(*delimiter) =>
        {
            Some(*delimiter)
        }
        _ => None,
    }
}

/// Whether a byte may stand between cells.
pub(crate) fn is_delimiter(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<CsvDialect, Failure> {
        CsvDialect::of(text.as_bytes(), true, None, b',')
    }

    fn delimiter(text: &str) -> char {
        char::from(of(text).unwrap().delimiter)
    }

    #[test]
    fn the_delimiter_is_what_splits_the_header_and_fits_the_rows() {
        for (text, expected) in [
            ("id;name\n1;Ann\n", ';'),
            ("id\tname\r\n1\tAnn\r\n", '\t'),
            ("id|name\r1|Ann\r", '|'),
            ("id,name\n1,Ann\n", ','),
            ("id;name;price, EUR\n1;Ann;1,5\n2;Bob;2\n", ';'),
            ("id;price\n1;1,5\n2;2,5\n", ';'),
            ("id,note\n1,a; b\n2,c; d\n", ','),
            ("\"a,b,c\";\"d\"\n1;2\n", ';'),
            ("\"a;b\",\"c\"\n\"1;2\",\"x\ny;z\"\n", ','),
            ("name\nAnn, B\n", ','),
            ("a;b", ';'),
            ("", ','),
            ("a,b;c\n1,2\n3,4\n", ','),
            ("a,b;c\n1,2;3\n4,5;6,7\n", ';'),
        ] {
            assert_eq!(delimiter(text), expected, "{text:?}");
        }
    }

    #[test]
    fn two_delimiters_that_fit_are_asked_for() {
        let told = of("id;price, EUR\n1;1,5\n2;2,5\n").unwrap_err().message;
        assert!(told.contains("commas or by semicolons") && told.contains("--delimiter"), "{told}");
        let given = CsvDialect::of(b"id;price, EUR\n1;1,5\n", true, Some(b';'), b',').unwrap();
        assert_eq!(given.delimiter, b';');
    }

    #[test]
    fn a_row_that_is_cut_off_says_nothing() {
        let cut = CsvDialect::of(b"a,b;c,d\n1,2,3\n4;5", false, None, b',').unwrap();
        assert_eq!(cut.delimiter, b',');
    }

    #[test]
    fn a_separator_line_names_the_delimiter() {
        for text in ["sep=;\nid;name\n", "SEP=;\r\nid;name\r\n", "\"sep=;\"\rid;name\r"] {
            let dialect = of(text).unwrap();
            assert!(dialect.has_separator_line && dialect.delimiter == b';', "{text:?}");
            let mut records = CsvRecords::new(text.as_bytes(), dialect);
            assert_eq!(records.advance().unwrap(), Some(2));
            assert_eq!((records.len(), records.cell(1)), (2, &b"name"[..]));
        }
        assert!(!of("sep=,x\n").unwrap().has_separator_line);
        assert!(!of("separator\n").unwrap().has_separator_line);
    }

    #[test]
    fn lines_end_as_the_first_does() {
        for (text, expected) in [
            ("a,b\n1\r2\n", b'\n'),
            ("a,b\r\n", b'\n'),
            ("a,b\r\r\n1,2\r\r\n", b'\n'),
            ("a,b\r1,2\r", b'\r'),
            ("\"a\rb\",c\n1,2\n", b'\n'),
            ("\"a\nb\",c\r1,2\r", b'\r'),
            ("a,b\r", b'\r'),
            ("a,b", b'\n'),
        ] {
            assert_eq!(line_end(text.as_bytes()), expected, "{text:?}");
        }
    }
}
