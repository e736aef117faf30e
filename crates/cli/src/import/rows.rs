//! One reader for every input format.

use crate::exit::Failure;
use crate::import::Format;
use crate::import::csv::rows::{CsvMapping, CsvRows};
use crate::import::imported_event::ImportedEvent;
use crate::import::json_items::JsonItems;
use crate::import::{cloudevents, ndjson};
use crate::lines::Broken;
use crate::wire::Fault;
use std::io::BufRead;

/// An event, or what is wrong with it, and the line it begins on.
pub(crate) type Numbered = (u64, Result<ImportedEvent, Fault>);

pub(crate) type Input = Box<dyn BufRead + Send>;

/// Reads one event; counts tags that are given twice.
type ReadEvent = fn(&str, &mut u64) -> Result<ImportedEvent, Fault>;

/// Events of an input, in its order.
pub(crate) enum Rows {
    /// A value a line, or an array of values, and the tags given twice so far.
    Json(JsonItems<Input>, ReadEvent, u64),
    /// Rows under a header.
    Csv(Box<CsvRows<Input>>),
}

impl Rows {
    /// Begins to read.
    ///
    /// # Errors
    /// Data, if a CSV header does not fit its mapping.
    pub(crate) fn new(
        format: Format,
        reader: Input,
        mapping: &CsvMapping,
    ) -> Result<Rows, Failure> {
        Ok(match format {
            Format::Ndjson => Rows::Json(JsonItems::new(reader), ndjson::event, 0),
            Format::Cloudevents => Rows::Json(JsonItems::new(reader), cloudevents::event, 0),
            Format::Csv => Rows::Csv(Box::new(CsvRows::new(reader, mapping)?)),
        })
    }

    /// The next event, or what is wrong with it, and its line.
    ///
    /// # Errors
    /// [`Broken`] if what follows cannot be read at all.
    pub(crate) fn next(&mut self) -> Result<Option<Numbered>, Broken> {
        match self {
            Rows::Csv(rows) => rows.next(),
            Rows::Json(items, event, folded) => {
                let Some((line, bytes)) = items.next()? else { return Ok(None) };
                let text = std::str::from_utf8(bytes)
                    .map_err(|_| Fault::of("", "is not UTF-8; convert the file first"));
                Ok(Some((line, text.and_then(|text| event(text, folded)))))
            }
        }
    }

    /// Tags that were given twice in one event, and passed over.
    pub(crate) fn folded(&self) -> u64 {
        match self {
            Rows::Csv(rows) => rows.folded,
            Rows::Json(_, _, folded) => *folded,
        }
    }
}
