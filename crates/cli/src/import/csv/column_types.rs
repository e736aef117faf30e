//! One type for each column of a CSV file.
//!
//! A column is a number if every cell of the whole file that is not empty is written as JSON would
//! print that number back, and otherwise text: so identifiers stay as they are. Options decide
//! otherwise.

use super::header::{check_names, read_header};
use super::number::{is_json_number, is_printed_number};
use crate::exit::Failure;
use crate::import::csv::records::CsvRecords;
use crate::import::csv::rows::{CsvMapping, CsvRows, column_of};
use crate::lines::Broken;
use crate::numbers::grouped;
use crate::wire::excerpt;
use std::io::BufRead;

/// The word of `--text` for every column.
const ALL: &str = "all";

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// No cell of it holds anything.
    Empty,
    /// Each cell is a number as JSON would print it.
    Number,
    Text,
    /// Numbers of any form that JSON has, by `--number`.
    DeclaredNumber,
    /// Text, by `--text`.
    DeclaredText,
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
    /// The first cell that is no number as JSON would print it: its line, and how it begins.
    first_text: Option<(u64, String)>,
    /// Whether every cell is a number of any form that JSON has, …
    all_numbers: bool,
    /// … or one of them is.
    some_numbers: bool,
}

impl Column {
    /// The type in words, and why.
    pub(crate) fn told(&self) -> String {
        let Column { name, kind, first_text, .. } = self;
        let because = match (kind, first_text) {
            (ColumnType::Text, Some((line, cell))) => {
                format!(", as line {} has {cell:?}", grouped(*line))
            }
            _ => String::new(),
        };
        let kind = match kind {
            ColumnType::Empty => "empty",
            ColumnType::Number | ColumnType::DeclaredNumber => "number",
            ColumnType::Text | ColumnType::DeclaredText => "text",
        };
        format!("{name}: {kind}{because}")
    }

    /// Whether all cells are numbers to JSON, but not all as it prints them: money, for example.
    pub(crate) fn is_text_of_numbers(&self) -> bool {
        self.kind == ColumnType::Text && self.all_numbers
    }

    /// Whether a cell says something new of the column.
    fn is_changed_by(&self, cell: &[u8]) -> bool {
        let text = || std::str::from_utf8(cell).unwrap_or_default();
        match self.kind {
            ColumnType::Empty => true,
            ColumnType::Number => !is_printed_number(text()),
            ColumnType::Text if self.some_numbers == self.all_numbers => {
                is_json_number(text()) != self.all_numbers
            }
            ColumnType::Text => false,
            ColumnType::DeclaredNumber | ColumnType::DeclaredText => false,
        }
    }

    fn see(&mut self, line: u64, cell: &[u8]) {
        if !self.is_changed_by(cell) {
            return;
        }
        let text = std::str::from_utf8(cell).unwrap_or_default();
        if self.kind != ColumnType::Text {
            if is_printed_number(text) {
                (self.kind, self.some_numbers) = (ColumnType::Number, true);
                return;
            }
            self.kind = ColumnType::Text;
            self.first_text = Some((line, excerpt(&String::from_utf8_lossy(cell))));
        }
        let is_number = is_json_number(text);
        self.all_numbers &= is_number;
        self.some_numbers |= is_number;
    }
}

/// The types of all columns, as a letter each.
pub(crate) fn letters(columns: &[Column]) -> String {
    let letter = |column: &Column| match column.kind {
        ColumnType::Empty => 'e',
        ColumnType::Number | ColumnType::DeclaredNumber => 'n',
        ColumnType::Text | ColumnType::DeclaredText => 't',
    };
    columns.iter().map(letter).collect()
}

/// The column whose cells would be other values under the earlier types, if there is one. A column
/// that was empty has the same values under any. Before types were noted each cell had its own.
pub(crate) fn first_changed<'a>(columns: &'a [Column], earlier: &str) -> Option<&'a Column> {
    if earlier.is_empty() {
        return columns.iter().find(|c| c.kind == ColumnType::Text && c.some_numbers);
    }
    let now = letters(columns);
    let changed =
        earlier.chars().zip(now.chars()).position(|(then, now)| then != now && then != 'e');
    changed.map(|at| &columns[at])
}

/// Reads the header, and gives columns the types that options name; the others are
/// [empty](ColumnType::Empty) as yet.
///
/// # Errors
/// Data, if the header is invalid; usage, if an option names a missing column.
pub(super) fn declared<R: BufRead>(
    records: &mut CsvRecords<R>,
    mapping: &CsvMapping,
) -> Result<Vec<Column>, Failure> {
    let mut header = read_header(records)?;
    check_names(&mut header)?;
    let open =
        if are_in_the_file(&mapping.text) { ColumnType::Empty } else { ColumnType::DeclaredText };
    let mut kinds = vec![open; header.len()];
    for name in mapping.text.iter().filter(|name| *name != ALL) {
        kinds[column_of(&header, name)?] = ColumnType::DeclaredText;
    }
    for name in &mapping.numbers {
        let column = column_of(&header, name)?;
        if kinds[column] == ColumnType::DeclaredText && mapping.text.contains(name) {
            let message = format!("column {name} cannot be of --text and of --number");
            return Err(Failure::usage(message));
        }
        kinds[column] = ColumnType::DeclaredNumber;
    }
    let column = |(name, kind)| Column {
        name,
        kind,
        first_text: None,
        all_numbers: kind == ColumnType::Empty,
        some_numbers: false,
    };
    Ok(header.into_iter().zip(kinds).map(column).collect())
}

/// Whether the file must be read to its end to know the types, given the values of `--text`.
pub(super) fn are_in_the_file(text: &[String]) -> bool {
    !text.iter().any(|name| name == ALL)
}

/// Reads a file to its end, and gives each column its type. Rows that are not valid have no say.
///
/// # Errors
/// Data, if the header is not valid or the file cannot be read; usage, if an option names a column
/// that is not there.
pub(super) fn found<R: BufRead>(source: R, mapping: &CsvMapping) -> Result<Vec<Column>, Failure> {
    let (mut rows, mut columns) = CsvRows::untyped(source, mapping)?;
    let broken = |broken: Broken| Failure::data(format!("line {}: {}", broken.line, broken.what));
    while let Some(line) = rows.advance().map_err(broken)? {
        // Few rows change anything, so few are judged here.
        let matters = rows.cells().any(|(at, cell)| columns[at].is_changed_by(cell));
        if matters && rows.is_valid() {
            rows.cells().for_each(|(at, cell)| columns[at].see(line, cell));
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping() -> CsvMapping {
        CsvMapping { fixed_type: Some("T".into()), ..CsvMapping::default() }
    }

    fn types(text: &str, mapping: &CsvMapping) -> Vec<String> {
        found(text.as_bytes(), mapping).unwrap().iter().map(Column::told).collect()
    }

    #[test]
    fn a_column_is_a_number_if_every_cell_is_printed_as_one() {
        let text = "id,hash,version,zip,big,flag,price,none\n\
                    1,1e5,1.10,007,9007199254740993,TRUE,1.5,\n\
                    2,abc1234,1.2,12345,1,FALSE,2,\n\
                    ,12345,2,1,2,,NA,NA\n";
        let mut mapping = mapping();
        mapping.nulls.push("NA".into());
        assert_eq!(
            types(text, &mapping),
            [
                "id: number",
                "hash: text, as line 2 has \"1e5\"",
                "version: text, as line 2 has \"1.10\"",
                "zip: text, as line 2 has \"007\"",
                "big: text, as line 2 has \"9007199254740993\"",
                "flag: text, as line 2 has \"TRUE\"",
                "price: number",
                "none: empty",
            ]
        );
        let columns = found(text.as_bytes(), &mapping).unwrap();
        assert_eq!(letters(&columns), "ntttttne");
        let of_numbers: Vec<&str> = columns
            .iter()
            .filter(|column| column.is_text_of_numbers())
            .map(|column| column.name.as_str())
            .collect();
        assert_eq!(of_numbers, ["version", "big"]);
    }

    #[test]
    fn the_last_row_decides_as_the_first() {
        let long = format!("n\n{}x\n", "1\n".repeat(100_000));
        assert_eq!(types(&long, &mapping()), ["n: text, as line 100,002 has \"x\""]);
    }

    #[test]
    fn options_decide_otherwise() {
        let text = "a,b,c\n1,1.10,1\n";
        let both = CsvMapping { text: vec!["a".into()], numbers: vec!["b".into()], ..mapping() };
        assert_eq!(types(text, &both), ["a: text", "b: number", "c: number"]);
        let all = CsvMapping { text: vec!["all".into()], numbers: vec!["b".into()], ..mapping() };
        assert_eq!(types(text, &all), ["a: text", "b: number", "c: text"]);
        let none = CsvMapping { text: vec!["d".into()], ..mapping() };
        assert!(found(text.as_bytes(), &none).unwrap_err().message.contains("no column d"));
    }

    #[test]
    fn a_column_that_was_empty_may_become_anything() {
        let columns = |text: &str| found(text.as_bytes(), &mapping()).unwrap();
        let grown = columns("a,b,c\n1,,x\n2,y,\n");
        assert_eq!(first_changed(&grown, "net"), None);
        assert_eq!(first_changed(&columns("a\n1\nx\n"), "n").map(|c| c.name.as_str()), Some("a"));
        assert_eq!(first_changed(&grown, ""), None, "of a note without types");
        let mixed = columns("a,b\nx,x\ny,1e5\n");
        assert_eq!(first_changed(&mixed, "").map(|c| c.name.as_str()), Some("b"));
    }
}
