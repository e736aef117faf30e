//! The first record of a CSV file: names of columns.

use crate::exit::Failure;
use crate::import::csv::records::CsvRecords;
use std::io::BufRead;

/// Reads the names of the columns, as they are written.
///
/// # Errors
/// Data, if there is no header or it cannot be read.
pub(crate) fn read_header<R: BufRead>(records: &mut CsvRecords<R>) -> Result<Vec<String>, Failure> {
    let found = records
        .advance()
        .map_err(|broken| Failure::data(format!("the header: {}", broken.what)))?;
    let Some(line) = found else {
        return Err(Failure::data(
            "the file has no line with text; a CSV file begins with a line of column names",
        ));
    };
    if let Some(fault) = records.fault() {
        return Err(Failure::data(format!("line {line}, the header: {}", fault.sentence())));
    }
    let name = |column| std::str::from_utf8(records.cell(column)).map(str::to_owned);
    (0..records.len()).map(name).collect::<Result<_, _>>().map_err(|_| {
        Failure::data(format!(
            "line {line}, the header: is not UTF-8; convert the file first, e.g. with iconv"
        ))
    })
}

/// Gives a first column without a name, as R and pandas write it, the name `column1`.
///
/// # Errors
/// Data, if another column has no name, or two have the same.
pub(super) fn check_names(header: &mut [String]) -> Result<(), Failure> {
    let fault = |what: String| Err(Failure::data(format!("the header: {what}")));
    if header.len() > 1 && header[0].is_empty() {
        header[0] = FIRST_COLUMN.to_owned();
    }
    for (at, name) in header.iter().enumerate() {
        let number = at + 1;
        if name.trim().is_empty() {
            return fault(format!(
                "column {number} has no name; name it in the file, or remove the column"
            ));
        }
        if let Some(first) = header[..at].iter().position(|earlier| earlier == name) {
            let first = first + 1;
            return fault(format!(
                "column {name} appears twice, as column {first} and {number}; rename one in the file"
            ));
        }
    }
    Ok(())
}

/// Name of a first column that has none.
pub(super) const FIRST_COLUMN: &str = "column1";
