//! The paths that code names from its crate's root: `crate::…`, `super::…` and `self::…`, in a
//! `use` with its groups or within an expression.

use crate::tokens::Token;

/// A path from the root of its crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPath {
    /// At least one; the last may be `*`.
    pub(crate) segments: Vec<String>,
    /// The name that a `use` gives it instead of its last segment.
    pub(crate) alias: Option<String>,
    /// The line of its last segment, from 1.
    pub(crate) line: usize,
}

impl NamedPath {
    /// The name that a `use` brings into scope.
    pub(crate) fn known_as(&self) -> &str {
        self.alias.as_deref().or(self.segments.last().map(String::as_str)).expect("a segment")
    }
}

/// Reads the path that begins at `at` and its branches, as seen from the module `here`, into
/// `found`; returns the place after it. A `self` at the end stands for the path before it.
pub(crate) fn read_path(
    tokens: &[Token<'_>],
    at: usize,
    here: &[String],
    found: &mut Vec<NamedPath>,
) -> usize {
    let mut reader = PathReader { tokens, at, found };
    reader.branch(here.to_vec());
    reader.at
}

struct PathReader<'a, 'b> {
    tokens: &'a [Token<'a>],
    at: usize,
    found: &'b mut Vec<NamedPath>,
}

impl<'a> PathReader<'a, '_> {
    fn text(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    /// Reads one path, or the group that it ends in, after `prefix`.
    fn branch(&mut self, mut prefix: Vec<String>) {
        while self.text(0) != "{" {
            match self.text(0) {
                "crate" => prefix.clear(),
                "super" => _ = prefix.pop(),
                "self" => {}
                name => prefix.push(name.to_owned()),
            }
            let line = self.tokens[self.at].line;
            self.at += 1;
            let next = self.text(1);
            if self.text(0) == "::" && (["{", "*"].contains(&next) || is_name(next)) {
                self.at += 1;
                continue;
            }
            let alias = (self.text(0) == "as").then(|| self.text(1).to_owned());
            self.at += if alias.is_some() { 2 } else { 0 };
            if !prefix.is_empty() {
                self.found.push(NamedPath { segments: prefix, alias, line });
            }
            return;
        }
        self.group(&prefix);
    }

    fn group(&mut self, prefix: &[String]) {
        self.at += 1;
        while !["}", ""].contains(&self.text(0)) {
            if self.text(0) == "," {
                self.at += 1;
            } else {
                self.branch(prefix.to_vec());
            }
        }
        self.at += 1;
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[test]
fn a_path_is_read_with_its_groups_from_where_it_stands() {
    let read = |source: &str| {
        let (tokens, _) = crate::tokens::tokens_and_comments(source);
        let mut found = Vec::new();
        let end = read_path(&tokens, 0, &["a".to_owned(), "b".to_owned()], &mut found);
        let named = found.iter().map(|path| {
            let alias = path.alias.as_ref().map(|alias| format!(" as {alias}"));
            format!("{}: {}{}", path.line, path.segments.join("::"), alias.unwrap_or_default())
        });
        (named.collect::<Vec<_>>(), tokens.get(end).map_or("", |token| token.text).to_owned())
    };
    let (found, next) = read("crate::{x,\n y::{self, z as w, v::*},\n super::u};");
    assert_eq!(found, ["1: x", "2: y", "2: y::z as w", "2: y::v::*", "3: u"]);
    assert_eq!(next, ";");
    assert_eq!(read("super::super::x::Y { z }"), (vec!["1: x::Y".to_owned()], "{".to_owned()));
    assert_eq!(read("super::x::<Y>()"), (vec!["1: a::x".to_owned()], "::".to_owned()));
    assert_eq!(read("self::x;").0, ["1: a::b::x"]);
    assert_eq!(read("super::{super::x, y};").0, ["1: x", "1: a::y"]);
    assert_eq!(read("super::super::super::x;").0, ["1: x"]);
}
