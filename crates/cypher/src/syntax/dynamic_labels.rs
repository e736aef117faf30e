//! Labels and types from expressions where the parser has no place for them.
//!
//! `SET n:A:$(x)` becomes `SET n[['+']] = ['A', (x)]`: a list as a key is otherwise an error, so
//! the lowering knows it. `REMOVE n:$(x)` becomes `SET n[['-']] = [(x)]`. In patterns, where the
//! parser knows `$(x)`, `$all(x)` is the same and `$any(x)` becomes `$({any: x})`.

use super::removal;
use super::rewrite::Edit;
use super::scan::{Token, TokenKind};

/// The key under which labels are added, in a list.
pub(super) const ADDED: &str = "+";
/// The key under which labels are removed, in a list.
pub(super) const REMOVED: &str = "-";
/// The key of a map of which one label or type suffices.
pub(super) const ANY: &str = "any";

/// Rewrites the items of a `SET` that add labels from expressions.
pub(super) fn rewrite_set(text: &str, tokens: &[Token], set: usize, edits: &mut Vec<Edit>) {
    for item in removal::items(text, tokens.get(set + 1..).unwrap_or_default()) {
        if is_dynamic(text, item) {
            rewrite_item(text, item, ADDED, edits);
        }
    }
}

/// Whether an item is `n:A:$(x)`, with at least one expression.
pub(super) fn is_dynamic(text: &str, item: &[Token]) -> bool {
    let [variable, sign, rest @ ..] = item else { return false };
    let begins = variable.is_name() && (sign.is_symbol(b':') || sign.is_word(text, "IS"));
    let mut depth = 0_usize;
    let mut any = false;
    for (at, token) in rest.iter().enumerate() {
        let next_opens = rest.get(at + 1).is_some_and(|next| next.is_symbol(b'('));
        match token.kind {
            TokenKind::Symbol(b'$') if depth == 0 && next_opens => any = true,
            TokenKind::Symbol(b'(' | b'[' | b'{') if depth > 0 || any => depth += 1,
            TokenKind::Symbol(b')' | b']' | b'}') if depth > 0 => depth -= 1,
            TokenKind::Symbol(b':' | b'&') | TokenKind::Word | TokenKind::Quoted => {}
            _ if depth > 0 => {}
            _ => return false,
        }
    }
    begins && any
}

/// Makes an assignment of the labels to a key out of an item.
pub(super) fn rewrite_item(text: &str, item: &[Token], key: &str, edits: &mut Vec<Edit>) {
    let mut replace = |token: &Token, new: String| {
        edits.push(Edit { from: token.span.start, to: token.span.end, new });
    };
    let mut depth = 0_usize;
    for (at, token) in item.iter().enumerate().skip(1) {
        let written = text.get(token.span.clone()).unwrap_or_default();
        match token.kind {
            TokenKind::Symbol(b'(' | b'[' | b'{') => depth += 1,
            TokenKind::Symbol(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ if at == 1 => replace(token, format!("[['{key}']] = [")),
            TokenKind::Symbol(b':' | b'&') => replace(token, ", ".to_owned()),
            TokenKind::Symbol(b'$') => replace(token, String::new()),
            TokenKind::Word | TokenKind::Quoted => {
                let name = written.trim_matches('`').replace("``", "`");
                let name = name.replace('\\', "\\\\").replace('\'', "\\'");
                replace(token, format!("'{name}'"));
            }
            _ => {}
        }
    }
    if let Some(last) = item.last() {
        let at = last.span.end;
        edits.push(Edit { from: at, to: at, new: "]".to_owned() });
    }
}

/// Rewrites `$all(x)` and `$any(x)`, of which this is the dollar. Neither is anything elsewhere.
pub(super) fn rewrite_quantity(text: &str, tokens: &[Token], dollar: usize, edits: &mut Vec<Edit>) {
    let Some([word, open, rest @ ..]) = tokens.get(dollar + 1..) else { return };
    let is_any = word.is_word(text, "any");
    if !open.is_symbol(b'(') || !(is_any || word.is_word(text, "all")) {
        return;
    }
    let mut depth = 0_usize;
    let close = rest.iter().find(|token| match token.kind {
        TokenKind::Symbol(b'(' | b'[' | b'{') => {
            depth += 1;
            false
        }
        TokenKind::Symbol(b')' | b']' | b'}') if depth > 0 => {
            depth -= 1;
            false
        }
        _ => token.is_symbol(b')'),
    });
    let Some(close) = close else { return };
    let (begin, end) = if is_any { (format!("({{{ANY}: "), "}") } else { ("(".to_owned(), "") };
    edits.push(Edit { from: word.span.start, to: open.span.end, new: begin });
    let at = close.span.start;
    edits.push(Edit { from: at, to: at, new: end.to_owned() });
}
