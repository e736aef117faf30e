//! `wellspring import`: a file's events into a log, in the file's order, once.

pub(crate) mod batch;
pub(crate) mod cloudevents;
mod csv_reader;
mod csv_rows;
mod json_items;
pub(crate) mod ndjson;
mod rows;
mod run;
mod send;
mod source;

use crate::cli::Target;
use crate::cli::exit::Failure;
use csv_rows::CsvMapping;
pub(crate) use run::run;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One JSON event a line, as the API takes them and `export` writes them.
    Ndjson,
    /// Comma-separated values with a header.
    Csv,
    /// CloudEvents 1.0, one a line or a JSON array of them.
    Cloudevents,
}

/// What `wellspring import` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Events keep the file's order. Running the same import again adds nothing: batches carry keys made from the \
file's name, its first event and the options that shape events, and the server knows them again. So an \
import that was interrupted is simply run again.

Exit codes: 0 done, 64 or 2 usage, 65 bad data, 66 no such file, 69 server not reachable, 130 interrupted.")]
pub(crate) struct ImportArgs {
    /// The file, or - for standard input; gzip is recognised.
    file: String,
    #[command(flatten)]
    target: Target,
    /// How the file is written; guessed from .ndjson .jsonl .csv .tsv .cloudevents (and .gz after it).
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// CSV: the type of every event.
    #[arg(long = "type", value_name = "NAME", conflicts_with = "type_column")]
    event_type: Option<String>,
    /// CSV: the column that holds the type.
    #[arg(long, value_name = "COLUMN")]
    type_column: Option<String>,
    /// CSV: a column that becomes the tag column:value, or key:value with key=COLUMN; repeats. Empty cells give no tag.
    #[arg(long = "tag", value_name = "[KEY=]COLUMN")]
    tags: Vec<String>,
    /// CSV: a column that is also kept as metadata `time`.
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// CSV: cells with this text count as empty, e.g. NA; repeats.
    #[arg(long = "null", value_name = "TEXT")]
    nulls: Vec<String>,
    /// CSV: the character between cells [default: a comma; a tab for .tsv].
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<char>,
    /// Passes over bad lines, counts them and shows the first ones.
    #[arg(long)]
    skip_invalid: bool,
    /// Checks the file and sends nothing; shows the first event.
    #[arg(long)]
    dry_run: bool,
    /// Requests in flight. With more than one the order of batches in the log is no longer the file's.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    connections: u8,
    /// Events a request, which becomes durable as one.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,
    /// Names the import yourself; another name imports the same file as something new.
    #[arg(long, value_name = "NAME")]
    import_id: Option<String>,
}

impl ImportArgs {
    /// The format, as given or guessed.
    fn format(&self) -> Result<Format, Failure> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let name = self.file.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".csv", ".tsv"]) {
            return Ok(Format::Csv);
        }
        if ends(&[".cloudevents", ".cloudevents.json", ".cloudevents.ndjson"]) {
            return Ok(Format::Cloudevents);
        }
        if ends(&[".ndjson", ".jsonl"]) {
            return Ok(Format::Ndjson);
        }
        Err(Failure::usage(format!(
            "{}: the name does not tell the format; give --format ndjson, csv or cloudevents",
            self.file
        )))
    }

    fn mapping(&self, format: Format) -> Result<CsvMapping, Failure> {
        let csv_only = self.event_type.is_some()
            || self.type_column.is_some()
            || self.time.is_some()
            || self.delimiter.is_some()
            || !(self.tags.is_empty() && self.nulls.is_empty());
        if format != Format::Csv && csv_only {
            return Err(Failure::usage(
                "--type, --type-column, --tag, --time, --null and --delimiter are for CSV; \
                 the other formats say these things themselves",
            ));
        }
        let tabs = self.file.trim_end_matches(".gz").ends_with(".tsv");
        let delimiter = self.delimiter.unwrap_or(if tabs { '\t' } else { ',' });
        if !delimiter.is_ascii() || "\"\r\n".contains(delimiter) {
            return Err(Failure::usage(
                "--delimiter must be one ASCII character, no quote or line end",
            ));
        }
        Ok(CsvMapping {
            fixed_type: self.event_type.clone(),
            type_column: self.type_column.clone(),
            tags: self.tags.clone(),
            time: self.time.clone(),
            nulls: self.nulls.clone(),
            delimiter: delimiter as u8,
        })
    }

    /// Everything that shapes the batches, as text that never changes its form:
    /// a new version must know an old version's imports again.
    fn shape(&self, format: Format, mapping: &CsvMapping) -> String {
        let list = |items: &[String]| items.join("\u{1f}");
        let format = match format {
            Format::Ndjson => "ndjson",
            Format::Csv => "csv",
            Format::Cloudevents => "cloudevents",
        };
        [
            format,
            &self.batch.to_string(),
            mapping.fixed_type.as_deref().unwrap_or_default(),
            mapping.type_column.as_deref().unwrap_or_default(),
            &list(&mapping.tags),
            mapping.time.as_deref().unwrap_or_default(),
            &list(&mapping.nulls),
            &mapping.delimiter.to_string(),
        ]
        .join("\u{1e}")
    }
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
