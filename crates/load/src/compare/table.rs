//! Tables for terminals and for Markdown, from the same cells.

use super::quantity::clean;

/// Whether a terminal's colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// None: for files, pipes and `NO_COLOR`.
    Plain,
    /// ANSI escape sequences.
    Ansi,
}

/// What a cell says about the thing it describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing.
    Neutral,
    /// An improvement.
    Good,
    /// A regression.
    Bad,
    /// Of less weight than its neighbours.
    Quiet,
}

/// How the cells of a column are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A cell of a [`Table`].
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell without a tone.
    pub fn new(text: impl AsRef<str>) -> Self {
        Cell { text: clean(text.as_ref()), tone: Tone::Neutral }
    }

    /// A cell with a tone.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Cell { text: clean(text.as_ref()), tone }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// Columns with names, and rows with as many cells.
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Indented by two, columns two apart, no trailing blanks.
    #[must_use]
    pub fn text(&self, color: Color) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                let cells = self.rows.iter().map(|row| row[at].width());
                cells.max().unwrap_or(0).max(self.columns[at].0.chars().count())
            })
            .collect();
        let mut text = String::new();
        let head: Vec<Cell> =
            self.columns.iter().map(|(name, _)| Cell::toned(name, Tone::Quiet)).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::from(" ");
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.columns) {
                let space = " ".repeat(width - cell.width());
                let painted = paint(&cell.text, cell.tone, color);
                line.push(' ');
                match align {
                    Align::Left => line.extend([painted.as_str(), &space]),
                    Align::Right => line.extend([space.as_str(), &painted]),
                }
                line.push(' ');
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// As Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let names: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let rules: Vec<String> = self
            .columns
            .iter()
            .map(|(_, align)| if *align == Align::Right { "---:" } else { "---" }.to_owned())
            .collect();
        let mut text = line(&names) + &line(&rules);
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| escaped(&cell.text)).collect();
            text.push_str(&line(&cells));
        }
        text
    }
}

/// Text that Markdown shows as it is, also within a table.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        if matches!(c, '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The text in the colour of its tone.
#[must_use]
pub fn paint(text: &str, tone: Tone, color: Color) -> String {
    let code = match (color, tone) {
        (Color::Plain, _) | (_, Tone::Neutral) => return text.to_owned(),
        (Color::Ansi, Tone::Good) => "32",
        (Color::Ansi, Tone::Bad) => "31",
        (Color::Ansi, Tone::Quiet) => "2",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("name", Align::Left), ("µs", Align::Right)]);
        table.row(vec![Cell::new("a|b"), Cell::toned("12", Tone::Good)]);
        table.row(vec![Cell::new("longer\u{1b}"), Cell::new("3")]);
        table
    }

    #[test]
    fn columns_line_up_with_and_without_colour() {
        let plain = table().text(Color::Plain);
        assert_eq!(plain, "  name     µs\n  a|b      12\n  longer\u{fffd}   3\n");
        let coloured = table().text(Color::Ansi);
        assert!(coloured.contains("\u{1b}[32m12\u{1b}[0m"), "{coloured:?}");
        let stripped = ["\u{1b}[32m", "\u{1b}[2m", "\u{1b}[0m"]
            .iter()
            .fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(stripped, plain);
    }

    #[test]
    fn markdown_is_not_broken_by_what_is_in_it() {
        let text = table().markdown();
        assert!(text.contains("| a\\|b | 12 |"), "{text}");
        assert!(text.contains("| --- | ---: |"), "{text}");
    }
}
