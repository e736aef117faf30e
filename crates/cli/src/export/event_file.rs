//! A file of events in any format, while it is written.

use super::Format;
use super::formats::{push_cloudevent, push_csv, push_line};
use super::output::Output;
#[cfg(feature = "parquet")]
use super::parquet_file::ParquetFile;
use crate::exit::Failure;
use crate::import::csv::rows::EXPORT_COLUMNS;
use crate::wire::RecordedEvent;
use wellspring_types::HistoryId;

/// Appends an event to text.
type PushText = fn(&mut Vec<u8>, &str, &RecordedEvent<'_>, Option<HistoryId>);

/// A file of events.
pub(super) enum EventFile<'a> {
    /// A line for each.
    Text(TextFile<'a>),
    /// Columns.
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetFile<'a>>),
}

/// A file of lines.
pub(super) struct TextFile<'a> {
    output: &'a mut Output,
    push: PushText,
    history: Option<HistoryId>,
    line: Vec<u8>,
    bytes: u64,
}

impl TextFile<'_> {
    fn write(&mut self) -> Result<(), Failure> {
        self.line.push(b'\n');
        self.output.write(&self.line)?;
        self.bytes += self.line.len() as u64;
        self.line.clear();
        Ok(())
    }
}

impl<'a> EventFile<'a> {
    /// Checks that this program can write the format.
    ///
    /// # Errors
    /// Usage: it was built without it.
    pub(super) fn check(format: Format) -> Result<(), Failure> {
        if format == Format::Parquet && cfg!(not(feature = "parquet")) {
            return Err(Failure::usage(
                "this program was built without Parquet. Use a released program, or build with \
                 cargo build --release -p wellspring-server --features parquet",
            ));
        }
        Ok(())
    }

    /// Begins a file.
    pub(super) fn begin(
        format: Format,
        output: &'a mut Output,
        history: Option<HistoryId>,
    ) -> Result<EventFile<'a>, Failure> {
        EventFile::check(format)?;
        let push: PushText = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                let file = ParquetFile::begin(output, history)?;
                return Ok(EventFile::Parquet(Box::new(file)));
            }
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => unreachable!("checked above"),
            Format::Ndjson => |out, line, _, history| push_line(out, line, history),
            Format::Cloudevents => |out, _, event, history| push_cloudevent(out, event, history),
            Format::Csv => |out, _, event, _| push_csv(out, event),
        };
        let mut file = TextFile { output, push, history, line: Vec::new(), bytes: 0 };
        if format == Format::Csv {
            file.line.extend_from_slice(EXPORT_COLUMNS.join(",").as_bytes());
            file.write()?;
        }
        Ok(EventFile::Text(file))
    }

    /// Adds an event, given as the server sent it and as read.
    pub(super) fn push(&mut self, line: &str, event: &RecordedEvent<'_>) -> Result<(), Failure> {
        match self {
            EventFile::Text(file) => {
                (file.push)(&mut file.line, line, event, file.history);
                file.write()
            }
            #[cfg(feature = "parquet")]
            EventFile::Parquet(file) => file.push(event),
        }
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            EventFile::Text(file) => file.bytes,
            #[cfg(feature = "parquet")]
            EventFile::Parquet(file) => file.bytes(),
        }
    }

    /// Writes what is left; returns the size in bytes.
    pub(super) fn end(self) -> Result<u64, Failure> {
        match self {
            EventFile::Text(file) => Ok(file.bytes),
            #[cfg(feature = "parquet")]
            EventFile::Parquet(file) => file.end(),
        }
    }
}
