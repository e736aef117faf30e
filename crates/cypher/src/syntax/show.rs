//! Rewrites `SHOW INDEXES` and `SHOW CONSTRAINTS` to procedure calls.

use super::rewrite::Edit;
use super::scan::{Token, TokenKind};
use crate::procedure::{CONSTRAINT_COLUMNS, INDEX_COLUMNS};

/// Rewrites a `SHOW` statement if it is supported.
///
/// `SHOW INDEXES YIELD name, type AS t WHERE t = 'RANGE'` becomes `CALL db.indexes() YIELD name,
/// type AS t WHERE t = 'RANGE' RETURN name, t`.
pub(super) fn rewrite_show(text: &str, tokens: &[Token], edits: &mut Vec<Edit>) {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|it| it.is_word(text, word));
    let first = usize::from(is(0, "EXPLAIN") || is(0, "PROFILE"));
    if !is(first, "SHOW") {
        return;
    }
    // All indexes are range indexes.
    let what = first + 1 + usize::from(is(first + 1, "ALL") || is(first + 1, "RANGE"));
    let (procedure, columns) = if is(what, "INDEX") || is(what, "INDEXES") {
        ("db.indexes", INDEX_COLUMNS.as_slice())
    } else if (is(what, "CONSTRAINT") || is(what, "CONSTRAINTS")) && !is(first + 1, "RANGE") {
        ("db.constraints", CONSTRAINT_COLUMNS.as_slice())
    } else {
        return;
    };
    let (Some(show), Some(last)) = (tokens.get(first), tokens.get(what)) else { return };
    let rest = tokens.get(what + 1..).unwrap_or_default();
    let all = columns.join(", ");
    let mut call = format!("CALL {procedure}()");
    let mut returned = all.clone();
    if rest.first().is_some_and(|it| it.is_word(text, "WHERE")) {
        call = format!("{call} YIELD {all}");
    } else if let Some(star) = rest.get(1).filter(|it| it.is_symbol(b'*')) {
        edits.push(Edit { from: star.span.start, to: star.span.end, new: all });
    } else {
        returned = yielded(text, rest);
    }
    edits.push(Edit { from: show.span.start, to: last.span.end, new: call });
    let has = |word: &str| rest.iter().any(|it| it.is_word(text, word));
    if let Some(end) = rest.iter().rfind(|it| !it.is_symbol(b';'))
        && has("WHERE")
        && !has("RETURN")
    {
        let at = end.span.end;
        edits.push(Edit { from: at, to: at, new: format!(" RETURN {returned}") });
    }
}

/// The column names in `YIELD name, type AS t WHERE …`.
fn yielded(text: &str, rest: &[Token]) -> String {
    let items = rest.iter().skip(1).take_while(|it| !it.is_word(text, "WHERE"));
    let mut names: Vec<&str> = Vec::new();
    let mut is_new = true;
    for token in items {
        let word = text.get(token.span.clone()).unwrap_or_default();
        match token.kind {
            TokenKind::Symbol(b',') => is_new = true,
            _ if token.is_word(text, "AS") => {
                names.pop();
                is_new = true;
            }
            _ if is_new => {
                names.push(word);
                is_new = false;
            }
            _ => {}
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::rewrite::rewrite;
    use super::super::scan::tokens;

    #[test]
    fn what_is_shown_is_called() {
        let new = |text: &str| rewrite(text, &tokens(text)).text.into_owned();
        assert_eq!(new("SHOW INDEXES"), "CALL db.indexes()");
        assert_eq!(new("show all constraints;"), "CALL db.constraints();");
        assert_eq!(new("SHOW INDEX YIELD name"), "CALL db.indexes() YIELD name");
        let all = super::CONSTRAINT_COLUMNS.join(", ");
        assert_eq!(
            new("SHOW CONSTRAINTS YIELD * WHERE name = 'a';"),
            format!("CALL db.constraints() YIELD {all} WHERE name = 'a' RETURN {all};")
        );
        assert_eq!(
            new("SHOW CONSTRAINT WHERE name = 'a'"),
            format!("CALL db.constraints() YIELD {all} WHERE name = 'a' RETURN {all}")
        );
        assert_eq!(
            new("SHOW RANGE INDEXES YIELD name AS n, type WHERE n = 'a'"),
            "CALL db.indexes() YIELD name AS n, type WHERE n = 'a' RETURN n, type"
        );
        for other in ["SHOW FUNCTIONS", "SHOW TEXT INDEXES", "RETURN 1 AS show", "SHOW"] {
            assert_eq!(new(other), other);
        }
    }
}
