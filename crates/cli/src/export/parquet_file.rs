//! Events as a Parquet file: a column for each field, for tools of analysts. One-way, as CSV.

use super::output::Output;
use crate::exit::{Code, Failure};
use crate::wire::{RecordedEvent, base64_bytes_of, string};
use ::parquet::basic::Compression;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;
use wellspring_host::clock::parse_rfc3339;
use wellspring_types::HistoryId;

/// A row group is written when it has this many rows, …
const GROUP_ROWS: usize = 64 << 10;
/// … or its values this many bytes: it is in memory until then.
const GROUP_BYTES: usize = 32 << 20;

const SCHEMA: &str = "
message event {
  required int64 position;
  optional int64 recorded_at (TIMESTAMP(MICROS, true));
  required binary type (STRING);
  required group tags (LIST) {
    repeated group list { required binary element (STRING); }
  }
  optional binary id (STRING);
  required group metadata (MAP) {
    repeated group key_value {
      required binary key (STRING);
      required binary value (STRING);
    }
  }
  optional binary data (STRING);
  optional binary data_bytes;
  optional binary history (STRING);
}";

/// A Parquet file that is being written.
pub(super) struct ParquetFile<'a> {
    writer: SerializedFileWriter<OutputWriter<'a>>,
    group: RowGroup,
    history: Option<HistoryId>,
}

/// The file's bytes on their way out.
struct OutputWriter<'a>(&'a mut Output);

impl Write for OutputWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.writer().flush()
    }
}

/// Rows until they are written, a column after the other.
#[derive(Default)]
struct RowGroup {
    positions: Vec<i64>,
    recorded_at_us: OptionalColumn<i64>,
    types: Vec<ByteArray>,
    tags: ListColumn,
    ids: OptionalColumn<ByteArray>,
    metadata_keys: ListColumn,
    metadata_values: ListColumn,
    json: OptionalColumn<ByteArray>,
    binary: OptionalColumn<ByteArray>,
    histories: OptionalColumn<ByteArray>,
    value_bytes: usize,
}

/// Values of a column in which some rows have none.
struct OptionalColumn<T> {
    values: Vec<T>,
    /// For each row: 1 if it has a value, 0 if not.
    definitions: Vec<i16>,
}

impl<T> Default for OptionalColumn<T> {
    fn default() -> OptionalColumn<T> {
        OptionalColumn { values: Vec::new(), definitions: Vec::new() }
    }
}

impl<T> OptionalColumn<T> {
    fn push(&mut self, value: Option<T>) {
        self.definitions.push(value.is_some().into());
        self.values.extend(value);
    }
}

/// Values of a column of lists.
#[derive(Default)]
struct ListColumn {
    values: Vec<ByteArray>,
    /// For each value 1; 0 for an empty list.
    definitions: Vec<i16>,
    /// 0 where a row begins.
    repetitions: Vec<i16>,
}

impl ListColumn {
    fn push(&mut self, values: impl IntoIterator<Item = Vec<u8>>) {
        let before = self.values.len();
        self.values.extend(values.into_iter().map(ByteArray::from));
        let count = self.values.len() - before;
        self.definitions.extend(std::iter::repeat_n(1, count));
        self.repetitions.extend((0..count).map(|at| i16::from(at > 0)));
        if count == 0 {
            self.definitions.push(0);
            self.repetitions.push(0);
        }
    }
}

impl<'a> ParquetFile<'a> {
    /// Begins a file.
    pub(super) fn begin(
        output: &'a mut Output,
        history: Option<HistoryId>,
    ) -> Result<ParquetFile<'a>, Failure> {
        let schema = parse_message_type(SCHEMA).map_err(|error| failed(&error))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("wellspring ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let output = OutputWriter(output);
        let writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))
            .map_err(|error| failed(&error))?;
        Ok(ParquetFile { writer, group: RowGroup::default(), history })
    }

    /// Adds an event.
    pub(super) fn push(&mut self, event: &RecordedEvent<'_>) -> Result<(), Failure> {
        self.group.push(event, self.history)?;
        if self.group.positions.len() >= GROUP_ROWS || self.group.value_bytes >= GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Writes the rest and the footer; returns the size of the file in bytes.
    pub(super) fn end(mut self) -> Result<u64, Failure> {
        if !self.group.positions.is_empty() {
            self.write_group()?;
        }
        self.writer.finish().map_err(|error| failed(&error))?;
        Ok(self.bytes())
    }

    fn write_group(&mut self) -> Result<(), Failure> {
        let group = std::mem::take(&mut self.group);
        let written = self.writer.next_row_group().and_then(|mut writer| {
            group.write(&mut writer)?;
            writer.close()
        });
        written.map(drop).map_err(|error| failed(&error))
    }
}

impl RowGroup {
    fn push(
        &mut self,
        event: &RecordedEvent<'_>,
        history: Option<HistoryId>,
    ) -> Result<(), Failure> {
        let unexpected = |what: String| {
            let message = format!("the server sent an event that is not valid: {what}");
            Failure::new(Code::Unavailable, message)
        };
        let mut metadata = Vec::new();
        for (name, raw) in event.metadata.iter().flat_map(|fields| &fields.0) {
            let value = string(name, raw).map_err(|fault| unexpected(fault.to_string()))?;
            metadata.push((name.as_bytes().to_vec(), value.into_bytes()));
        }
        let binary = match &event.data_base64 {
            None => None,
            Some(text) => Some(
                base64_bytes_of("data_base64", &text.0)
                    .map_err(|fault| unexpected(fault.to_string()))?,
            ),
        };
        let json = event.data.filter(|_| binary.is_none()).map(|data| data.get().as_bytes());
        let tags = || event.tags.iter().map(|tag| tag.0.as_bytes().to_vec());
        self.value_bytes += event.event_type.len()
            + tags().map(|tag| tag.len()).sum::<usize>()
            + metadata.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
            + json.map_or(0, <[u8]>::len)
            + binary.as_ref().map_or(0, Vec::len);
        self.positions.push(event.position as i64);
        let recorded_at = event.recorded_at.as_ref().and_then(|time| parse_rfc3339(&time.0));
        self.recorded_at_us.push(recorded_at.map(|us| us as i64));
        self.types.push(event.event_type.as_bytes().to_vec().into());
        self.tags.push(tags());
        self.ids.push(event.id.as_ref().map(|id| id.0.as_bytes().to_vec().into()));
        self.metadata_keys.push(metadata.iter().map(|(key, _)| key.clone()));
        self.metadata_values.push(metadata.into_iter().map(|(_, value)| value));
        self.json.push(json.map(|data| data.to_vec().into()));
        self.binary.push(binary.map(ByteArray::from));
        self.histories.push(history.map(|history| history.to_string().into_bytes().into()));
        Ok(())
    }

    /// Writes the columns in the order of the schema.
    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        column::<Int64Type, _>(group, &self.positions, None, None)?;
        optional::<Int64Type, _>(group, &self.recorded_at_us)?;
        column::<ByteArrayType, _>(group, &self.types, None, None)?;
        list(group, &self.tags)?;
        optional::<ByteArrayType, _>(group, &self.ids)?;
        list(group, &self.metadata_keys)?;
        list(group, &self.metadata_values)?;
        optional::<ByteArrayType, _>(group, &self.json)?;
        optional::<ByteArrayType, _>(group, &self.binary)?;
        optional::<ByteArrayType, _>(group, &self.histories)
    }
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column_of: &OptionalColumn<T::T>,
) -> Result<(), ParquetError> {
    column::<T, W>(group, &column_of.values, Some(&column_of.definitions), None)
}

fn list<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    lists: &ListColumn,
) -> Result<(), ParquetError> {
    let ListColumn { values, definitions, repetitions } = lists;
    column::<ByteArrayType, W>(group, values, Some(definitions), Some(repetitions))
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    definitions: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut writer = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
    writer.typed::<T>().write_batch(values, definitions, repetitions)?;
    writer.close()
}

fn failed(error: &ParquetError) -> Failure {
    if let ParquetError::External(cause) = error
        && let Some(error) = cause.downcast_ref::<io::Error>()
    {
        return Failure::output("the Parquet file", error);
    }
    Failure::new(Code::Io, format!("writing the Parquet file: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use std::fs::File;

    const LINES: [&str; 3] = [
        r#"{"position":7,"type":"T","tags":["source:/s","é"],"data":{"a": 1.50},"id":"018f5c3e-9b2a-7c11-8d3e-0123456789ab","metadata":{"k":"v\n","l":""},"recorded_at":"2026-01-01T00:00:00.000001Z"}"#,
        r#"{"position":8,"type":"B","tags":[],"data_base64":"AP8=","recorded_at":"2026-01-01T00:00:00.000001Z"}"#,
        r#"{"position":9,"type":"N","tags":["x"],"data":null,"recorded_at":"2026-01-01T00:00:00.000002Z"}"#,
    ];

    fn write(path: &std::path::Path, rows: usize) -> u64 {
        let mut output = Output::open(Some(path)).unwrap();
        let mut file = ParquetFile::begin(&mut output, Some(HistoryId(0xff))).unwrap();
        for line in LINES.iter().cycle().take(rows) {
            file.push(&RecordedEvent::parse(line).unwrap()).unwrap();
        }
        let bytes = file.end().unwrap();
        output.finish().unwrap();
        bytes
    }

    #[test]
    fn a_file_reads_back_as_the_events_it_was_made_of() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let bytes = write(&path, 3);
        assert_eq!(bytes, path.metadata().unwrap().len());
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        let expected = [
            r#"{position: 7, recorded_at: 2026-01-01 00:00:00.000001 +00:00, type: "T", tags: ["source:/s", "é"], id: "018f5c3e-9b2a-7c11-8d3e-0123456789ab", metadata: {"k" -> "v
", "l" -> ""}, data: "{"a": 1.50}", data_bytes: null, history: "00000000000000ff"}"#,
            r#"{position: 8, recorded_at: 2026-01-01 00:00:00.000001 +00:00, type: "B", tags: [], id: null, metadata: {}, data: null, data_bytes: [0, 255], history: "00000000000000ff"}"#,
            r#"{position: 9, recorded_at: 2026-01-01 00:00:00.000002 +00:00, type: "N", tags: ["x"], id: null, metadata: {}, data: "null", data_bytes: null, history: "00000000000000ff"}"#,
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn row_groups_are_bounded_and_an_empty_export_is_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        for (rows, groups) in [(0, 0), (GROUP_ROWS, 1), (2 * GROUP_ROWS + 1, 3)] {
            write(&path, rows);
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            let about = reader.metadata();
            assert_eq!(about.num_row_groups(), groups, "{rows}");
            assert_eq!(about.file_metadata().num_rows(), rows as i64);
        }
    }
}
