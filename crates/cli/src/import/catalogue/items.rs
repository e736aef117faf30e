//! Converts the items of a file to lines of JSON.

use super::fields::Field;
use crate::exit::Failure;
use crate::import::csv::dialect::CsvDialect;
use crate::import::csv::read_header;
use crate::import::csv::records::CsvRecords;
use crate::import::json_items::JsonItems;
use crate::import::rows::Input;
use crate::import::{Format, ImportArgs};
use crate::lines::Broken;
use crate::numbers::counted;
use crate::wire::push_string;

/// An item, or what is wrong with it, and the line that it begins on.
pub(super) struct Item {
    pub(super) line: u64,
    pub(super) json: Result<Vec<u8>, String>,
}

/// Items of an input, in its order.
pub(super) enum Items {
    Json(JsonItems<Input>),
    Csv { reader: Box<CsvRecords<Input>>, columns: usize, fields: Vec<Field>, row: u64 },
}

impl Items {
    /// A value a line, or an array of values.
    pub(super) fn ndjson(reader: Input) -> Items {
        Items::Json(JsonItems::new(reader))
    }

    /// As the options say.
    ///
    /// # Errors
    /// Usage, data.
    pub(super) fn of(
        args: &ImportArgs,
        format: Format,
        reader: Input,
        dialect: CsvDialect,
    ) -> Result<Items, Failure> {
        if format != Format::Csv {
            return Ok(Items::ndjson(reader));
        }
        let mut reader = Box::new(CsvRecords::new(reader, dialect));
        let header = read_header(&mut reader)?;
        let columns = header.len();
        let fields = Field::all(&args.catalogue.fields, &header)?;
        Ok(Items::Csv { reader, columns, fields, row: 0 })
    }

    /// The next item.
    ///
    /// # Errors
    /// What follows cannot be read at all.
    pub(super) fn next(&mut self) -> Result<Option<Item>, Broken> {
        let (reader, columns, fields, row) = match self {
            Items::Json(items) => {
                let item = items.next()?;
                return Ok(item.map(|(line, json)| Item { line, json: one_line(json) }));
            }
            Items::Csv { reader, columns, fields, row } => (reader, *columns, fields, row),
        };
        let Some(line) = reader.advance()? else { return Ok(None) };
        *row += 1;
        let json = match reader.fault() {
            Some(fault) => Err(fault.sentence().to_owned()),
            None if reader.len() != columns => {
                let cells = counted(reader.len() as u64, "cell", "cells");
                Err(format!("the row has {cells}, the header {columns}"))
            }
            None => json(reader, fields, *row),
        };
        Ok(Some(Item { line, json }))
    }
}

/// A value without the ends of lines that may stand between its parts.
fn one_line(json: &[u8]) -> Result<Vec<u8>, String> {
    if std::str::from_utf8(json).is_err() {
        return Err("is not UTF-8; convert the file first".to_owned());
    }
    // Within texts JSON allows no end of a line.
    let space = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    Ok(json.iter().map(space).collect())
}

fn json(reader: &CsvRecords<Input>, fields: &[Field], row: u64) -> Result<Vec<u8>, String> {
    if (0..reader.len()).any(|column| std::str::from_utf8(reader.cell(column)).is_err()) {
        return Err("is not UTF-8; convert the file first, e.g. with iconv".to_owned());
    }
    let cell = |column| std::str::from_utf8(reader.cell(column)).unwrap_or_default();
    let mut out = b"{".to_vec();
    for field in fields {
        let value = field.value(row, cell);
        let value = value.trim();
        if value.is_empty() {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        push_string(&mut out, field.name);
        out.push(b':');
        // A price stays text, so that it never becomes a binary fraction.
        if field.name == "stock" && value.bytes().all(|byte| byte.is_ascii_digit()) {
            let digits = value.trim_start_matches('0');
            out.extend_from_slice(if digits.is_empty() { b"0" } else { digits.as_bytes() });
        } else {
            push_string(&mut out, value);
        }
    }
    out.push(b'}');
    Ok(out)
}
