//! A page of Markdown being written: every text is escaped on its way in.

use super::table::{Table, escape};

/// The page so far.
pub(crate) struct Page {
    out: String,
}

impl Page {
    /// A page that begins with its title.
    pub(crate) fn titled(title: &str) -> Self {
        Page { out: format!("# {}\n", escape(title)) }
    }

    /// The page's text.
    pub(crate) fn into_text(self) -> String {
        self.out
    }

    fn paragraph(&mut self, text: &str) {
        self.out.push('\n');
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// A heading of the second level.
    pub(crate) fn heading(&mut self, text: &str) {
        self.paragraph(&format!("## {}", escape(text)));
    }

    /// A heading of the third level.
    pub(crate) fn small_heading(&mut self, text: &str) {
        self.paragraph(&format!("### {}", escape(text)));
    }

    /// A paragraph.
    pub(crate) fn text(&mut self, text: &str) {
        self.paragraph(&escape(text));
    }

    /// A table.
    pub(crate) fn table(&mut self, table: &Table) {
        self.out.push('\n');
        self.out.push_str(&table.markdown());
    }

    /// Sentences as a list.
    pub(crate) fn list(&mut self, lines: &[String]) {
        self.out.push('\n');
        for line in lines {
            self.out.push_str(&format!("- {}\n", escape(line)));
        }
    }
}
