//! Tables of text, laid out for a terminal or as Markdown that reads well as text.

pub use wellspring_readable::text::visible;

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

/// How a column's cells are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A cell of a [`Table`], harmless for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell without a tone.
    pub fn new(text: impl AsRef<str>) -> Self {
        Cell::toned(text, Tone::Neutral)
    }

    /// A cell with a tone.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Cell { text: visible(text.as_ref()), tone }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::new(text)
    }
}

/// Columns with names, and rows with as many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name and setting of each column.
    pub(crate) columns: Vec<(String, Align)>,
    /// The rows; shorter ones are filled with empty cells.
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table whose first column holds words and the others numbers.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(at, name)| (name.into(), if at == 0 { Align::Left } else { Align::Right }));
        Table { columns: columns.collect(), rows: Vec::new() }
    }

    /// Sets a column to the left: it holds words.
    #[must_use]
    pub fn words(mut self, column: usize) -> Self {
        self.columns[column].1 = Align::Left;
        self
    }

    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Cells of one row, in columns' order and number.
    pub(crate) fn cells<'a>(&self, row: &'a [Cell]) -> impl Iterator<Item = &'a str> {
        let missing = self.columns.len().saturating_sub(row.len());
        row.iter().map(|cell| cell.text.as_str()).chain(std::iter::repeat_n("", missing))
    }

    /// The table for a terminal, indented by two.
    #[must_use]
    pub fn text(&self, color: Color) -> String {
        self.laid_out(usize::MAX, color).iter().map(|line| format!("  {line}\n")).collect()
    }

    /// The table as lines. If it is wider than `width`, the first column is shortened, to no less
    /// than 12 characters.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        self.laid_out(width, Color::Plain)
    }

    /// Head first, two spaces between columns, no space at the ends of lines.
    fn laid_out(&self, width: usize, color: Color) -> Vec<String> {
        let head: Vec<Cell> =
            self.columns.iter().map(|(name, _)| Cell::toned(name, Tone::Quiet)).collect();
        let rows = || std::iter::once(&head).chain(&self.rows);
        let mut widths = self.widths(rows().map(|row| self.cells(row)));
        let whole: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(whole.saturating_sub(width)).max((*first).min(12));
        }
        let lay = |row: &Vec<Cell>| {
            let mut line = String::new();
            for (at, ((text, (_, align)), width)) in
                self.cells(row).zip(&self.columns).zip(&widths).enumerate()
            {
                let text = clip(text, *width);
                let space = " ".repeat(width.saturating_sub(text.chars().count()));
                let painted = paint(&text, row.get(at).map_or(Tone::Neutral, |c| c.tone), color);
                line.push_str(if at > 0 { "  " } else { "" });
                match align {
                    Align::Left => line.extend([painted, space]),
                    Align::Right => line.extend([space, painted]),
                }
            }
            line.truncate(line.trim_end().len());
            line
        };
        rows().map(lay).collect()
    }

    /// The table in Markdown, its columns lined up, with a newline at the end.
    #[must_use]
    pub fn markdown(&self) -> String {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| escape(name)).collect();
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| self.cells(row).map(escape).collect()).collect();
        let all = std::iter::once(&head).chain(&rows);
        let widths = self.widths(all.map(|row| row.iter().map(String::as_str)));
        let widths: Vec<usize> = widths.into_iter().map(|width| width.max(3)).collect();
        let rule = self.columns.iter().zip(&widths).map(|((_, align), width)| match align {
            Align::Left => "-".repeat(*width),
            Align::Right => format!("{}:", "-".repeat(width - 1)),
        });
        let mut out = String::new();
        for row in [&head, &rule.collect()].into_iter().chain(&rows) {
            for ((cell, (_, align)), width) in row.iter().zip(&self.columns).zip(&widths) {
                out.extend(["| ", &pad(cell, *width, *align), " "]);
            }
            out.push_str("|\n");
        }
        out
    }

    fn widths<'a, R: Iterator<Item = &'a str>>(&self, rows: impl Iterator<Item = R>) -> Vec<usize> {
        let mut widths = vec![0; self.columns.len()];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

/// The text in the colour of its tone.
#[must_use]
pub(crate) fn paint(text: &str, tone: Tone, color: Color) -> String {
    let code = match (color, tone) {
        (Color::Plain, _) | (_, Tone::Neutral) => return text.to_owned(),
        (Color::Ansi, Tone::Good) => "32",
        (Color::Ansi, Tone::Bad) => "31",
        (Color::Ansi, Tone::Quiet) => "2",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
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
#[must_use]
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
                // `<0.1%` reads better as it is, and no tag begins with a digit.
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
        table.row(["GET /a|b", "12,345/s", "1.24 ms"]);
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
                "GET /a|b               12,345/s  1.24 ms",
                "a name that is much …       1/s   119 µs",
            ]
        );
        assert!(table().lines(5)[2].starts_with("a name that…  "));
    }

    #[test]
    fn columns_line_up_with_and_without_colour() {
        let mut table = Table::new(["name", "µs"]);
        table.row([Cell::new("a|b"), Cell::toned("12", Tone::Good)]);
        table.row(["longer\u{1b}", "3"]);
        let plain = table.text(Color::Plain);
        assert_eq!(plain, "  name     µs\n  a|b      12\n  longer\u{fffd}   3\n");
        let coloured = table.text(Color::Ansi);
        assert!(coloured.contains("\u{1b}[32m12\u{1b}[0m"), "{coloured:?}");
        let stripped = ["\u{1b}[32m", "\u{1b}[2m", "\u{1b}[0m"]
            .iter()
            .fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(stripped, plain);
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
            escape("a_b _c_ *d* <e> <0.1% &amp; [f](g)"),
            "a_b \\_c\\_ \\*d\\* \\<e> <0.1% \\&amp; \\[f](g)"
        );
        assert_eq!(escape("# no heading #"), "\\# no heading #");
    }

    #[test]
    fn escape_sequences_do_not_reach_a_terminal() {
        assert_eq!(visible("a\x1b[2Jb\nc\u{202e}d µ"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d µ");
    }
}
