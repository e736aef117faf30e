//! The names of columns that have no alias: what was written, to the letter. The parser's tree has no places for
//! projection items, so they are taken from its syntax tree below.

use std::collections::HashMap;

use decypher::Parse;
use decypher::cst::{AstNode, ProjectionBody, ReturnClause, WithClause};

use super::scan;

/// The texts of the items of every `WITH` and `RETURN`, by where the clause begins.
pub(super) struct Columns {
    texts: HashMap<usize, Vec<String>>,
}

impl Columns {
    /// Those of a text.
    pub(super) fn of(parse: &Parse, text: &str) -> Self {
        let mut texts = HashMap::new();
        for node in parse.tree.descendants() {
            let start = usize::from(node.text_range().start());
            let body = match ReturnClause::cast(node.clone()) {
                Some(clause) => clause.projection_body(),
                None => WithClause::cast(node).and_then(|clause| clause.projection_body()),
            };
            if let Some(body) = body {
                texts.insert(start, items(&body, text));
            }
        }
        Self { texts }
    }

    /// The text of an item of the clause that begins there.
    pub(super) fn text(&self, clause: usize, item: usize) -> Option<&str> {
        self.texts.get(&clause).and_then(|items| items.get(item)).map(String::as_str)
    }
}

fn items(body: &ProjectionBody, text: &str) -> Vec<String> {
    let ranges = body.items().map(|item| item.syntax().text_range());
    ranges
        .map(|range| written(text, usize::from(range.start()), usize::from(range.end())))
        .collect()
}

/// What is written there, without the blanks and comments around it.
fn written(text: &str, from: usize, to: usize) -> String {
    let text = text.get(from..to).unwrap_or_default();
    let tokens = scan::tokens(text);
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => text.get(first.span.start..last.span.end),
        _ => None,
    }
    .unwrap_or_default()
    .to_owned()
}
