//! Records of a CSV file, each with the line it begins on. Built on csv-core
//! rather than csv because the latter's line numbers are off in files with
//! Windows line ends or empty lines, and a wrong line number is worse than none.

use crate::cli::import::json_items::{Broken, reading};
use csv_core::ReadRecordResult;
use std::io::{self, BufRead};
use wellspring_types::limits::MAX_REQUEST_BYTES;

/// Most bytes one record may take: without it an unclosed quote would swallow the file.
const MAX_RECORD_BYTES: usize = MAX_REQUEST_BYTES;

/// Reads records, one at a time.
pub(crate) struct CsvReader<R> {
    source: R,
    core: csv_core::Reader,
    line: u64,
    cells: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
}

impl<R: BufRead> CsvReader<R> {
    /// Records of a stream.
    pub(crate) fn new(source: R, delimiter: u8) -> CsvReader<R> {
        CsvReader {
            source,
            core: csv_core::ReaderBuilder::new().delimiter(delimiter).build(),
            line: 1,
            cells: vec![0; 1024],
            ends: vec![0; 64],
            count: 0,
        }
    }

    /// Reads the next record and returns the line it begins on; `None` at the
    /// end. Empty lines are passed over.
    pub(crate) fn advance(&mut self) -> Result<Option<u64>, Broken> {
        self.pass_line_ends()?;
        let first_line = self.line;
        let (mut used_cells, mut used_ends) = (0, 0);
        let mut quotes = 0;
        loop {
            let input = match self.source.fill_buf() {
                Ok(input) => input,
                Err(error) => return Err(self.broken(&error)),
            };
            let (result, taken, wrote, ended) = self.core.read_record(
                input,
                &mut self.cells[used_cells..],
                &mut self.ends[used_ends..],
            );
            self.line += input[..taken].iter().filter(|&&byte| byte == b'\n').count() as u64;
            quotes += input[..taken].iter().filter(|&&byte| byte == b'"').count();
            let at_end = input.is_empty();
            self.source.consume(taken);
            used_cells += wrote;
            used_ends += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.cells.len() >= MAX_RECORD_BYTES => {
                    let limit = MAX_RECORD_BYTES >> 20;
                    let what =
                        format!("the row is longer than {limit} MiB; is a quote not closed?");
                    return Err(Broken { line: first_line, what });
                }
                ReadRecordResult::OutputFull => self.cells.resize(self.cells.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                // Quotes come in pairs, but for those inside a cell that has none around it,
                // and such a cell does not run over lines.
                ReadRecordResult::Record if at_end && quotes % 2 == 1 && self.line > first_line => {
                    let what = "a quote is opened in this row and never closed".to_owned();
                    return Err(Broken { line: first_line, what });
                }
                ReadRecordResult::Record => {
                    self.count = used_ends;
                    return Ok(Some(first_line));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// How many cells the record has.
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

    fn pass_line_ends(&mut self) -> Result<(), Broken> {
        loop {
            let byte = match self.source.fill_buf() {
                Ok(input) => input.first().copied(),
                Err(error) => return Err(self.broken(&error)),
            };
            match byte {
                Some(b'\n') => self.line += 1,
                Some(b'\r') => {}
                _ => return Ok(()),
            }
            self.source.consume(1);
        }
    }

    fn broken(&self, error: &io::Error) -> Broken {
        Broken { line: self.line, what: reading(error) }
    }
}
