//! Comments, texts and pages speak of programs, clients and callers, not of a man.

use crate::tokens::{is_of_word, tokens_and_comments};
use crate::{collect, relative, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Words for a man, where none in particular is meant.
const REFUSED: [&str; 4] = ["he", "his", "him", "himself"];

/// Files that quote such words: the page on style, and the tests of this rule.
const QUOTING: [&str; 2] = ["docs/style.md", "crates/server/tests/tidy/wording.rs"];

/// Folders below the root that hold source of ours.
pub(crate) const SOURCES: [&str; 6] = ["crates", "loadtest", "sim", "fuzz", "tests", "examples"];

/// The words of [`REFUSED`] in `text`, whose first line has the number `first`, each with its line.
fn refused_words(first: usize, text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in (first..).zip(text.lines()) {
        let words = text.split(|character| !is_of_word(character));
        let refused = words.filter(|word| REFUSED.iter().any(|no| no.eq_ignore_ascii_case(word)));
        found.extend(refused.map(|word| (line, word)));
    }
    found
}

/// The words of [`REFUSED`] in the comments and string literals of `source`.
fn refused_in_source(source: &str) -> Vec<(usize, &str)> {
    let (tokens, comments) = tokens_and_comments(source);
    let texts =
        tokens.iter().filter(|token| token.text.ends_with('"') || token.text.ends_with('#'));
    let texts = texts.map(|token| (token.line, token.text));
    let comments = comments.iter().map(|comment| (comment.line, comment.text));
    texts.chain(comments).flat_map(|(line, text)| refused_words(line, text)).collect()
}

/// Every page of the repository: `*.md`, but for what builds leave behind.
pub(crate) fn pages(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        if path.is_dir() {
            if !["target", "data", "node_modules"].contains(&&*name) && !name.starts_with('.') {
                pages(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

#[test]
fn no_he_in_comments_texts_and_pages() {
    let mut faults = Vec::new();
    let mut tell = |path: &Path, refused: Vec<(usize, &str)>| {
        let name = relative(path);
        if !QUOTING.contains(&name.as_str()) {
            faults.extend(refused.iter().map(|(line, word)| format!("{name}:{line}: {word:?}")));
        }
    };
    for folder in SOURCES {
        collect(&root().join(folder), &mut |path, source| tell(path, refused_in_source(source)));
    }
    let mut found = Vec::new();
    pages(&root(), &mut found);
    assert!(found.len() > 20, "README, docs and decisions are looked at");
    for page in found {
        tell(&page, refused_words(1, &fs::read_to_string(&page).expect("UTF-8")));
    }
    let advice = "Name what is meant: the caller, the client, the account (docs/style.md).";
    assert!(faults.is_empty(), "{}\n{advice}", faults.join("\n"));
}

#[test]
fn only_whole_words_of_comments_and_strings_are_refused() {
    let source = "/// The client. He\n/// and HIM\nfn he() { \"of his\" } /* this\n shell, himself */ \
                  // he_s\nlet he = r#\"to him\"#; 'h'";
    let mut refused = refused_in_source(source);
    refused.sort_unstable();
    assert_eq!(refused, [(1, "He"), (2, "HIM"), (3, "his"), (4, "himself"), (5, "him")]);
}
