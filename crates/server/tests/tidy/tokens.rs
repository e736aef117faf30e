//! Rust source split into words, marks and comments: just enough grammar to find paths, modules and
//! `#[cfg(test)]` without mistaking a comment or a string for code.

/// A word, a mark or a literal of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// As written; a raw identifier without `r#`, a string with its quotes, `::` as one mark.
    pub(crate) text: &'a str,
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
    /// Whether it is compiled only for tests.
    pub(crate) in_test: bool,
}

/// A comment, with its slashes; documentation is one too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comment<'a> {
    pub(crate) text: &'a str,
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
}

/// The tokens and the comments of `source`, each in its order.
pub(crate) fn tokens_and_comments(source: &str) -> (Vec<Token<'_>>, Vec<Comment<'_>>) {
    let mut cutter = Cutter { source, at: 0, line: 1, tokens: Vec::new(), comments: Vec::new() };
    while cutter.at < source.len() {
        cutter.cut();
    }
    mark_tests(&mut cutter.tokens);
    (cutter.tokens, cutter.comments)
}

struct Cutter<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    tokens: Vec<Token<'a>>,
    comments: Vec<Comment<'a>>,
}

impl<'a> Cutter<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    /// Takes the next token, comment or white space; at least one byte.
    fn cut(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().expect("the source has not ended");
        if first.is_whitespace() {
            let is_code = |character: char| !character.is_whitespace();
            self.pass(rest.find(is_code).unwrap_or(rest.len()));
        } else if rest.starts_with("//") {
            self.comment(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.comment(block_comment_bytes(rest));
        } else if let Some(length) = literal_bytes(rest) {
            self.token(length, 0);
        } else if let Some(name) = rest.strip_prefix("r#") {
            self.token(2 + word_bytes(name), 2);
        } else if is_of_word(first) {
            self.token(word_bytes(rest), 0);
        } else if rest.starts_with("::") {
            self.token(2, 0);
        } else {
            self.token(first.len_utf8(), 0);
        }
    }

    fn token(&mut self, length: usize, skipped: usize) {
        let text = &self.rest()[skipped..length];
        self.tokens.push(Token { text, line: self.line, in_test: false });
        self.pass(length);
    }

    fn comment(&mut self, length: usize) {
        self.comments.push(Comment { text: &self.rest()[..length], line: self.line });
        self.pass(length);
    }

    fn pass(&mut self, length: usize) {
        assert!(length > 0, "line {} is not passed", self.line);
        self.line += self.rest()[..length].matches('\n').count();
        self.at += length;
    }
}

pub(crate) fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn word_bytes(rest: &str) -> usize {
    rest.find(|character| !is_of_word(character)).unwrap_or(rest.len())
}

fn block_comment_bytes(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest.as_bytes()[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.as_bytes()[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of the string, character or lifetime at the start of `rest`, if there is one.
fn literal_bytes(rest: &str) -> Option<usize> {
    if !rest.starts_with(['"', '\'', 'b', 'c', 'r']) {
        return None;
    }
    let prefix = ["br", "cr", "b", "c", "r"].into_iter().find(|prefix| {
        let behind = rest.strip_prefix(prefix);
        behind.is_some_and(|behind| behind.starts_with(['"', '#', '\'']))
    });
    let prefix = prefix.unwrap_or("");
    let behind = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = behind.len() - behind.trim_start_matches('#').len();
        let text = behind[hashes..].strip_prefix('"')?; // or else a raw identifier
        let end = format!("\"{}", "#".repeat(hashes));
        let length = text.find(&end).map_or(text.len(), |at| at + end.len());
        return Some(prefix.len() + hashes + 1 + length);
    }
    if behind.starts_with('"') {
        return Some(prefix.len() + quoted_bytes(behind, b'"'));
    }
    if !behind.starts_with('\'') {
        return None;
    }
    let mut characters = behind[1..].chars();
    let (first, second) = (characters.next()?, characters.next());
    if first == '\\' || second == Some('\'') {
        return Some(prefix.len() + quoted_bytes(behind, b'\''));
    }
    Some(prefix.len() + 1 + word_bytes(&behind[1..])) // a lifetime
}

/// The length of a text between `quote`s at the start of `rest`, including the quotes.
fn quoted_bytes(rest: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (at, &byte) in rest.as_bytes().iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Marks what is under `#[cfg(test)]` or `#[cfg(all(test, …))]`: the item, field, arm or statement
/// after the attribute, or the rest of the file if the attribute is `#![cfg(test)]`.
fn mark_tests(tokens: &mut [Token<'_>]) {
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text != "#" {
            at += 1;
            continue;
        }
        let inner = usize::from(is(tokens, at + 1, "!"));
        let asked =
            ["cfg", "("].iter().zip(at + 2 + inner..).all(|(text, at)| is(tokens, at, text));
        let is_attribute = is(tokens, at + 1 + inner, "[") && asked;
        let condition = at + 4 + inner;
        let only_tests = is(tokens, condition, "test") && is(tokens, condition + 1, ")")
            || is(tokens, condition, "all") && is(tokens, condition + 2, "test");
        if !is_attribute || !only_tests {
            at += 1;
            continue;
        }
        let end = if inner == 1 { tokens.len() } else { end_of_item(tokens, at) };
        for token in &mut tokens[at..end] {
            token.in_test = true;
        }
        at = end;
    }
}

fn is(tokens: &[Token<'_>], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|token| token.text == text)
}

/// Where the item ends whose first attribute begins at `at`.
fn end_of_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    const ITEMS: [&str; 14] = [
        "fn",
        "mod",
        "use",
        "impl",
        "struct",
        "enum",
        "trait",
        "const",
        "static",
        "type",
        "union",
        "macro_rules",
        "let",
        "extern",
    ];
    const UP_TO_SEMICOLON: [&str; 5] = ["use", "const", "static", "type", "let"];
    while is(tokens, at, "#") {
        at = end_of_bracket(tokens, at + 1);
    }
    let mut keyword = at;
    while ["pub", "unsafe", "async", "default", "(", "crate", "super", "in", ")"]
        .iter()
        .any(|word| is(tokens, keyword, word))
    {
        keyword += 1;
    }
    if is(tokens, keyword, "const")
        && ["fn", "unsafe"].iter().any(|fun| is(tokens, keyword + 1, fun))
    {
        keyword += 1;
    }
    let word = tokens.get(keyword).map_or("", |token| token.text);
    let is_item = ITEMS.contains(&word);
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            ")" | "]" | "}" => return at, // the end of what holds the field, arm or statement
            "(" | "[" | "{" => {
                at = end_of_bracket(tokens, at);
                if token.text == "{" && !UP_TO_SEMICOLON.contains(&word) {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// The place after the bracket that closes the one at `at`.
fn end_of_bracket(tokens: &[Token<'_>], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at
}

#[test]
fn comments_strings_characters_and_lifetimes_hold_no_code() {
    let source = r####"// one "
        /* two /* three */ " */ fn a<'b>(c: &'b str) -> char { '"' }
        const D: &str = "crate::x \" // no";
        const E: &str = r##"a "# b"##; const F: u8 = b'\''; const G: &[u8] = br"\";
        let r#type = '\u{1F600}'; 'é' 1.5e3 x::y"####;
    let (tokens, comments) = tokens_and_comments(source);
    let texts: Vec<&str> = tokens.iter().map(|token| token.text).collect();
    assert_eq!(
        texts.join(" "),
        "fn a < 'b > ( c : & 'b str ) - > char { '\"' } \
         const D : & str = \"crate::x \\\" // no\" ; \
         const E : & str = r##\"a \"# b\"## ; const F : u8 = b'\\'' ; \
         const G : & [ u8 ] = br\"\\\" ; let type = '\\u{1F600}' ; 'é' 1 . 5e3 x :: y"
    );
    let comments: Vec<_> = comments.iter().map(|comment| (comment.text, comment.line)).collect();
    assert_eq!(comments, [("// one \"", 1), ("/* two /* three */ \" */", 2)]);
    assert_eq!(tokens.last().map(|token| token.line), Some(5));
}

/// The words of `source` that are not only compiled for tests, without marks.
#[cfg(test)]
fn product_words(source: &str) -> String {
    let (tokens, _) = tokens_and_comments(source);
    let product = tokens.iter().filter(|token| !token.in_test);
    let words = product.map(|token| token.text).filter(|text| text.starts_with(is_of_word));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_stands_under_cfg_test_is_marked() {
    assert_eq!(product_words("a; #[cfg(test)] mod tests { fn x() { y } } b"), "a b");
    assert_eq!(product_words("a; #[cfg(test)] #[path = \"t.rs\"] mod tests; b"), "a b");
    assert_eq!(product_words("#[cfg(test)] use x::{y, z}; b"), "b");
    assert_eq!(product_words("#[cfg(test)] const X: Y = Y { z: 1 }; b"), "b");
    assert_eq!(product_words("#[cfg(test)] pub(crate) const fn x<A, B>() { y } b"), "b");
    assert_eq!(product_words("#[cfg(test)] impl<A, B> C for D<A, B> where A: E, B: F { } b"), "b");
    assert_eq!(product_words("struct A { #[cfg(test)] x: (B, C), d: E }"), "struct A d E");
    assert_eq!(product_words("match a { #[cfg(test)] B => c(d, e), F => g }"), "match a F g");
    assert_eq!(product_words("{ #[cfg(all(test, unix))] x: B } c"), "c");
    assert_eq!(product_words("#![cfg(test)] use x; fn y() {}"), "");
    assert_eq!(product_words("#[cfg(not(test))] fn a() {}"), "cfg not test fn a");
    assert_eq!(product_words("#[cfg(any(test, x))] fn a() {}"), "cfg any test x fn a");
}
