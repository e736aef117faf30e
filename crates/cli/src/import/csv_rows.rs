//! Rows of a CSV file as events: the row is the payload, chosen columns are
//! type, tags and time.

use crate::exit::Failure;
use crate::import::csv_reader::CsvReader;
use crate::import::imported_event::ImportedEvent;
use crate::import::rows::Numbered;
use crate::lines::Broken;
use crate::numbers::counted;
use crate::wire::{Fault, fold_tags, push_string};
use std::io::BufRead;
use wellspring_types::{DataKind, Event};

/// The columns that `export --format csv` writes, and that an import refuses without a mapping.
pub(crate) const EXPORT_COLUMNS: [&str; 8] =
    ["position", "recorded_at", "type", "tags", "id", "metadata", "data", "data_base64"];

/// What the columns mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CsvMapping {
    /// The type of every event, …
    pub(crate) fixed_type: Option<String>,
    /// … or the column that holds it.
    pub(crate) type_column: Option<String>,
    /// `column` or `key=column`.
    pub(crate) tags: Vec<String>,
    /// Column that goes into metadata as `time` too.
    pub(crate) time: Option<String>,
    /// Cells with this text count as empty.
    pub(crate) nulls: Vec<String>,
    /// The character between cells.
    pub(crate) delimiter: u8,
}

enum TypeFrom {
    Fixed(String),
    Column(usize),
}

/// Reads rows.
pub(crate) struct CsvRows<R> {
    reader: CsvReader<R>,
    header: Vec<String>,
    /// The header's names as JSON, each with the colon that follows it.
    names: Vec<Vec<u8>>,
    type_from: TypeFrom,
    tags: Vec<(String, usize)>,
    time: Option<usize>,
    nulls: Vec<Vec<u8>>,
    /// Repeated tags that were dropped.
    pub(crate) folded: u64,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header and looks up the mapping's columns in it.
    ///
    /// # Errors
    /// Data, if the header is not valid; usage, if it does not fit the mapping.
    pub(crate) fn new(source: R, mapping: &CsvMapping) -> Result<CsvRows<R>, Failure> {
        let mut reader = CsvReader::new(source, mapping.delimiter);
        let found = reader
            .advance()
            .map_err(|broken| Failure::data(format!("the header: {}", broken.what)))?;
        if let Some(fault) = reader.fault() {
            let message = format!(
                "line {}, the header: {}; if these are JSON lines, use --format ndjson",
                found.unwrap_or(1),
                fault.sentence()
            );
            return Err(Failure::data(message));
        }
        let cells = if found.is_some() { reader.len() } else { 0 };
        let name = |column| std::str::from_utf8(reader.cell(column)).map(str::to_owned);
        let header: Vec<String> = (0..cells).map(name).collect::<Result<_, _>>().map_err(|_| {
            Failure::data(
                "line 1, the header: is not UTF-8; convert the file first, e.g. with iconv",
            )
        })?;
        if header.is_empty() {
            return Err(Failure::data(
                "the file is empty; a CSV file begins with a line of column names",
            ));
        }
        for (i, name) in header.iter().enumerate() {
            if name.is_empty() {
                let message = format!("line 1, the header: column {} has no name", i + 1);
                return Err(Failure::data(message));
            }
            if header[..i].contains(name) {
                let message = format!("line 1, the header: column {name} appears twice");
                return Err(Failure::data(message));
            }
        }
        if header == EXPORT_COLUMNS && mapping.fixed_type.is_none() && mapping.type_column.is_none()
        {
            return Err(Failure::usage(
                "this CSV was written by wellspring export, and is one-way: its cells do not hold \
                 events as they were. Export as NDJSON or CloudEvents to import them; or add \
                 --type-column type (and --tag COLUMN), and each row becomes an event whose data is \
                 the row",
            ));
        }
        let column = |name: &str| {
            header.iter().position(|known| known == name).ok_or_else(|| {
                Failure::usage(format!(
                    "there is no column {name}; the header has: {}",
                    header.join(", ")
                ))
            })
        };
        if let Some(fault) = reader.fault() {
            return Err(Failure::data(format!("line 1, the header: {}", fault.sentence())));
        }
        let type_from = match (&mapping.fixed_type, &mapping.type_column) {
            (_, Some(name)) => TypeFrom::Column(column(name)?),
            (Some(text), None) => TypeFrom::Fixed(text.clone()),
            (None, None) => {
                return Err(Failure::usage("CSV needs --type NAME or --type-column COLUMN"));
            }
        };
        let tag = |given: &String| {
            // A column's name may hold an equals sign itself.
            let (key, name) = match given.split_once('=') {
                Some((key, name)) if !header.contains(given) => (key, name),
                _ => (given.as_str(), given.as_str()),
            };
            Ok::<_, Failure>((key.to_owned(), column(name)?))
        };
        let tags = mapping.tags.iter().map(tag).collect::<Result<_, _>>()?;
        let time = mapping.time.as_deref().map(column).transpose()?;
        let json_name = |name: &String| {
            let mut json = Vec::new();
            push_string(&mut json, name);
            json.push(b':');
            json
        };
        Ok(CsvRows {
            names: header.iter().map(json_name).collect(),
            nulls: mapping.nulls.iter().map(|text| text.clone().into_bytes()).collect(),
            reader,
            header,
            type_from,
            tags,
            time,
            folded: 0,
        })
    }

    /// The next row's event and the line it begins on; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Numbered>, Broken> {
        let Some(line) = self.reader.advance()? else { return Ok(None) };
        if let Some(fault) = self.reader.fault() {
            return Ok(Some((line, Err(Fault::of("", fault.sentence())))));
        }
        let (cells, columns) = (self.reader.len(), self.header.len());
        if cells != columns {
            self.reader.give_back_lines();
            let cells = counted(cells as u64, "cell", "cells");
            let what = format!("the row has {cells}, the header {columns}");
            return Ok(Some((line, Err(Fault::of("", what)))));
        }
        let event = self.event();
        Ok(Some((line, event.map(ImportedEvent::from))))
    }

    fn event(&mut self) -> Result<Event, Fault> {
        let event_type = match &self.type_from {
            TypeFrom::Fixed(text) => text.clone(),
            TypeFrom::Column(column) => self.cell(*column)?.unwrap_or_default().to_owned(),
        };
        let mut tags: Vec<String> = Vec::with_capacity(self.tags.len());
        for (key, column) in &self.tags {
            let Some(value) = self.cell(*column)? else { continue };
            // Two columns under one key may agree; an event's tags are a set.
            tags.push(format!("{key}:{value}"));
        }
        let folded = fold_tags(&mut tags);
        let time = self.time.map(|column| self.cell(column)).transpose()?.flatten();
        let metadata = time.map(|time| ("time".to_owned(), time.to_owned()));
        let event = Event {
            event_type,
            tags,
            data: self.data()?,
            kind: DataKind::Json,
            id: None,
            metadata: metadata.into_iter().collect(),
        };
        event.as_ref().check().map_err(|fault| self.name_columns(fault.into()))?;
        self.folded += folded;
        Ok(event)
    }

    /// The row as a JSON object, columns in the file's order.
    fn data(&self) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::with_capacity(self.reader.byte_len() * 2 + 16 * self.names.len());
        out.push(b'{');
        for (column, name) in self.names.iter().enumerate() {
            if column > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            match self.cell(column)? {
                None => out.extend_from_slice(b"null"),
                Some(text) if is_json_number(text) => out.extend_from_slice(text.as_bytes()),
                Some(text) => push_string(&mut out, text),
            }
        }
        out.push(b'}');
        Ok(out)
    }

    /// A cell's text; `None` if it is empty or one of the null texts.
    fn cell(&self, column: usize) -> Result<Option<&str>, Fault> {
        let bytes = self.reader.cell(column);
        if bytes.is_empty() || self.nulls.iter().any(|null| null == bytes) {
            return Ok(None);
        }
        std::str::from_utf8(bytes).map(Some).map_err(|_| {
            Fault::of(&self.header[column], "is not UTF-8; convert the file first, e.g. with iconv")
        })
    }

    /// Names columns where the check names parts of an event.
    fn name_columns(&self, fault: Fault) -> Fault {
        match &self.type_from {
            TypeFrom::Column(column) if fault.field == "type" => {
                Fault::of(format!("{} (the type)", self.header[*column]), fault.what)
            }
            _ => fault,
        }
    }
}

/// Whether a text is, exactly as written, a JSON number.
fn is_json_number(text: &str) -> bool {
    let bytes = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = digits(0);
    if at == 0 || (at > 1 && bytes[0] == b'0') {
        return false;
    }
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return false;
        }
        at += 1 + sign + exponent;
    }
    at == bytes.len()
}

#[cfg(test)]
#[path = "csv_rows_tests.rs"]
mod tests;
