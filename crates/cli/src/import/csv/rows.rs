//! Converts rows of a CSV file to events: the row is the payload, chosen columns are type, tags, id
//! and times.

use super::column_types::{Column, ColumnType, declared};
use super::header::FIRST_COLUMN;
use super::number::{is_json_number, is_printed_number};
use crate::exit::Failure;
use crate::import::csv::dialect::CsvDialect;
use crate::import::csv::records::CsvRecords;
use crate::import::imported_event::ImportedEvent;
use crate::import::ndjson::{moment, uuid};
use crate::import::rows::Numbered;
use crate::lines::Broken;
use crate::numbers::counted;
use crate::wire::{Fault, excerpt, fold_tags, push_string};
use std::io::BufRead;
use wellspring_types::{DataKind, Event};

/// The columns that `export --format csv` writes, and that an import refuses without a mapping.
pub(crate) const EXPORT_COLUMNS: [&str; 8] =
    ["position", "recorded_at", "type", "tags", "id", "metadata", "data", "data_base64"];

/// The dialect of a file, and the meaning of its columns.
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
    /// Column with the time at which the event was recorded.
    pub(crate) recorded_at: Option<String>,
    /// Column with the id of the event.
    pub(crate) id: Option<String>,
    /// Cells with this text count as empty.
    pub(crate) nulls: Vec<String>,
    /// Columns that are text, or `all`.
    pub(crate) text: Vec<String>,
    /// Columns that are numbers.
    pub(crate) numbers: Vec<String>,
    /// The characters between cells and lines.
    pub(crate) dialect: CsvDialect,
    /// The columns with their types, once they are known.
    pub(crate) columns: Option<Vec<Column>>,
}

fn is_null(cell: &[u8], nulls: &[String]) -> bool {
    cell.is_empty() || nulls.iter().any(|null| null.as_bytes() == cell)
}

/// The number of a column, from 0.
///
/// # Errors
/// Usage, if no column has this name.
pub(super) fn column_of<S: AsRef<str>>(header: &[S], name: &str) -> Result<usize, Failure> {
    header.iter().position(|known| known.as_ref() == name).ok_or_else(|| {
        let names: Vec<&str> = header.iter().map(AsRef::as_ref).collect();
        Failure::usage(format!("there is no column {name}; the header has: {}", names.join(", ")))
    })
}

/// The roles of the columns.
pub(super) struct Places {
    type_from: TypeFrom,
    tags: Vec<(String, usize)>,
    time: Option<usize>,
    recorded_at: Option<usize>,
    id: Option<usize>,
}

impl Places {
    /// Looks up the mapping's columns.
    ///
    /// # Errors
    /// Usage, if the columns do not fit the mapping.
    pub(super) fn of(columns: &[Column], mapping: &CsvMapping) -> Result<Places, Failure> {
        let header: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let is_unmapped = mapping.fixed_type.is_none() && mapping.type_column.is_none();
        if header == EXPORT_COLUMNS && is_unmapped {
            return Err(Failure::usage(
                "this CSV was written by wellspring export, and is one-way: its cells do not hold \
                 events as they were. Export as NDJSON or CloudEvents to import them; or add \
                 --type-column type (and --tag COLUMN), and each row becomes an event whose data is \
                 the row",
            ));
        }
        let column = |name: &str| column_of(&header, name);
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
                Some((key, name)) if !header.contains(&given.as_str()) => (key, name),
                _ => (given.as_str(), given.as_str()),
            };
            Ok::<_, Failure>((key.to_owned(), column(name)?))
        };
        let optional = |name: &Option<String>| name.as_deref().map(column).transpose();
        Ok(Places {
            type_from,
            tags: mapping.tags.iter().map(tag).collect::<Result<_, _>>()?,
            time: optional(&mapping.time)?,
            recorded_at: optional(&mapping.recorded_at)?,
            id: optional(&mapping.id)?,
        })
    }
}

enum TypeFrom {
    Fixed(String),
    Column(usize),
}

/// Reads rows.
pub(crate) struct CsvRows<R> {
    records: CsvRecords<R>,
    columns: Vec<Column>,
    /// The columns' names as JSON, each with the colon that follows it.
    names: Vec<Vec<u8>>,
    nulls: Vec<String>,
    places: Places,
    /// Repeated tags that were dropped.
    pub(crate) folded: u64,
}

/// Why a row is no event.
enum RowFault {
    /// It may be skipped.
    Row(Fault),
    /// The column has another type: what came before it would be other events.
    Type(String),
}

impl From<Fault> for RowFault {
    fn from(fault: Fault) -> RowFault {
        RowFault::Row(fault)
    }
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header and looks up the mapping's columns in it.
    ///
    /// # Errors
    /// Data, if the header is not valid; usage, if it does not fit the mapping.
    pub(crate) fn new(source: R, mapping: &CsvMapping) -> Result<CsvRows<R>, Failure> {
        let mut records = CsvRecords::new(source, mapping.dialect);
        let declared = declared(&mut records, mapping)?;
        let places = Places::of(&declared, mapping)?;
        let names = |columns: &[Column]| columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        if mapping.columns.as_deref().is_some_and(|found| names(found) != names(&declared)) {
            return Err(Failure::data("the file has changed while it was read; try again"));
        }
        let json_name = |column: &Column| {
            let mut json = Vec::new();
            push_string(&mut json, &column.name);
            json.push(b':');
            json
        };
        Ok(CsvRows {
            names: declared.iter().map(json_name).collect(),
            columns: mapping.columns.clone().unwrap_or(declared),
            nulls: mapping.nulls.clone(),
            places,
            records,
            folded: 0,
        })
    }

    /// The next row's event and the line it begins on; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read on, or it has changed since the types of its columns were found.
    pub(crate) fn next(&mut self) -> Result<Option<Numbered>, Broken> {
        let Some(line) = self.records.advance()? else { return Ok(None) };
        if let Some(fault) = self.records.fault() {
            return Ok(Some((line, Err(Fault::of("", fault.sentence())))));
        }
        let (cells, columns) = (self.records.len(), self.columns.len());
        if cells != columns {
            self.records.give_back_lines();
            let cells = counted(cells as u64, "cell", "cells");
            let hint = match columns {
                1 => "; if something else stands between cells, say so with --delimiter",
                _ => "",
            };
            let what = format!("the row has {cells}, the header {columns}{hint}");
            return Ok(Some((line, Err(Fault::of("", what)))));
        }
        if self.repeats_header() {
            let what = "the row repeats the header; were files joined? Remove the line";
            return Ok(Some((line, Err(Fault::of("", what)))));
        }
        match self.event() {
            Ok(event) => Ok(Some((line, Ok(event)))),
            Err(RowFault::Row(fault)) => Ok(Some((line, Err(fault)))),
            Err(RowFault::Type(what)) => Err(Broken { line, what }),
        }
    }

    /// Rows before the types of their columns are known, and those columns.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn untyped(
        source: R,
        mapping: &CsvMapping,
    ) -> Result<(CsvRows<R>, Vec<Column>), Failure> {
        let mapping = CsvMapping { columns: None, ..mapping.clone() };
        let mut rows = CsvRows::new(source, &mapping)?;
        let columns = rows.columns.clone();
        for column in rows.columns.iter_mut().filter(|it| it.kind == ColumnType::Empty) {
            column.kind = ColumnType::DeclaredText;
        }
        Ok((rows, columns))
    }

    /// The next row with as many cells as the header: the line it begins on.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub(super) fn advance(&mut self) -> Result<Option<u64>, Broken> {
        while let Some(line) = self.records.advance()? {
            if self.records.len() == self.columns.len() {
                return Ok(Some(line));
            }
            self.records.give_back_lines();
        }
        Ok(None)
    }

    /// The cells of the row that hold something, each with its column's number.
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let cells = (0..self.columns.len()).map(|at| (at, self.records.cell(at)));
        cells.filter(|(_, cell)| !is_null(cell, &self.nulls))
    }

    /// Whether the row becomes an event, regardless of the types of its columns.
    pub(super) fn is_valid(&mut self) -> bool {
        !self.repeats_header() && self.event().is_ok()
    }

    /// Whether the row is the header again. A single column may hold its own name.
    fn repeats_header(&self) -> bool {
        let is_name = |(at, column): (usize, &Column)| {
            let cell = self.records.cell(at);
            cell == column.name.as_bytes()
                || (at == 0 && cell.is_empty() && column.name == FIRST_COLUMN)
        };
        self.columns.len() > 1 && self.columns.iter().enumerate().all(is_name)
    }

    fn event(&mut self) -> Result<ImportedEvent, RowFault> {
        let event_type = match &self.places.type_from {
            TypeFrom::Fixed(text) => text.clone(),
            TypeFrom::Column(column) => self.cell(*column)?.unwrap_or_default().to_owned(),
        };
        let mut tags: Vec<String> = Vec::with_capacity(self.places.tags.len());
        for (key, column) in &self.places.tags {
            let Some(value) = self.cell(*column)? else { continue };
            // Two columns under one key may agree; an event's tags are a set.
            tags.push(format!("{key}:{value}"));
        }
        let folded = fold_tags(&mut tags);
        let time = self.places.time.map(|column| self.cell(column)).transpose()?.flatten();
        let metadata = time.map(|time| ("time".to_owned(), time.to_owned()));
        let id = match self.places.id {
            Some(column) => Some(uuid(&self.columns[column].name, self.required(column)?)?),
            None => None,
        };
        let mut changed = None;
        let event = Event {
            event_type,
            tags,
            data: self.data(&mut changed)?,
            kind: DataKind::Json,
            id,
            metadata: metadata.into_iter().collect(),
        };
        event.as_ref().check().map_err(|fault| self.name_columns(fault.into()))?;
        let recorded_at = self.places.recorded_at.map(|column| self.moment(column)).transpose()?;
        // A row that is no event anyway had no say in the types.
        if let Some(changed) = changed {
            return Err(RowFault::Type(changed));
        }
        self.folded += folded;
        Ok(ImportedEvent { recorded_at, ..ImportedEvent::from(event) })
    }

    /// The row as a JSON object, columns in the file's order. A cell that is not of its column's
    /// type is told in `changed`.
    fn data(&self, changed: &mut Option<String>) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::with_capacity(self.records.byte_len() * 2 + 16 * self.names.len());
        out.push(b'{');
        for (at, name) in self.names.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            let Some(text) = self.cell(at)? else {
                out.extend_from_slice(b"null");
                continue;
            };
            let column = &self.columns[at];
            match column.kind {
                ColumnType::Text | ColumnType::DeclaredText => push_string(&mut out, text),
                ColumnType::Number if is_printed_number(text) => {
                    out.extend_from_slice(text.as_bytes());
                }
                ColumnType::DeclaredNumber if is_json_number(text) => {
                    out.extend_from_slice(text.as_bytes());
                }
                ColumnType::DeclaredNumber => {
                    let what =
                        format!("must be a number, as --number says, not {:?}", excerpt(text));
                    return Err(Fault::of(&column.name, what));
                }
                ColumnType::Number | ColumnType::Empty => {
                    push_string(&mut out, text);
                    *changed = Some(format!(
                        "column {} has changed while the file was imported: it held no texts, and \
                         here is {:?}. Import the file again with --text {}",
                        column.name,
                        excerpt(text),
                        column.name
                    ));
                }
            }
        }
        out.push(b'}');
        Ok(out)
    }

    /// A cell's text; `None` if it is empty or one of the null texts.
    fn cell(&self, column: usize) -> Result<Option<&str>, Fault> {
        let bytes = self.records.cell(column);
        if is_null(bytes, &self.nulls) {
            return Ok(None);
        }
        std::str::from_utf8(bytes).map(Some).map_err(|_| {
            let name = &self.columns[column].name;
            Fault::of(name, "is not UTF-8; convert the file first, e.g. with iconv")
        })
    }

    fn required(&self, column: usize) -> Result<&str, Fault> {
        self.cell(column)?.ok_or_else(|| Fault::of(&self.columns[column].name, "is empty"))
    }

    /// A cell that must be a moment.
    fn moment(&self, column: usize) -> Result<String, Fault> {
        moment(&self.columns[column].name, self.required(column)?.to_owned())
    }

    /// Names columns where the check names parts of an event.
    fn name_columns(&self, fault: Fault) -> Fault {
        match &self.places.type_from {
            TypeFrom::Column(column) if fault.field == "type" => {
                Fault::of(format!("{} (the type)", self.columns[*column].name), fault.what)
            }
            _ => fault,
        }
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
