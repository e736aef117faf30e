//! Comments speak of programs, clients and callers, not of a he.

use crate::tokens::{is_of_word, tokens_and_comments};
use crate::{collect, folders, relative, root};
use std::collections::BTreeSet;

/// Crates whose comments are not reworded yet. The list may only shrink: a crate without such
/// words is struck off, and none is added.
const NOT_YET_REWORDED: &[&str] = &["server"];

/// Words for a man, where none in particular is meant.
const REFUSED: [&str; 4] = ["he", "his", "him", "himself"];

/// The words of [`REFUSED`] in the comments of `source`, each with its line.
fn refused_words(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for comment in tokens_and_comments(source).1 {
        for (line, text) in (comment.line..).zip(comment.text.lines()) {
            let words = text.split(|character| !is_of_word(character));
            let refused =
                words.filter(|word| REFUSED.iter().any(|no| no.eq_ignore_ascii_case(word)));
            found.extend(refused.map(|word| (line, word)));
        }
    }
    found
}

#[test]
fn comments_speak_of_no_he() {
    let mut faults = Vec::new();
    for krate in folders(&root().join("crates")) {
        let name = krate.file_name().and_then(|name| name.to_str()).expect("a name");
        let is_listed = NOT_YET_REWORDED.contains(&name);
        let mut files = BTreeSet::new();
        collect(&krate, &mut |path, source| {
            for (line, word) in refused_words(source) {
                files.insert(format!("{}:{line}: {word:?}", relative(path)));
            }
        });
        if is_listed && files.is_empty() {
            faults.push(format!("{name} is reworded: strike it off NOT_YET_REWORDED"));
        } else if !is_listed {
            faults.extend(files);
        }
    }
    let advice = "Name what is meant: the caller, the client, the account.";
    assert!(faults.is_empty(), "{}\n{advice}", faults.join("\n"));
}

#[test]
fn only_whole_words_of_comments_are_refused() {
    let source =
        "/// The client. He\n/// and HIM\nfn he() { \"his\" } /* this\n shell, himself */ // he_s";
    assert_eq!(refused_words(source), [(1, "He"), (2, "HIM"), (4, "himself")]);
}
