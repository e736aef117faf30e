//! Limits checked before parsing: the parser and everything after it recurse.

use super::scan::{Token, TokenKind};
use crate::error::{Detail, Error, ErrorKind, Result};

/// Maximum nesting of brackets, and of signs before a value: the parser takes the square of their
/// number.
const MOST_BRACKETS: usize = 200;

/// Maximum nesting of operators and the brackets around them.
const MOST_NESTED: usize = 5_000;

/// Maximum length of a text.
const MOST_BYTES: usize = 4 << 20;

/// Maximum number of tokens: a syntax tree takes about 160 bytes for each.
pub(super) const MOST_TOKENS: usize = 250_000;

/// Words that nest the following or preceding expression.
const OPERATORS: [&str; 10] =
    ["AND", "OR", "XOR", "NOT", "IN", "STARTS", "ENDS", "CONTAINS", "IS", "CASE"];

/// Words that start a clause and so end all expressions before them outside of brackets.
pub(super) const CLAUSES: [&str; 14] = [
    "MATCH", "OPTIONAL", "RETURN", "WITH", "UNWIND", "CREATE", "MERGE", "SET", "REMOVE", "DELETE",
    "DETACH", "CALL", "UNION", "FOREACH",
];

/// Refuses texts that are too long to be scanned.
pub(super) fn check_length(text: &str) -> Result<()> {
    if text.len() > MOST_BYTES {
        return Err(too_much(format!(
            "The statement has {} bytes; at most {MOST_BYTES} are accepted. Pass data as parameters.",
            text.len()
        )));
    }
    Ok(())
}

/// Refuses texts that would need too deep a recursion, with the byte position; otherwise returns an
/// upper bound of the syntax tree's depth.
pub(super) fn check(text: &str, tokens: &[Token]) -> Result<usize, (Error, usize)> {
    if tokens.len() > MOST_TOKENS {
        let message = format!(
            "The statement has more than {MOST_TOKENS} words and signs. Pass data as parameters."
        );
        return Err((too_much(message), text.len()));
    }
    // For each open bracket, the number of operators before it on its level.
    let mut open: Vec<usize> = Vec::new();
    let (mut outside, mut level, mut deepest) = (0_usize, 0_usize, 0_usize);
    let mut prefixes = 0_usize;
    for token in tokens {
        let is_prefix =
            matches!(token.kind, TokenKind::Symbol(b'+' | b'-')) || token.is_word(text, "NOT");
        prefixes = if is_prefix { prefixes + 1 } else { 0 };
        if prefixes > MOST_BRACKETS {
            let message = format!("More than {MOST_BRACKETS} signs before one value.");
            return Err((too_much(message), token.span.start));
        }
        match token.kind {
            TokenKind::Symbol(b'(' | b'[' | b'{') => {
                level += 1;
                open.push(level);
                outside += level;
                level = 0;
                if open.len() > MOST_BRACKETS {
                    let message = format!("Brackets are nested more than {MOST_BRACKETS} deep.");
                    return Err((too_much(message), token.span.start));
                }
            }
            TokenKind::Symbol(b')' | b']' | b'}') => {
                level = open.pop().unwrap_or(0);
                outside = outside.saturating_sub(level);
            }
            TokenKind::Symbol(b',' | b';') => level = 0,
            TokenKind::Symbol(_) => level += 1,
            TokenKind::Word if OPERATORS.iter().any(|word| token.is_word(text, word)) => level += 1,
            TokenKind::Word if CLAUSES.iter().any(|word| token.is_word(text, word)) => level = 0,
            _ => {}
        }
        deepest = deepest.max(outside + level);
        if deepest > MOST_NESTED {
            let message = format!(
                "More than {MOST_NESTED} operators in one expression. Pass a list as a parameter instead."
            );
            return Err((too_much(message), token.span.start));
        }
    }
    Ok(deepest)
}

fn too_much(message: String) -> Error {
    Error::compile(ErrorKind::SyntaxError, Detail::LimitExceeded, message)
}

#[cfg(test)]
mod tests {
    use super::super::scan::tokens;
    use super::check;

    #[test]
    fn deep_and_long_expressions_are_refused_and_long_lists_are_not() {
        let depth = |text: &str| check(text, &tokens(text)).map_err(|(error, _)| error.message);
        assert!(depth(&format!("RETURN {}1{}", "(".repeat(199), ")".repeat(199))).is_ok());
        assert!(depth(&format!("RETURN {}1{}", "[".repeat(100_000), "]".repeat(100_000))).is_err());
        assert!(depth(&format!("RETURN 1{}", "+1".repeat(5_001))).is_err());
        for prefix in ["NOT ", "-", "+", "- NOT +"] {
            let signs = |count: usize| format!("RETURN {}1", prefix.repeat(count));
            assert!(depth(&signs(201)).is_err(), "{prefix}");
            assert!(depth(&signs(66)).is_ok(), "{prefix}");
        }
        assert!(depth(&format!("RETURN x{}", "[0]".repeat(5_001))).is_err());
        assert!(depth(&format!("RETURN x{}", "[1+1+1+1+1+1".repeat(200))).unwrap() < 2_000);
        assert!(depth(&format!("RETURN [{}]", "-1,".repeat(50_000))).unwrap() < 10);
        assert!(depth(&format!("RETURN [{}]", "-1,".repeat(100_000))).is_err());
        assert!(depth(&"CREATE (:A {b: 1 + 1}) ".repeat(5_000)).unwrap() < 10);
    }
}
