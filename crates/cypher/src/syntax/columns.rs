//! Details that the parser's AST omits, taken from its concrete syntax tree: the names of columns
//! without an alias (exactly as written), and conditions inside patterns.

use std::collections::HashMap;

use decypher::Parse;
use decypher::ast::expr::Expression as Tree;
use decypher::ast::query::{QueryBody, SinglePartBody, SingleQueryKind};
use decypher::cst::{
    AstNode, NodePattern, ProjectionBody, RelationshipDetail, ReturnClause, WhereClause, WithClause,
};

use super::{Source, scan};

/// The texts of the items of every `WITH` and `RETURN`, by start of the clause.
pub(super) struct Columns {
    texts: HashMap<usize, Vec<String>>,
    /// Conditions inside patterns: start of the pattern; start and end of the condition.
    conditions: HashMap<usize, (usize, usize)>,
}

impl Columns {
    /// Extracts them from a text.
    pub(super) fn of(parse: &Parse, source: &Source<'_>) -> Self {
        let (mut texts, mut conditions) = (HashMap::new(), HashMap::new());
        for node in parse.tree.descendants() {
            let start = usize::from(node.text_range().start());
            if NodePattern::can_cast(node.kind()) || RelationshipDetail::can_cast(node.kind()) {
                let clause = node.children().find_map(WhereClause::cast);
                if let Some(range) = clause.map(|clause| clause.syntax().text_range()) {
                    conditions
                        .insert(start, (usize::from(range.start()), usize::from(range.end())));
                }
            }
            let body = match ReturnClause::cast(node.clone()) {
                Some(clause) => clause.projection_body(),
                None => WithClause::cast(node).and_then(|clause| clause.projection_body()),
            };
            if let Some(body) = body {
                texts.insert(start, items(&body, source));
            }
        }
        Self { texts, conditions }
    }

    /// The text of an item of the clause at this position.
    pub(super) fn text(&self, clause: usize, item: usize) -> Option<&str> {
        self.texts.get(&clause).and_then(|items| items.get(item)).map(String::as_str)
    }
}

impl Columns {
    /// The condition inside the pattern at this position, if it has one.
    pub(super) fn condition(&self, pattern: usize, text: &str) -> Option<decypher::Result<Tree>> {
        let (from, to) = *self.conditions.get(&pattern)?;
        let condition = text.get(from..to)?;
        let condition = condition.get("WHERE".len()..)?;
        // Parsed as the item of a RETURN at the same offset, so that errors refer to the right
        // position.
        let blanks = " ".repeat((from + "WHERE".len()).saturating_sub("RETURN".len()));
        Some(decypher::parse(format!("RETURN{blanks}{condition}").as_str()).map(|mut query| {
            super::precedence::mend(&mut query);
            only_item(query).unwrap_or(Tree::Literal(decypher::ast::expr::Literal::Null))
        }))
    }
}

fn only_item(query: decypher::Query) -> Option<Tree> {
    let QueryBody::SingleQuery(single) = query.statements.into_iter().next()? else { return None };
    let SingleQueryKind::SinglePart(part) = single.kind else { return None };
    let SinglePartBody::Return(result) = part.body else { return None };
    result.items.into_iter().next().map(|item| item.expression)
}

fn items(body: &ProjectionBody, source: &Source<'_>) -> Vec<String> {
    let ranges = body.items().map(|item| item.syntax().text_range());
    ranges
        .map(|range| {
            let (from, to) = (usize::from(range.start()), usize::from(range.end()));
            written(source.written, source.original(from), source.original(to))
        })
        .collect()
}

/// The text in a range, without surrounding blanks and comments.
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
