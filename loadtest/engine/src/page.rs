//! A page of text being written: for a terminal, or as Markdown. Every text is made harmless, and
//! in Markdown escaped, on its way out.

use crate::table::{Color, Table, Tone, escape, paint, visible};

/// A title and what follows it, in order.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
enum Block {
    Heading(String),
    SmallHeading(String),
    Text(String),
    Table(Table),
    List(Vec<(String, Tone)>),
}

impl Page {
    /// A page without content.
    pub fn titled(title: impl Into<String>) -> Self {
        Page { title: title.into(), blocks: Vec::new() }
    }

    /// A heading of the second level.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    /// A heading of the third level.
    pub(crate) fn small_heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::SmallHeading(text.into()));
    }

    /// A paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    /// A table.
    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Sentences as a list; nothing if there are none.
    pub fn list(&mut self, lines: impl IntoIterator<Item = String>) {
        self.toned_list(lines.into_iter().map(|line| (line, Tone::Neutral)));
    }

    /// Sentences as a list, those with a tone in bold or in colour; nothing if there are none.
    pub fn toned_list(&mut self, lines: impl IntoIterator<Item = (String, Tone)>) {
        let lines: Vec<(String, Tone)> = lines.into_iter().collect();
        if !lines.is_empty() {
            self.blocks.push(Block::List(lines));
        }
    }

    /// As Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", escape(&self.title));
        for block in &self.blocks {
            out.push('\n');
            out.push_str(&match block {
                Block::Heading(text) => format!("## {}\n", escape(text)),
                Block::SmallHeading(text) => format!("### {}\n", escape(text)),
                Block::Text(text) => format!("{}\n", escape(text)),
                Block::Table(table) => table.markdown(),
                Block::List(lines) => lines
                    .iter()
                    .map(|(line, tone)| match tone {
                        Tone::Neutral | Tone::Quiet => format!("- {}\n", escape(line)),
                        Tone::Good | Tone::Bad => format!("- **{}**\n", escape(line)),
                    })
                    .collect(),
            });
        }
        out
    }

    /// For a terminal, without the title.
    #[must_use]
    pub fn terminal(&self, color: Color) -> String {
        let blocks = self.blocks.iter().map(|block| match block {
            Block::Heading(text) | Block::SmallHeading(text) | Block::Text(text) => {
                format!("{}\n", visible(text))
            }
            Block::Table(table) => table.text(color),
            Block::List(lines) => lines
                .iter()
                .map(|(line, tone)| format!("{}\n", paint(&visible(line), *tone, color)))
                .collect(),
        });
        blocks.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_content_is_a_page_and_a_screen() {
        let mut page = Page::titled("a *b*");
        page.heading("One");
        page.text("two\u{1b}");
        page.list([]);
        page.toned_list([("x|y".to_owned(), Tone::Bad), ("z".to_owned(), Tone::Neutral)]);
        assert_eq!(page.markdown(), "# a \\*b\\*\n\n## One\n\ntwo\u{fffd}\n\n- **x\\|y**\n- z\n");
        assert_eq!(page.terminal(Color::Plain), "One\n\ntwo\u{fffd}\n\nx|y\nz\n");
        assert!(page.terminal(Color::Ansi).contains("\u{1b}[31mx|y\u{1b}[0m\nz\n"));
    }
}
