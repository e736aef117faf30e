//! `wellspring import`: a file's events into a log, in the file's order, once.

mod catalogue;
pub(crate) mod cloudevents;
mod csv_reader;
pub(crate) mod csv_rows;
mod earlier;
mod event_ids;
mod json_items;
pub(crate) mod ndjson;
mod parts;
mod retries;
mod rows;
mod run;
mod send;
mod source;
mod standing;

use crate::exit::Failure;
use crate::shell;
use crate::target::Target;
use clap::ValueEnum as _;
use csv_rows::CsvMapping;
pub(crate) use run::run;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One event a line, as the API takes them and `export` writes them:
    /// {"type":"OrderPlaced","tags":["order:1"],"data":{"total":7}}.
    Ndjson,
    /// Comma-separated values with a header.
    Csv,
    /// CloudEvents 1.0, one a line or a JSON array of them.
    Cloudevents,
}

impl Format {
    /// The format that the name of a file tells, with `.gz` after it or not. `.tsv` is none that
    /// all tools know: `export` writes no tabs.
    pub(crate) fn of_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".cloudevents", ".cloudevents.json", ".cloudevents.ndjson"]) {
            Some(Format::Cloudevents)
        } else if ends(&[".csv"]) {
            Some(Format::Csv)
        } else {
            ends(&[".ndjson", ".jsonl"]).then_some(Format::Ndjson)
        }
    }
}

/// What `wellspring import` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
NDJSON is one event a line in Wellspring's own form: type and data, and tags, id and metadata if wanted. Lines of any \
other form have to be brought into it first, e.g. with jq:
  {\"type\":\"OrderPlaced\",\"tags\":[\"customer:7\"],\"data\":{\"total\":12.5}}

Events keep the file's order; equal rows are events of their own. Running an import again adds nothing: the \
events are the key, so the server knows the same content again in any batch size, compressed or not, renamed \
or from a pipe, and an import that was interrupted is simply run again. A file that has grown: its new lines \
are added. A file that was changed where it was imported: refused before anything is added, unless its \
first two events are both new, or the first of fewer than three; then it is another import, and all of it is \
added. Options that \
make other events of the same file (--type, --type-column, --tag, --time, --null, --ids) make another import of it: \
if this machine imported it into this log before with others, it is refused before anything is added (--again \
LABEL adds it all the same). A server that does not \
answer, or refuses for a moment, is tried again up to ten times, after as long as it says (at most a minute each \
time); one whose disk is full is not waited for. What export wrote \
is read back, in every format; the new log gives its own positions and times, and an event's former time is \
kept in its metadata as recorded_at.

Exit codes: 0 done, 1 imported before with other options, or an id is taken, 64 or 2 usage or no such log, 65 bad \
data, 66 no such file, 69 server not reachable or full, 77 credentials missing or not enough, 130 interrupted.")]
pub struct ImportArgs {
    /// The file, or - for standard input; gzip is recognised.
    #[arg(required_unless_present = "preset")]
    file: Option<String>,
    #[command(flatten)]
    target: Target,
    /// How the file is written; guessed from .ndjson .jsonl .csv .tsv .cloudevents (and .gz after
    /// it).
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Fills the catalogue instead of appending events.
    #[arg(
        long,
        value_enum,
        conflicts_with_all = ["event_type", "type_column", "tags", "time", "again", "ids", "skip_invalid"]
    )]
    preset: Option<catalogue::Preset>,
    /// With --preset items, of CSV: what an item's sku, name, description, topic, price, currency
    /// or stock is; {COLUMN} stands for a cell, {#} for the number of the row. A field that is not
    /// named here is the column of its own name.
    #[arg(long = "field", value_name = "NAME=TEMPLATE", requires = "preset")]
    fields: Vec<String>,
    /// With --preset items: sets the stock of items that are there already to what the file says,
    /// as after a count of the shelves. Otherwise it stays: what was sold stays sold.
    #[arg(long, requires = "preset")]
    set_stock: bool,
    /// CSV: the type of every event.
    #[arg(long = "type", value_name = "NAME", conflicts_with = "type_column")]
    event_type: Option<String>,
    /// CSV: the column that holds the type.
    #[arg(long, value_name = "COLUMN")]
    type_column: Option<String>,
    /// CSV: a column that becomes the tag column:value, or key:value with key=COLUMN; repeats.
    /// Empty cells give no tag.
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
    /// Passes over bad lines, counts them and shows the first ones. To correct them afterwards, put
    /// them into a file of their own: the same file with a corrected line is one that has changed,
    /// and is refused.
    #[arg(long)]
    skip_invalid: bool,
    /// Checks the file and sends nothing; shows the first event.
    #[arg(long)]
    dry_run: bool,
    /// Has no effect any more.
    #[arg(long, hide = true)]
    connections: Option<u8>,
    /// Most events of one append, which is wholly in the log or not at all; the first two are
    /// always in one.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,
    /// Imports the same content once more, as something new: once for each label.
    #[arg(long, alias = "import-id", value_name = "LABEL")]
    again: Option<String>,
    /// Gives an id to every event that has none, the same one each time the file is read.
    #[arg(long, value_enum, value_name = "SCHEME")]
    ids: Option<event_ids::IdScheme>,
}

impl ImportArgs {
    /// The file; empty if there is none to read.
    fn file(&self) -> &str {
        self.file.as_deref().unwrap_or_default()
    }

    /// The format, as given or guessed.
    fn format(&self) -> Result<Format, Failure> {
        let file = self.file();
        if let Some(format) = self.format.or_else(|| Format::of_name(file)) {
            return Ok(format);
        }
        if self.is_of_tabs() {
            return Ok(Format::Csv);
        }
        Err(Failure::usage(format!(
            "{file}: the name does not tell the format; give --format ndjson, csv or cloudevents"
        )))
    }

    /// Whether the name says that cells stand between tabs.
    fn is_of_tabs(&self) -> bool {
        let name = self.file().to_ascii_lowercase();
        name.strip_suffix(".gz").unwrap_or(&name).ends_with(".tsv")
    }

    /// Whether an option was given that makes other events of the same content.
    fn shapes_events(&self) -> bool {
        self.event_type.is_some()
            || self.type_column.is_some()
            || self.time.is_some()
            || self.ids.is_some()
            || self.again.is_some()
            || !(self.tags.is_empty() && self.nulls.is_empty())
    }

    /// The options that make events of the content, as they are written on a command line: always
    /// the same ones in the same order, so that two of these texts can be compared.
    fn shaping_options(&self, format: Format, mapping: &CsvMapping) -> String {
        let name = format.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
        let mut flags = vec![("--format", name)];
        let mut push = |flag, values: &[String]| {
            flags.extend(values.iter().map(|value| (flag, value.clone())));
        };
        push("--type", mapping.fixed_type.as_slice());
        push("--type-column", mapping.type_column.as_slice());
        push("--tag", &mapping.tags);
        push("--time", mapping.time.as_slice());
        push("--null", &mapping.nulls);
        if format == Format::Csv && mapping.delimiter != b',' {
            push("--delimiter", &[char::from(mapping.delimiter).to_string()]);
        }
        if self.ids.is_some() {
            push("--ids", &["uuid5".to_owned()]);
        }
        push("--again", self.again.as_slice());
        shell::flags(&flags).trim_start().to_owned()
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
        let delimiter = self.delimiter.unwrap_or(if self.is_of_tabs() { '\t' } else { ',' });
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
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
