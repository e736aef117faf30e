//! `wellspring import`: appends the events of a file to a log, in the file's order, exactly once.

mod catalogue;
pub(crate) mod cloudevents;
pub(crate) mod csv;
mod event_ids;
mod import_notes;
mod import_progress;
pub(crate) mod imported_event;
mod input_kind;
mod json_items;
pub(crate) mod ndjson;
mod parts;
mod retries;
mod rows;
mod run;
mod send;
mod source;

use crate::exit::Failure;
use crate::shell;
use crate::target::Target;
use clap::ValueEnum as _;
use csv::options::CsvArgs;
use csv::rows::CsvMapping;
use input_kind::refuse_other_kinds;
pub(crate) use run::run;
use source::Source;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One event per line, as in the API: {"type":"Ordered","tags":["order:1"],"data":{"total":7}}
    Ndjson,
    /// Comma-separated values with a header
    Csv,
    /// CloudEvents 1.0, one per line or a JSON array
    Cloudevents,
}

impl Format {
    /// The format by the name of a file, before `.gz` if that is there. `.tsv` is for import only:
    /// `export` writes no tabs.
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

/// What becomes of the times at which events were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RecordedAt {
    /// They are the times in this log; refused if one does not fit
    Keep,
    /// They are kept in the metadata, as recorded_at
    Metadata,
    /// They are dropped
    Drop,
}

impl RecordedAt {
    /// The value of the parameter of `POST …/import`.
    fn word(self) -> &'static str {
        match self {
            RecordedAt::Keep => "keep",
            RecordedAt::Metadata => "metadata",
            RecordedAt::Drop => "drop",
        }
    }
}

/// What `wellspring import` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
NDJSON has one event per line in Wellspring's form, or one array of them: type and data, and \
optionally tags, id and metadata. Convert other forms first, for example with jq:
  {\"type\":\"OrderPlaced\",\"tags\":[\"customer:7\"],\"data\":{\"total\":12.5}}

Events keep the order of the file; equal rows are separate events.

Repeating an import adds nothing. The events themselves are the key, so the server recognizes the same \
content in any batch size, compressed or not, renamed or from a pipe. To continue an interrupted \
import, run it again. If a file has grown, its new lines are added. If a file has changed where it was \
imported before, it is refused before anything is added, unless its first two events are both new (or \
the first, if it has fewer than three); then it counts as another import and is added as a whole. A part and \
the whole are two imports: import increments, or the whole, and never both.

Options that make different events of the same file (those for CSV, and --ids) make another \
import of it. If this machine imported the file into this log with other options, \
it is refused before anything is added; --again LABEL adds it anyway.

A server that does not answer, or is busy, is tried up to ten more times, after the time it asks for \
(at most a minute each). A server whose disk is full is not waited for.

What `export` writes as NDJSON or CloudEvents comes back as it was, except for positions: into an \
empty log with the times at which the events were recorded, into one that has later events with these \
times as metadata (recorded_at). --recorded-at decides otherwise; the content counts as the same either \
way. CSV is one-way: a CSV that export wrote is refused unless --type-column or --type says how its \
rows become events.

Examples:
  wellspring import events.ndjson
  wellspring import orders.csv --type OrderPlaced --tag customer --dry-run
  zcat old.csv.gz | wellspring import - --format csv --type-column kind")]
pub struct ImportArgs {
    /// The file, or - for standard input; may be gzipped
    #[arg(required_unless_present = "preset")]
    file: Option<String>,
    /// Format of the file [default: by its name: .ndjson .jsonl .csv .tsv .cloudevents]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Skip invalid lines; counts them and shows the first ones
    ///
    /// Put corrected lines into a file of their own: the same file with a corrected line counts as
    /// changed, and is refused.
    #[arg(long)]
    skip_invalid: bool,
    /// Check the file and print the first event; send nothing
    ///
    /// What only the server knows is not checked: ids that are used, data subjects that are erased
    /// or look like a person's address or number, and what the log holds already.
    #[arg(long)]
    dry_run: bool,
    /// Import the same content again as new events, once per label
    #[arg(long, alias = "import-id", value_name = "LABEL")]
    again: Option<String>,
    /// Give every event without an id one that stays the same each time
    #[arg(long, value_enum, value_name = "SCHEME", hide_short_help = true)]
    ids: Option<event_ids::IdScheme>,
    /// Seal each event with exactly one tag KEY:… for it, unless it names a data subject itself
    #[arg(long, value_name = "KEY", hide_short_help = true)]
    subject_from: Option<String>,
    /// What becomes of the times at which events were recorded [default: keep, else metadata]
    ///
    /// By default times are kept as long as they fit: they must not be before that of the last
    /// event of the log, nor in the future, so a whole export fits an empty log. From the batch of
    /// the first event on whose time does not fit, they become metadata, and a message says so.
    #[arg(long, value_enum, value_name = "HOW", hide_short_help = true)]
    recorded_at: Option<RecordedAt>,
    /// Maximum number of events per append, 1 to 1000
    ///
    /// An append is in the log as a whole or not at all. The first two events are always in one.
    #[arg(
        long,
        value_name = "EVENTS",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u16).range(1..=1000),
        hide_short_help = true
    )]
    batch: u16,
    /// Has no effect any more.
    #[arg(long, hide = true)]
    connections: Option<u8>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    csv: CsvArgs,
    #[command(flatten)]
    catalogue: CatalogueArgs,
}

/// The options of an import into the catalogue.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Catalogue")]
struct CatalogueArgs {
    /// Import items into the catalogue instead of events into a log
    #[arg(
        long,
        value_enum,
        conflicts_with_all = ["event_type", "type_column", "tags", "text", "numbers", "recorded_at_column", "id_column", "time", "again", "ids", "skip_invalid", "recorded_at", "subject_from"]
    )]
    preset: Option<catalogue::Preset>,
    /// CSV: how a field of an item is made from columns; repeatable
    ///
    /// NAME is sku, name, description, topic, price, currency or stock. In TEMPLATE {COLUMN} stands
    /// for a cell and {#} for the number of the row. A field not named here is read from the column
    /// of its own name.
    #[arg(
        long = "field",
        value_name = "NAME=TEMPLATE",
        requires = "preset",
        hide_short_help = true
    )]
    fields: Vec<String>,
    /// Overwrite the stock of existing items, as after a stocktake
    ///
    /// Without it the stock of existing items is left alone, so that what was sold stays sold.
    #[arg(long, requires = "preset", hide_short_help = true)]
    set_stock: bool,
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
            "{file}: cannot tell the format from the name; add --format ndjson (also for one array \
             of events), csv or cloudevents"
        )))
    }

    /// Whether the name says that cells stand between tabs.
    fn is_of_tabs(&self) -> bool {
        let name = self.file().to_ascii_lowercase();
        name.strip_suffix(".gz").unwrap_or(&name).ends_with(".tsv")
    }

    /// Whether an option was given that makes other events of the same content.
    fn shapes_events(&self) -> bool {
        self.csv.shapes_events()
            || self.ids.is_some()
            || self.again.is_some()
            || self.subject_from.is_some()
    }

    /// The options that make events of the content, as they are written on a command line: always
    /// the same ones in the same order, so that two of these texts can be compared.
    fn shaping_options(&self, format: Format, mapping: &CsvMapping) -> String {
        let name = format.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
        let mut flags = vec![("--format", name)];
        flags.extend(self.csv.flags());
        if format == Format::Csv && mapping.dialect.delimiter != b',' {
            flags.push(("--delimiter", char::from(mapping.dialect.delimiter).to_string()));
        }
        if self.ids.is_some() {
            flags.push(("--ids", "uuid5".to_owned()));
        }
        flags.extend(self.subject_from.iter().map(|key| ("--subject-from", key.clone())));
        flags.extend(self.again.iter().map(|label| ("--again", label.clone())));
        shell::flags(&flags).trim_start().to_owned()
    }

    /// Opens the input, and finds how it is written.
    fn open(&self, format: Format) -> Result<(Source, CsvMapping), Failure> {
        if format != Format::Csv && self.csv.is_given() {
            return Err(Failure::usage(
                "--type, --tag and the other options under \"CSV\" are for CSV; events in the \
                 other formats have these fields themselves. Objects that are no events become some \
                 with jq, for example: jq -c '{type: \"Ordered\", data: .}'",
            ));
        }
        let file = self.file();
        let is_rewindable =
            format == Format::Csv && self.csv.reads_twice() && self.catalogue.preset.is_none();
        let source =
            if is_rewindable { Source::open_rewindable(file)? } else { Source::open(file)? };
        refuse_other_kinds(file, &source.start, format)?;
        let usual = if self.is_of_tabs() { b'\t' } else { b',' };
        let mapping = match format {
            Format::Csv => self.csv.mapping(&source, usual)?,
            Format::Ndjson | Format::Cloudevents => CsvMapping::default(),
        };
        Ok((source, mapping))
    }
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
