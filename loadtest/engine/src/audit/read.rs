//! Reads a file of hand-entered tables.
//!
//! ```toml
//! title  = "A published benchmark"
//! source = "https://example.org/report"
//!
//! [[table]]
//! name = "Ladder"
//!
//! [[table.row]]
//! name        = "16 users"      # unique in its table
//! concurrency = 16              # or "up to 50" for a ramp
//! throughput  = "12,345 req/s"
//! mean        = "1.29 ms"       # p50, p95, "p99.9", min and max likewise
//! requests    = "370,000"
//! failures    = 0
//! duration    = "30 s"
//! think       = "0 ms"          # mean think time of a user
//!
//! [[table.claim]]
//! says  = "5.1x faster than one user"
//! value = "5.1x"
//! word  = "faster"              # times, more, less, faster or slower
//! of    = "16 users: throughput"
//! over  = "1 user: throughput"
//! ```
//!
//! Figures are texts, so that the precision in which they were published is kept; whole counts may
//! be numbers.

use super::cell::{Cell, claimed};
use crate::check::ratios::{Better, Claimed, Interval, Word};
use crate::invalid::Invalid;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// Tables of a published report, as entered.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// What the report is called.
    pub title: String,
    /// Where it can be read.
    pub source: String,
    /// Facts about it that the figures do not show.
    pub note: Option<String>,
    /// Its tables, at least one.
    pub tables: Vec<Table>,
}

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its heading, unique in the file.
    pub name: String,
    /// Where it can be read, if elsewhere than the report.
    pub source: Option<String>,
    /// What must be known to read it.
    pub note: Option<String>,
    /// Whether users waited for answers (closed loop) or requests came at a rate of their own.
    pub closed: bool,
    /// Its rows, at least one.
    pub rows: Vec<Row>,
    /// Ratios stated of its figures.
    pub claims: Vec<Claim>,
}

/// One measured setting. What was not published is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Unique in its table.
    pub name: String,
    /// Rows of one series differ in users only: the rungs of a ladder.
    pub series: Option<String>,
    /// Users, or connections: how many requests can be under way at once.
    pub concurrency: Option<Cell>,
    /// Whether the concurrency is a largest value only, as in a ramp.
    pub at_most: bool,
    /// Answers a second.
    pub throughput: Option<Cell>,
    /// Throughput ÷ concurrency, as published.
    pub per_connection: Option<Cell>,
    /// Mean latency.
    pub mean: Option<Cell>,
    /// Shortest latency.
    pub min: Option<Cell>,
    /// Longest latency.
    pub max: Option<Cell>,
    /// Quantile (0 to 1) and latency, in rising order of quantiles.
    pub percentiles: Vec<(f64, Cell)>,
    /// Requests in all.
    pub requests: Option<Cell>,
    /// Of these, failed.
    pub failures: Option<Cell>,
    /// Length of the measurement.
    pub duration: Option<Cell>,
    /// Mean think time of a user.
    pub think: Option<Cell>,
}

/// A ratio stated of two figures of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// In the report's words.
    pub says: String,
    /// How the ratio is named.
    pub word: Word,
    /// The ratio.
    pub value: Claimed,
    /// The figure spoken of.
    pub of: Figure,
    /// The figure it is compared with.
    pub over: Figure,
}

/// A figure a claim refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Row and column, e.g. `16 users: throughput`.
    pub place: String,
    /// What it may stand for.
    pub value: Interval,
    /// Which way it is better.
    pub better: Better,
}

/// Why a file was not understood; the text names the line, the key and what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditError {
    /// Line of the file, from 1, if known.
    pub line: Option<usize>,
    /// What is wrong.
    pub text: String,
}

impl std::fmt::Display for AuditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for AuditError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    source: String,
    note: Option<String>,
    #[serde(default)]
    table: Vec<Spanned<RawTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    name: String,
    source: Option<String>,
    note: Option<String>,
    #[serde(rename = "loop")]
    kind: Option<Spanned<String>>,
    #[serde(default)]
    row: Vec<Spanned<BTreeMap<String, Spanned<Value>>>>,
    #[serde(default)]
    claim: Vec<Spanned<RawClaim>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    says: String,
    value: Spanned<String>,
    word: Spanned<String>,
    of: Spanned<String>,
    over: Spanned<String>,
}

/// Line numbers of a text.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn error(&self, at: usize, text: impl Into<String>) -> AuditError {
        let before = self.0.get(..at).unwrap_or(self.0);
        AuditError { line: Some(before.matches('\n').count() + 1), text: text.into() }
    }
}

impl Published {
    /// Reads a file of hand-entered tables.
    ///
    /// # Errors
    /// [`AuditError`]: not TOML, an unknown or missing key, a figure that cannot be read, a
    /// row or table named twice, or a claim about a figure that is not there.
    pub fn parse(text: &str) -> Result<Self, AuditError> {
        let lines = Lines(text);
        let file: File = toml::from_str(text).map_err(|error| match error.span() {
            Some(span) => lines.error(span.start, error.message()),
            None => AuditError { line: None, text: error.message().to_owned() },
        })?;
        if file.table.is_empty() {
            let text = "there is no [[table]] in this file; each needs a name and at least one [[table.row]]";
            return Err(AuditError { line: None, text: text.to_owned() });
        }
        let mut tables: Vec<Table> = Vec::new();
        for raw in file.table {
            let at = raw.span().start;
            let table = table(&lines, at, raw.into_inner())?;
            if tables.iter().any(|there| there.name == table.name) {
                return Err(
                    lines.error(at, format!("there are two tables called {:?}", table.name))
                );
            }
            tables.push(table);
        }
        Ok(Published { title: file.title, source: file.source, note: file.note, tables })
    }
}

fn table(lines: &Lines<'_>, at: usize, raw: RawTable) -> Result<Table, AuditError> {
    let closed = match &raw.kind {
        None => true,
        Some(kind) => match kind.get_ref().as_str() {
            "closed" => true,
            "open" => false,
            other => {
                let why = format!("loop is {other:?}; it must be \"closed\" or \"open\"");
                return Err(lines.error(kind.span().start, why));
            }
        },
    };
    if raw.row.is_empty() {
        return Err(lines.error(at, format!("the table {:?} has no [[table.row]]", raw.name)));
    }
    let mut rows: Vec<Row> = Vec::new();
    for (number, raw) in raw.row.into_iter().enumerate() {
        let at = raw.span().start;
        let row = row(lines, at, number + 1, raw.into_inner())?;
        if rows.iter().any(|there| there.name == row.name) {
            return Err(
                lines.error(at, format!("there are two rows called {:?} in this table", row.name))
            );
        }
        rows.push(row);
    }
    let claims = raw.claim.into_iter().map(|raw| claim(lines, &rows, raw.into_inner()));
    let claims = claims.collect::<Result<Vec<_>, _>>()?;
    Ok(Table { name: raw.name, source: raw.source, note: raw.note, closed, rows, claims })
}

/// The text of a value; whole numbers are allowed where `whole` says so.
fn written(value: &Value, whole: bool) -> Result<String, Invalid> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) if whole && *number >= 0 => Ok(number.to_string()),
        Value::Integer(_) | Value::Float(_) => Err(
            "write figures as text, in quotes and as published, to keep their precision and unit"
                .into(),
        ),
        _ => Err("expected a text in quotes (and quote keys with a dot, such as \"p99.9\")".into()),
    }
}

fn row(
    lines: &Lines<'_>,
    at: usize,
    number: usize,
    raw: BTreeMap<String, Spanned<Value>>,
) -> Result<Row, AuditError> {
    let mut row = Row::default();
    let label = match raw.get("name").map(|name| name.get_ref()) {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        _ => return Err(lines.error(at, format!("row {number} of this table has no name"))),
    };
    for (key, value) in &raw {
        let whole = ["concurrency", "requests", "failures"].contains(&key.as_str());
        written(value.get_ref(), whole).and_then(|text| set(&mut row, key, &text)).map_err(
            |why| lines.error(value.span().start, format!("row {label:?}, key `{key}`: {why}")),
        )?;
    }
    row.percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(row)
}

fn set(row: &mut Row, key: &str, text: &str) -> Result<(), Invalid> {
    match key {
        "name" => row.name = text.to_owned(),
        "series" => row.series = Some(text.to_owned()),
        "concurrency" => {
            let bare = text.strip_prefix("up to ");
            row.at_most = bare.is_some();
            let cell = Cell::count(bare.unwrap_or(text))?;
            if cell.value.low <= 0.0 {
                return Err("must be above 0".into());
            }
            row.concurrency = Some(Cell { text: text.to_owned(), ..cell });
        }
        "throughput" => row.throughput = Some(Cell::rate(text)?),
        "per_connection" => row.per_connection = Some(Cell::rate(text)?),
        "mean" => row.mean = Some(Cell::time(text)?),
        "min" => row.min = Some(Cell::time(text)?),
        "max" => row.max = Some(Cell::time(text)?),
        "requests" => row.requests = Some(Cell::count(text)?),
        "failures" => row.failures = Some(Cell::count(text)?),
        "duration" => row.duration = Some(Cell::time(text)?),
        "think" => row.think = Some(Cell::time(text)?),
        _ => {
            let percent = key.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
            let Some(percent) = percent.filter(|percent| *percent > 0.0 && *percent < 100.0) else {
                return Err("unknown key; rows have name, series, concurrency, throughput, per_connection, mean, min, max, p50 and the like, requests, failures, duration, think".into());
            };
            row.percentiles.push((percent / 100.0, Cell::time(text)?));
        }
    }
    Ok(())
}

fn claim(lines: &Lines<'_>, rows: &[Row], raw: RawClaim) -> Result<Claim, AuditError> {
    let word = match raw.word.get_ref().as_str() {
        "times" => Word::Times,
        "more" => Word::More,
        "less" => Word::Less,
        "faster" => Word::Faster,
        "slower" => Word::Slower,
        other => {
            let why = format!("word is {other:?}; it must be times, more, less, faster or slower");
            return Err(lines.error(raw.word.span().start, why));
        }
    };
    let figure = |place: &Spanned<String>| {
        find(rows, place.get_ref()).map_err(|why| lines.error(place.span().start, why))
    };
    let value =
        claimed(raw.value.get_ref()).map_err(|why| lines.error(raw.value.span().start, why))?;
    let (of, over) = (figure(&raw.of)?, figure(&raw.over)?);
    if of.better != over.better {
        let why = format!("{:?} and {:?} are not of the same kind", of.place, over.place);
        return Err(lines.error(raw.over.span().start, why));
    }
    Ok(Claim { says: raw.says, word, value, of, over })
}

fn find(rows: &[Row], place: &str) -> Result<Figure, Invalid> {
    let Some((name, column)) = place.rsplit_once(':') else {
        return Err(format!(
            "{place:?} must be a row and a column, such as \"16 users: throughput\""
        )
        .into());
    };
    let (name, column) = (name.trim(), column.trim());
    let Some(row) = rows.iter().find(|row| row.name == name) else {
        return Err(format!("there is no row {name:?} in this table").into());
    };
    let (cell, better) = match column {
        "throughput" => (row.throughput.as_ref(), Better::Higher),
        "per_connection" => (row.per_connection.as_ref(), Better::Higher),
        "requests" => (row.requests.as_ref(), Better::Higher),
        "concurrency" => (row.concurrency.as_ref(), Better::Higher),
        "mean" => (row.mean.as_ref(), Better::Lower),
        "min" => (row.min.as_ref(), Better::Lower),
        "max" => (row.max.as_ref(), Better::Lower),
        "duration" => (row.duration.as_ref(), Better::Lower),
        other => {
            let q = other.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
            let of = q.and_then(|q| row.percentiles.iter().find(|(there, _)| *there == q / 100.0));
            (of.map(|(_, cell)| cell), Better::Lower)
        }
    };
    let Some(cell) = cell else {
        return Err(format!("row {name:?} has no figure {column:?}").into());
    };
    if cell.value.low <= 0.0 {
        return Err(format!("{place:?} may be 0, and no ratio can be made of it").into());
    }
    Ok(Figure { place: place.to_owned(), value: cell.value, better })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"
title = "A report"
source = "https://example.org"
[[table]]
name = "Ladder"
[[table.row]]
name = "1 user"
concurrency = 1
throughput = "990 req/s"
mean = "1.01 ms"
p50 = "1.00 ms"
"p99.9" = "3.2 ms"
requests = "29,700"
failures = 0
[[table.row]]
name = "16 users"
concurrency = "up to 16"
throughput = "5,000/s"
[[table.claim]]
says = "five times the throughput"
value = "5.1x"
word = "times"
of = "16 users: throughput"
over = "1 user: throughput"
"#;

    #[test]
    fn a_sound_file_is_read() {
        let read = Published::parse(SOUND).unwrap();
        let table = &read.tables[0];
        assert!(table.closed && table.rows.len() == 2 && table.claims.len() == 1);
        let row = &table.rows[0];
        assert_eq!(row.percentiles.len(), 2);
        assert_eq!(row.percentiles[1].0, 0.9990000000000001_f64.min(99.9 / 100.0));
        assert_eq!(row.concurrency.as_ref().unwrap().value, Interval::exact(1.0));
        assert!(table.rows[1].at_most);
        assert_eq!(table.claims[0].of.place, "16 users: throughput");
    }

    #[test]
    fn errors_name_line_and_key_and_what_is_expected() {
        let replaced = |from: &str, to: &str| {
            let text = SOUND.replacen(from, to, 1);
            assert_ne!(text, SOUND, "{from}");
            Published::parse(&text).unwrap_err().to_string()
        };
        for (from, to, says) in [
            (
                "mean = \"1.01 ms\"",
                "mean = 1.01",
                "line 10: row \"1 user\", key `mean`: write figures as text, in quotes",
            ),
            (
                "\"1.01 ms\"",
                "\"1.01\"",
                "line 10: row \"1 user\", key `mean`: the time \"1.01\" needs its unit",
            ),
            ("p50 =", "p500 =", "line 11: row \"1 user\", key `p500`: unknown key; rows have name"),
            (
                "\"p99.9\" =",
                "p99.9 =",
                "line 12: row \"1 user\", key `p99`: expected a text in quotes (and quote keys",
            ),
            (
                "concurrency = 1\n",
                "concurrency = 0\n",
                "line 8: row \"1 user\", key `concurrency`: must be above 0",
            ),
            ("name = \"1 user\"\n", "", "line 6: row 1 of this table has no name"),
            ("name = \"16 users\"", "name = \"1 user\"", "two rows called \"1 user\""),
            ("word = \"times\"", "word = \"fold\"", "line 22: word is \"fold\"; it must be times"),
            ("5.1x", "5.1", "line 21: the ratio \"5.1\" must end with x or %"),
            (
                "of = \"16 users: throughput\"",
                "of = \"16 users: p99\"",
                "line 23: row \"16 users\" has no figure \"p99\"",
            ),
            (
                "of = \"16 users: throughput\"",
                "of = \"17 users: p99\"",
                "there is no row \"17 users\"",
            ),
            ("of = \"16 users: throughput\"", "of = \"16 users\"", "must be a row and a column"),
            ("over = \"1 user: throughput\"", "over = \"1 user: mean\"", "not of the same kind"),
            ("source =", "sauce =", "sauce"),
            (
                "name = \"Ladder\"",
                "name = \"Ladder\"\nloop = \"mixed\"",
                "line 6: loop is \"mixed\"",
            ),
            ("title = \"A report\"", "title = ", "line 2: "),
        ] {
            let error = replaced(from, to);
            assert!(error.contains(says), "{to}: {error}");
        }
        let empty = "title = \"a\"\nsource = \"b\"\n";
        assert!(Published::parse(empty).unwrap_err().to_string().contains("no [[table]]"));
        let no_rows = format!("{empty}[[table]]\nname = \"x\"\n");
        assert!(
            Published::parse(&no_rows).unwrap_err().to_string().contains("has no [[table.row]]")
        );
    }
}
