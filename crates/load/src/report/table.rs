//! A table of text, laid out as plain columns or as Markdown that reads well as text.

use super::figures::visible;

/// How a column's cells are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// Columns with names, and rows with as many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Name and setting of each column.
    pub(crate) columns: Vec<(String, Align)>,
    /// The rows; shorter ones are filled with empty cells.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose first column holds names and the others numbers.
    pub(crate) fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(at, name)| (name.into(), if at == 0 { Align::Left } else { Align::Right }));
        Table { columns: columns.collect(), rows: Vec::new() }
    }

    /// Sets a column's alignment to the left: it holds words.
    pub(crate) fn words(mut self, column: usize) -> Self {
        self.columns[column].1 = Align::Left;
        self
    }

    /// Adds a row. Cells are made harmless for a terminal.
    pub(crate) fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| visible(cell.as_ref())).collect());
    }

    /// Cells of one row, in columns' order and number.
    pub(crate) fn cells<'a>(&self, row: &'a [String]) -> impl Iterator<Item = &'a str> {
        let missing = self.columns.len().saturating_sub(row.len());
        row.iter().map(String::as_str).chain(std::iter::repeat_n("", missing))
    }

    /// The table as lines, head first, two spaces between columns. If it is wider
    /// than `width`, the first column is shortened, to no less than 12 characters.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut widths = self.widths(std::iter::once(&head).chain(&self.rows));
        let whole: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(whole.saturating_sub(width)).max((*first).min(12));
        }
        let lay = |row: &Vec<String>| {
            let cells = self.cells(row).zip(&self.columns).zip(&widths);
            let cells =
                cells.map(|((cell, (_, align)), width)| pad(&clip(cell, *width), *width, *align));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        std::iter::once(&head).chain(&self.rows).map(lay).collect()
    }

    /// The table in Markdown, its columns lined up, with a newline at the end.
    pub(crate) fn markdown(&self) -> String {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| escape(name)).collect();
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| self.cells(row).map(escape).collect()).collect();
        let widths: Vec<usize> =
            self.widths(std::iter::once(&head).chain(&rows)).iter().map(|w| (*w).max(3)).collect();
        let mut out = String::new();
        let mut line = |row: &[String]| {
            for ((cell, (_, align)), width) in row.iter().zip(&self.columns).zip(&widths) {
                out.push_str("| ");
                out.push_str(&pad(cell, *width, *align));
                out.push(' ');
            }
            out.push_str("|\n");
        };
        line(&head);
        let rule: Vec<String> = self
            .columns
            .iter()
            .zip(&widths)
            .map(|((_, align), width)| match align {
                Align::Left => "-".repeat(*width),
                Align::Right => format!("{}:", "-".repeat(width - 1)),
            })
            .collect();
        line(&rule);
        for row in &rows {
            line(row);
        }
        out
    }

    fn widths<'a>(&self, rows: impl Iterator<Item = &'a Vec<String>>) -> Vec<usize> {
        let mut widths = vec![0; self.columns.len()];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

/// Fills `text` with spaces up to `width` characters.
pub(crate) fn pad(text: &str, width: usize, align: Align) -> String {
    let space = " ".repeat(width.saturating_sub(text.chars().count()));
    match align {
        Align::Left => format!("{text}{space}"),
        Align::Right => format!("{space}{text}"),
    }
}

/// At most `width` characters; what is cut off shows as `…`.
pub(crate) fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// Text from outside as Markdown that shows it as it is.
pub(crate) fn escape(text: &str) -> String {
    let text = visible(text);
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let alphanumeric = |at: Option<usize>| {
        at.and_then(|at| characters.get(at)).is_some_and(|c| c.is_alphanumeric())
    };
    for (at, c) in characters.iter().enumerate() {
        let within_word = alphanumeric(at.checked_sub(1)) && alphanumeric(Some(at + 1));
        let special = match c {
            '\\' | '|' | '`' | '*' | '[' | '~' => true,
            '<' => {
                // `<0.1 %` reads better as it is, and no tag begins with a digit.
                characters.get(at + 1).is_none_or(|next| !next.is_ascii_digit() && *next != ' ')
            }
            '&' => {
                characters.get(at + 1).is_some_and(|next| next.is_alphanumeric() || *next == '#')
            }
            '_' => !within_word,
            '#' => at == 0,
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(*c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["endpoint", "req/s", "p99"]);
        table.row(["GET /a|b", "12 345/s", "1.24 ms"]);
        table.row(["a name that is much too long for a narrow terminal", "1/s", "119 µs"]);
        table
    }

    #[test]
    fn columns_line_up_and_the_name_gives_way() {
        let lines = table().lines(40);
        assert_eq!(
            lines,
            [
                "endpoint                  req/s      p99",
                "GET /a|b               12 345/s  1.24 ms",
                "a name that is much …       1/s   119 µs",
            ]
        );
        assert!(table().lines(5)[2].starts_with("a name that…  "));
    }

    #[test]
    fn markdown_reads_as_text_and_keeps_bars_within_cells() {
        let mut small = Table::new(["what", "n"]).words(1);
        small.row(["a|b"]);
        small.row(["c", "1\n2"]);
        assert_eq!(
            small.markdown(),
            "| what | n   |\n| ---- | --- |\n| a\\|b |     |\n| c    | 1\u{fffd}2 |\n"
        );
    }

    #[test]
    fn what_would_be_formatting_is_escaped() {
        assert_eq!(
            escape("a_b _c_ *d* <e> <0.1 % &amp; [f](g)"),
            "a_b \\_c\\_ \\*d\\* \\<e> <0.1 % \\&amp; \\[f](g)"
        );
        assert_eq!(escape("# no heading #"), "\\# no heading #");
    }
}
