//! `REMOVE n[key]`, which the parser lacks: `SET n[key] = null` does the same.

use super::dynamic_labels;
use super::guard::CLAUSES;
use super::rewrite::Edit;
use super::scan::{Token, TokenKind};

/// Makes a `SET` of each item of a `REMOVE` that ends with a computed key or has labels from
/// expressions.
pub(super) fn rewrite_removal(text: &str, tokens: &[Token], remove: usize, edits: &mut Vec<Edit>) {
    let items = items(text, tokens.get(remove + 1..).unwrap_or_default());
    let is_dynamic = |item: &[Token]| dynamic_labels::is_dynamic(text, item);
    if !items.iter().any(|item| is_computed(item) || is_dynamic(item)) {
        return;
    }
    let mut before = tokens.get(remove).map(|token| token.span.clone()).unwrap_or_default();
    let mut was_plain = false;
    for (index, item) in items.iter().enumerate() {
        let (Some(first), Some(last)) = (item.first(), item.last()) else { return };
        let is_dynamic = is_dynamic(item);
        let is_computed = is_dynamic || is_computed(item);
        // Blanks and comments between the words are left out.
        let blank = if index == 0 { "" } else { " " };
        let word = match (is_computed, was_plain) {
            (true, _) => format!("{blank}SET "),
            (false, true) => ", ".to_owned(),
            (false, false) => format!("{blank}REMOVE "),
        };
        edits.push(Edit { from: before.start, to: first.span.start, new: word });
        if is_dynamic {
            dynamic_labels::rewrite_item(text, item, dynamic_labels::REMOVED, edits);
        } else if is_computed {
            edits.push(Edit { from: last.span.end, to: last.span.end, new: " = null".to_owned() });
        }
        was_plain = !is_computed;
        before = last.span.end..last.span.end;
    }
}

fn is_computed(item: &[Token]) -> bool {
    item.last().is_some_and(|token| token.is_symbol(b']'))
}

/// The items of a list that begins here, up to the next clause or closing bracket.
pub(super) fn items<'t>(text: &str, tokens: &'t [Token]) -> Vec<&'t [Token]> {
    let (mut items, mut depth, mut from) = (Vec::new(), 0_usize, 0_usize);
    let mut end = tokens.len();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Symbol(b'(' | b'[' | b'{') => depth += 1,
            TokenKind::Symbol(b')' | b']' | b'}') if depth > 0 => depth -= 1,
            TokenKind::Symbol(b')' | b']' | b'}' | b'|' | b';') if depth == 0 => {
                end = at;
                break;
            }
            TokenKind::Symbol(b',') if depth == 0 => {
                items.extend(tokens.get(from..at));
                from = at + 1;
            }
            TokenKind::Word if depth == 0 && at > from && is_clause(text, tokens, at) => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    items.extend(tokens.get(from..end));
    items
}

/// Whether a word begins a clause: it is none after a dot or a colon.
fn is_clause(text: &str, tokens: &[Token], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let is_name = before.is_some_and(|it| matches!(it.kind, TokenKind::Symbol(b'.' | b':')));
    let word = |word: &&str| tokens.get(at).is_some_and(|token| token.is_word(text, word));
    !is_name && (CLAUSES.iter().any(&word) || ["FINISH", "ON"].iter().any(&word))
}
