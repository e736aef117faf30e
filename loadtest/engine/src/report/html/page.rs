//! A page of HTML being written: every text is escaped on its way in, and nothing outside the page
//! is needed.

use crate::report::view;
use crate::result::Verdict;
use crate::table::{Align, Table, visible};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// Text as it may stand in an element or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The page so far.
pub(super) struct Page {
    pub(super) out: String,
}

impl Page {
    /// A page that begins with its title, a line about it and the verdict.
    pub(super) fn titled(title: &str, about: &str, verdict: Option<&Verdict>) -> Self {
        let title = escape(title);
        let mut page = Page { out: String::new() };
        let _ = write!(
            page.out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p class=\"faint\">{}</p>\n",
            escape(about)
        );
        page.verdict(verdict);
        page
    }

    /// The whole page; its last text is the verdict.
    pub(super) fn ended(mut self, verdict: Option<&Verdict>) -> String {
        self.verdict(verdict);
        self.out.push_str("</main>\n</body>\n</html>\n");
        self.out
    }

    pub(super) fn section(&mut self, title: &str) {
        let _ = writeln!(self.out, "<h2>{}</h2>", escape(title));
    }

    pub(super) fn heading(&mut self, title: &str) {
        let _ = writeln!(self.out, "<h3>{}</h3>", escape(title));
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.out, "<p>{}</p>", escape(text));
    }

    /// A table; its first column holds the names of the rows.
    pub(super) fn table(&mut self, table: &Table) {
        let class = |align: Align| if align == Align::Right { " class=\"n\"" } else { "" };
        self.out.push_str("<div class=\"scroll\"><table>\n");
        if table.columns.len() > 2 || !table.columns[0].0.is_empty() {
            self.out.push_str("<thead><tr>");
            for (name, align) in &table.columns {
                let _ =
                    write!(self.out, "<th scope=\"col\"{}>{}</th>", class(*align), escape(name));
            }
            self.out.push_str("</tr></thead>\n");
        }
        self.out.push_str("<tbody>\n");
        for row in &table.rows {
            self.out.push_str("<tr>");
            for (at, (cell, (_, align))) in table.cells(row).zip(&table.columns).enumerate() {
                let cell = escape(cell);
                let _ = if at == 0 {
                    write!(self.out, "<th scope=\"row\">{cell}</th>")
                } else {
                    write!(self.out, "<td{}>{cell}</td>", class(*align))
                };
            }
            self.out.push_str("</tr>\n");
        }
        self.out.push_str("</tbody></table></div>\n");
    }

    pub(super) fn tiles(&mut self, tiles: &[(&str, String)]) {
        self.out.push_str("<div class=\"tiles\">\n");
        for (name, figure) in tiles {
            let _ = writeln!(
                self.out,
                "<div class=\"tile\"><b>{}</b><span>{}</span></div>",
                escape(figure),
                escape(name)
            );
        }
        self.out.push_str("</div>\n");
    }

    fn verdict(&mut self, verdict: Option<&Verdict>) {
        let class = match verdict {
            None => "unchecked",
            Some(Verdict::Trusted) => "trusted",
            Some(Verdict::UseWithCare(_)) => "care",
            Some(Verdict::NotMeasurable(_)) => "stop",
        };
        let text = escape(&view::verdict(verdict));
        let _ = writeln!(self.out, "<p class=\"verdict {class}\">{text}</p>");
    }
}
