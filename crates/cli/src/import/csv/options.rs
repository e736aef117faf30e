//! The options for CSV, applied to an input.

use super::column_types::{are_in_the_file, found};
use super::dialect::{CsvDialect, is_delimiter};
use super::rows::CsvMapping;
use crate::exit::Failure;
use crate::import::source::Source;
use crate::numbers::counted;
use crate::wire::excerpt_of;

/// Most characters of the names of all columns that are shown.
const MAX_NAMES: usize = 160;

/// The mapping of the columns of a CSV file to events.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "CSV")]
pub(crate) struct CsvArgs {
    /// Type of every event
    #[arg(long = "type", value_name = "NAME", conflicts_with = "type_column")]
    event_type: Option<String>,
    /// Column that holds the type
    #[arg(long, value_name = "COLUMN")]
    type_column: Option<String>,
    /// Column that becomes the tag column:value, or key:value; repeatable
    ///
    /// Empty cells give no tag.
    #[arg(long = "tag", value_name = "[KEY=]COLUMN")]
    tags: Vec<String>,
    /// Column that stays text whatever it holds, or all; repeatable
    ///
    /// Otherwise a column is a number if every cell of the file is written as JSON prints that
    /// number: 12 and 1.5, but not 1.10, 007, 1e5, -0, or integers beyond 2^53. Any other column
    /// is text. --dry-run shows the types.
    #[arg(long = "text", value_name = "COLUMN")]
    text: Vec<String>,
    /// Column that is a number however it is written, e.g. 1.10; repeatable
    ///
    /// It must be a number to JSON, and stays as it is written.
    #[arg(long = "number", value_name = "COLUMN", hide_short_help = true)]
    numbers: Vec<String>,
    /// Column with the time at which each event was recorded, as RFC 3339 writes it
    ///
    /// --recorded-at says what becomes of the times.
    #[arg(long, value_name = "COLUMN", hide_short_help = true)]
    recorded_at_column: Option<String>,
    /// Column with the id of each event, a UUID
    #[arg(long, value_name = "COLUMN", conflicts_with = "ids", hide_short_help = true)]
    id_column: Option<String>,
    /// Column to keep as metadata `time` as well
    #[arg(long, value_name = "COLUMN", hide_short_help = true)]
    time: Option<String>,
    /// Text that counts as an empty cell, e.g. NA; repeatable
    #[arg(long = "null", value_name = "TEXT", hide_short_help = true)]
    nulls: Vec<String>,
    /// Character between cells [default: the one of , ; tab | that fits]
    #[arg(long, value_name = "CHARACTER", hide_short_help = true)]
    delimiter: Option<char>,
}

impl CsvArgs {
    /// Whether an option was given that makes other events of the same content.
    pub(crate) fn shapes_events(&self) -> bool {
        !self.flags().is_empty()
    }

    /// Whether an option was given.
    pub(crate) fn is_given(&self) -> bool {
        self.shapes_events() || self.delimiter.is_some()
    }

    /// The options that make events of the content, as they are written on a command line.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let options: [(&'static str, &[String]); 9] = [
            ("--type", self.event_type.as_slice()),
            ("--type-column", self.type_column.as_slice()),
            ("--tag", &self.tags),
            ("--time", self.time.as_slice()),
            ("--null", &self.nulls),
            ("--text", &self.text),
            ("--number", &self.numbers),
            ("--recorded-at-column", self.recorded_at_column.as_slice()),
            ("--id-column", self.id_column.as_slice()),
        ];
        let flags = options.into_iter();
        flags.flat_map(|(flag, values)| values.iter().map(move |v| (flag, v.clone()))).collect()
    }

    /// Applies the options to the columns of an input; `usual` is the default delimiter.
    ///
    /// # Errors
    /// Usage, if the delimiter is invalid or cannot be detected.
    pub(crate) fn mapping(&self, source: &Source, usual: u8) -> Result<CsvMapping, Failure> {
        let given = self.delimiter.map(|given| {
            u8::try_from(given).ok().filter(|byte| is_delimiter(*byte)).ok_or_else(|| {
                Failure::usage(
                    "--delimiter must be one ASCII character other than a quote or a line end",
                )
            })
        });
        let dialect =
            CsvDialect::of(&source.start, source.is_in_start(), given.transpose()?, usual)?;
        Ok(CsvMapping {
            fixed_type: self.event_type.clone(),
            type_column: self.type_column.clone(),
            tags: self.tags.clone(),
            time: self.time.clone(),
            recorded_at: self.recorded_at_column.clone(),
            id: self.id_column.clone(),
            nulls: self.nulls.clone(),
            text: self.text.clone(),
            numbers: self.numbers.clone(),
            dialect,
            columns: None,
        })
    }

    /// Whether the input must be read to its end before its first event is known.
    pub(crate) fn reads_twice(&self) -> bool {
        are_in_the_file(&self.text)
    }

    /// Finds the types of the columns, and says how the input is read.
    ///
    /// # Errors
    /// Data, if the input has no valid header or cannot be read; usage, if its header does not fit
    /// the options.
    pub(crate) fn typed(
        &self,
        file: &str,
        mut source: Source,
        mut mapping: CsvMapping,
    ) -> Result<(Source, CsvMapping), Failure> {
        if self.reads_twice() {
            mapping.columns = Some(found(&mut source.reader, &mapping)?);
            source = source.rewound(file)?;
        }
        let columns = mapping.columns.as_deref().unwrap_or_default();
        let between = mapping.dialect.delimiter_name();
        let guessed = match self.delimiter {
            None => " (--delimiter decides otherwise)",
            Some(_) => "",
        };
        match columns {
            [] => eprintln!("{file}: cells are separated by {between}{guessed}"),
            [one] => eprintln!("{file}: one column, {}{guessed}", one.name),
            _ => {
                let count = counted(columns.len() as u64, "column", "columns");
                let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                let names = excerpt_of(&names.join(", "), MAX_NAMES);
                eprintln!("{file}: {count} separated by {between}{guessed}: {names}");
            }
        }
        for column in columns.iter().filter(|column| column.is_text_of_numbers()) {
            let name = &column.name;
            eprintln!(
                "{}, which JSON prints otherwise; --number {name} makes numbers of it",
                column.told()
            );
        }
        Ok((source, mapping))
    }
}
