//! A tokenizer for the guards, the rewriting and the schema commands.

use super::guard::MOST_TOKENS;
use std::ops::Range;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or a name without backticks.
    Word,
    /// A name in backticks.
    Quoted,
    Number,
    /// A string literal.
    String,
    /// One character of punctuation.
    Symbol(u8),
}

/// A token and its range in the text.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Range<usize>,
}

impl Token {
    /// Whether it is this keyword, ignoring case.
    pub(super) fn is_word(&self, text: &str, word: &str) -> bool {
        self.kind == TokenKind::Word
            && text.get(self.span.clone()).is_some_and(|found| found.eq_ignore_ascii_case(word))
    }

    /// Whether it is this punctuation character.
    pub(super) fn is_symbol(&self, symbol: u8) -> bool {
        self.kind == TokenKind::Symbol(symbol)
    }

    /// Whether it is a name, with or without backticks.
    pub(super) fn is_name(&self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Quoted)
    }
}

/// The tokens of a text, without blanks and comments; stops once there are too many. An unclosed
/// token ends with the text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity((bytes.len() / 4).min(MOST_TOKENS));
    let mut at = 0;
    while let Some(&byte) = bytes.get(at).filter(|_| tokens.len() <= MOST_TOKENS) {
        let start = at;
        let kind = match byte {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = end_of_line(bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = end_of_comment(bytes, at + 2);
                continue;
            }
            b'\'' | b'"' => {
                at = end_of_string(bytes, at + 1, byte);
                TokenKind::String
            }
            b'`' => {
                at = end_of_quoted(bytes, at + 1);
                TokenKind::Quoted
            }
            b'0'..=b'9' => {
                at = end_of_word(bytes, at);
                TokenKind::Number
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                at = end_of_word(bytes, at);
                TokenKind::Word
            }
            // Blanks beyond ASCII count as letters here: only guards and rewriting use these
            // tokens.
            0x80.. => {
                at = end_of_word(bytes, at);
                TokenKind::Word
            }
            byte if byte.is_ascii_whitespace() || byte < b' ' => {
                at += 1;
                continue;
            }
            symbol => {
                at += 1;
                TokenKind::Symbol(symbol)
            }
        };
        tokens.push(Token { kind, span: start..at });
    }
    tokens
}

/// An unclosed token, with its kind and position.
pub(super) fn unclosed(text: &str, tokens: &[Token]) -> Option<(usize, &'static str)> {
    let bytes = text.as_bytes();
    let last = tokens.last();
    if let Some(last) = last {
        let inside = text.get(last.span.clone()).unwrap_or_default();
        let (is_open, what) = match last.kind {
            TokenKind::String => (!is_closed(inside, '\\'), "string"),
            // Two backticks stand for one in the name, so a closed name has an even number.
            TokenKind::Quoted => (inside.matches('`').count() % 2 == 1, "name in backticks"),
            _ => (false, ""),
        };
        if is_open {
            return Some((last.span.start, what));
        }
    }
    let mut at = last.map_or(0, |last| last.span.end);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('/')) {
        let start = at + found;
        at = match bytes.get(start + 1) {
            Some(b'/') => end_of_line(bytes, start),
            Some(b'*') => end_of_comment(bytes, start + 2),
            _ => return None,
        };
        let is_block = bytes.get(start + 1) == Some(&b'*');
        if is_block && !text.get(start + 2..at).unwrap_or_default().ends_with("*/") {
            return Some((start, "comment"));
        }
    }
    None
}

/// Whether a string ends with its opening quote.
fn is_closed(string: &str, escape: char) -> bool {
    let mut letters = string.chars();
    let quote = letters.next();
    while let Some(letter) = letters.next() {
        if letter == escape {
            letters.next();
        } else if Some(letter) == quote {
            return true;
        }
    }
    false
}

fn end_of_line(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(bytes.len(), |at| from + at)
}

fn end_of_comment(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.windows(2).position(|pair| pair == b"*/").map_or(bytes.len(), |at| from + at + 2)
}

fn end_of_string(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_quoted(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte == b'`' {
            // Two backticks stand for one in the name.
            if bytes.get(at) != Some(&b'`') {
                return at;
            }
            at += 1;
        }
    }
    bytes.len()
}

fn end_of_word(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    rest.iter().position(|byte| !is_part(byte)).map_or(bytes.len(), |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::tokens;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| &text[token.span]).collect()
    }

    #[test]
    fn strings_names_and_comments_are_single_or_left_out() {
        assert_eq!(
            words("RETURN 'a\\'(' /* ( */ + `x``(` // (\n+ 12.5"),
            ["RETURN", "'a\\'('", "+", "`x``(`", "+", "12", ".", "5"]
        );
        assert_eq!(words("'open"), ["'open"]);
        assert_eq!(words("`open"), ["`open"]);
        assert!(words("/* open").is_empty());
        assert_eq!(words("'ends with \\"), ["'ends with \\"]);
    }

    #[test]
    fn what_is_never_closed_is_found() {
        let unclosed = |text: &str| super::unclosed(text, &tokens(text));
        assert_eq!(unclosed("RETURN 'a"), Some((7, "string")));
        assert_eq!(unclosed("RETURN 'a\\'"), Some((7, "string")));
        assert_eq!(unclosed("RETURN \"a'"), Some((7, "string")));
        assert_eq!(unclosed("RETURN 1 AS `a``"), Some((12, "name in backticks")));
        assert_eq!(unclosed("RETURN 1 // a\n /* b */ /* c"), Some((23, "comment")));
        assert_eq!(unclosed("/*/"), Some((0, "comment")));
        for closed in ["RETURN 'a\\''", "RETURN 1 AS `a```", "RETURN 1 /* c */ // /*", "", "/**/"] {
            assert_eq!(unclosed(closed), None, "{closed}");
        }
    }
}
