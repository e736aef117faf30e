//! Data files: rows from which requests take values.

use crate::invalid::Invalid;
use std::path::Path;

/// In which order users take rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Dealt to the workers like cards, from the first again after the last.
    Sequential,
    /// Any row, as the user's generator has it.
    Random,
    /// Each row once; steps that need one are not taken when all are used up.
    Once,
    /// The row with the user's number, always the same.
    User,
}

/// Words for [`Order`] in a scenario file.
pub(crate) const ORDERS: [(&str, Order); 4] = [
    ("sequential", Order::Sequential),
    ("random", Order::Random),
    ("once", Order::Once),
    ("user", Order::User),
];

/// Rows of texts, all equally long.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) order: Order,
    pub(crate) columns: Vec<String>,
    cells: Vec<String>,
}

/// The largest number of rows.
const MOST_ROWS: usize = 10_000_000;

impl Table {
    /// How many rows there are; at least one.
    pub(crate) fn rows(&self) -> u32 {
        u32::try_from(self.cells.len() / self.columns.len().max(1)).unwrap_or(u32::MAX)
    }

    /// The text in a row and column.
    pub(crate) fn cell(&self, row: u32, column: u16) -> Option<&str> {
        let width = self.columns.len();
        if usize::from(column) >= width {
            return None;
        }
        self.cells.get(row as usize * width + usize::from(column)).map(String::as_str)
    }

    /// All texts, row by row.
    pub(crate) fn cells(&self) -> &[String] {
        &self.cells
    }

    /// Reads a file's text; its kind is told by the name.
    pub(crate) fn parse(name: &Path, text: &str, order: Order) -> Result<Table, Invalid> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let extension = name.extension().and_then(|end| end.to_str()).unwrap_or_default();
        let (columns, cells) = match extension.to_ascii_lowercase().as_str() {
            "csv" => separated(text, ',')?,
            "tsv" => separated(text, '\t')?,
            "ndjson" | "jsonl" => lines_of_json(text)?,
            "json" => array_of_json(text)?,
            _ => {
                return Err("expected a file ending in .csv, .tsv, .ndjson, .jsonl or .json".into());
            }
        };
        if columns.is_empty() || cells.is_empty() {
            return Err("it has no rows".into());
        }
        if cells.len() / columns.len() > MOST_ROWS {
            return Err(format!("it has more than {MOST_ROWS} rows").into());
        }
        if let Some(empty) = columns.iter().position(String::is_empty) {
            return Err(format!("column {} has no name", empty + 1).into());
        }
        for (at, name) in columns.iter().enumerate() {
            if columns[..at].contains(name) {
                return Err(format!("two columns are called {name:?}").into());
            }
        }
        Ok(Table { order, columns, cells })
    }
}

type Rows = (Vec<String>, Vec<String>);

/// Comma-separated values with a heading (RFC 4180; line ends with or without CR).
fn separated(text: &str, separator: char) -> Result<Rows, Invalid> {
    let mut records = Records { rest: text, separator, line: 1 };
    let Some(columns) = records.next()? else { return Err("it is empty".into()) };
    let mut cells = Vec::new();
    loop {
        let line = records.line;
        let Some(row) = records.next()? else { break };
        if row.len() == 1 && row[0].is_empty() {
            continue; // an empty line
        }
        if row.len() != columns.len() {
            return Err(format!(
                "line {line} has {} where the heading has {}",
                counted(row.len(), "value"),
                columns.len()
            )
            .into());
        }
        cells.extend(row);
    }
    Ok((columns, cells))
}

fn counted(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

struct Records<'t> {
    rest: &'t str,
    separator: char,
    line: usize,
}

impl Records<'_> {
    fn next(&mut self) -> Result<Option<Vec<String>>, Invalid> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut row = Vec::new();
        loop {
            let value = if self.rest.starts_with('"') { self.quoted()? } else { self.plain() };
            row.push(value);
            if let Some(rest) = self.rest.strip_prefix(self.separator) {
                self.rest = rest;
                continue;
            }
            let rest = self.rest.strip_prefix('\r').unwrap_or(self.rest);
            self.rest = rest.strip_prefix('\n').unwrap_or(rest);
            self.line += 1;
            return Ok(Some(row));
        }
    }

    fn plain(&mut self) -> String {
        let end = self.rest.find([self.separator, '\n']).unwrap_or(self.rest.len());
        let (value, rest) = self.rest.split_at(end);
        self.rest = rest;
        if rest.starts_with(self.separator) {
            value.to_owned()
        } else {
            value.strip_suffix('\r').unwrap_or(value).to_owned()
        }
    }

    fn quoted(&mut self) -> Result<String, Invalid> {
        let line = self.line;
        let mut value = String::new();
        self.rest = &self.rest[1..];
        loop {
            let end = self
                .rest
                .find('"')
                .ok_or_else(|| format!("line {line}: a quotation mark is never closed"))?;
            let part = &self.rest[..end];
            self.line += part.matches('\n').count();
            value.push_str(part);
            self.rest = &self.rest[end + 1..];
            match self.rest.strip_prefix('"') {
                Some(rest) => {
                    value.push('"');
                    self.rest = rest;
                }
                None => break,
            }
        }
        let next = self.rest.chars().next();
        if next.is_some_and(|c| c != self.separator && c != '\n' && c != '\r') {
            return Err(format!("line {}: text after a closing quotation mark", self.line).into());
        }
        Ok(value)
    }
}

fn array_of_json(text: &str) -> Result<Rows, Invalid> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(text)
        .map_err(|error| format!("expected a JSON array of objects: {error}"))?;
    objects(rows.into_iter().enumerate().map(|(at, row)| (format!("row {}", at + 1), row)))
}

fn lines_of_json(text: &str) -> Result<Rows, Invalid> {
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        rows.push((format!("line {}", at + 1), row));
    }
    objects(rows.into_iter())
}

fn objects(rows: impl Iterator<Item = (String, serde_json::Value)>) -> Result<Rows, Invalid> {
    let mut columns: Vec<String> = Vec::new();
    let mut cells = Vec::new();
    for (place, row) in rows {
        let serde_json::Value::Object(mut row) = row else {
            return Err(format!("{place}: expected an object like {{\"name\": \"value\"}}").into());
        };
        if columns.is_empty() {
            columns = row.keys().cloned().collect();
        }
        for column in &columns {
            let value = row.remove(column).ok_or_else(|| format!("{place} has no {column:?}"))?;
            cells.push(match value {
                serde_json::Value::String(text) => text,
                serde_json::Value::Null => String::new(),
                other => other.to_string(),
            });
        }
        if let Some(more) = row.keys().next() {
            return Err(format!("{place} has {more:?}, which the first row has not").into());
        }
    }
    Ok((columns, cells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(name: &str, text: &str) -> Result<Table, Invalid> {
        Table::parse(Path::new(name), text, Order::Sequential)
    }

    #[test]
    fn every_format_gives_the_same_rows() {
        let csv = "name,age\r\n\"O\"\"Hara, K.\",7\r\n\"two\nlines\",\r\n\r\n";
        let ndjson =
            "{\"name\":\"O\\\"Hara, K.\",\"age\":7}\n\n{\"name\":\"two\\nlines\",\"age\":null}\n";
        let json =
            "[{\"name\":\"O\\\"Hara, K.\",\"age\":7},{\"name\":\"two\\nlines\",\"age\":\"\"}]";
        for (file, text) in [("a.csv", csv), ("a.NDJSON", ndjson), ("a.json", json)] {
            let table = table(file, text).unwrap();
            let column = |name| {
                let at = table.columns.iter().position(|there| there == name).unwrap();
                u16::try_from(at).unwrap()
            };
            assert_eq!(table.rows(), 2, "{file}");
            assert_eq!(table.cell(0, column("name")), Some("O\"Hara, K."), "{file}");
            assert_eq!(table.cell(0, column("age")), Some("7"), "{file}");
            assert_eq!(table.cell(1, column("name")), Some("two\nlines"), "{file}");
            assert_eq!(table.cell(1, column("age")), Some(""), "{file}");
            assert_eq!(table.cell(2, 0), None);
            assert_eq!(table.cell(0, 2), None);
        }
        assert_eq!(table("a.tsv", "\u{feff}a\tb\n1,5\t2").unwrap().cell(0, 0), Some("1,5"));
    }

    #[test]
    fn a_bad_row_is_named() {
        for (file, text, expected) in [
            ("a.csv", "a,b\n1,2\n3\n", "line 3 has 1 value where the heading has 2"),
            ("a.csv", "a,b\n\"x\ny\",2\n\"3", "line 4: a quotation mark"),
            ("a.csv", "a\n\"3\"x\n", "line 2: text after"),
            ("a.csv", "a,a\n1,2\n", "two columns"),
            ("a.csv", "a,\n1,2\n", "column 2 has no name"),
            ("a.csv", "a,b\n", "no rows"),
            ("a.csv", "", "empty"),
            ("a.ndjson", "{\"a\":1}\n{\"b\":1}\n", "line 2 has no \"a\""),
            ("a.ndjson", "{\"a\":1}\n{\"a\":1,\"b\":1}\n", "line 2 has \"b\""),
            ("a.ndjson", "{\"a\":1}\n{\n", "line 2:"),
            ("a.json", "{}", "array of objects"),
            ("a.json", "[1]", "row 1: expected an object"),
            ("a.txt", "a", "expected a file ending"),
        ] {
            let error = table(file, text).unwrap_err();
            assert!(error.to_string().contains(expected), "{file} {text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a,\"\n\r{}:1]{0,60}", file in "a\\.(csv|json|ndjson)") {
            if let Ok(table) = table(&file, &text) {
                prop_assert!(table.rows() >= 1);
                prop_assert!(table.cell(0, 0).is_some());
            }
        }
    }
}
