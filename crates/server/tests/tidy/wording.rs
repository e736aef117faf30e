//! Comments speak of programs, clients and callers, not of a man.

use crate::tokens::{is_of_word, tokens_and_comments};
use crate::{collect, crates, relative};
use std::collections::BTreeSet;

/// Crates whose comments are not reworded yet. The list may only shrink: a crate without such
/// words is struck off, and none is added.
const NOT_YET_REWORDED: &[&str] = &[];

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
    for (name, krate) in crates() {
        let is_listed = NOT_YET_REWORDED.contains(&name.as_str());
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

/// Participles and question words that say nothing when somebody searches for a type.
const VAGUE: &[&str] = &[
    "Accepted", "Answered", "As", "Asked", "Begun", "Counted", "Credited", "Done", "Found",
    "Given", "Gone", "Held", "How", "Kept", "Known", "Left", "Lost", "Made", "Of", "Often", "Once",
    "Opened", "Ran", "Read", "Recorded", "Refused", "Said", "Seen", "Sent", "Settled", "Stored",
    "Taken", "Told", "Wanted", "Way", "What", "When", "Where", "Which", "Who", "Whose", "Why",
    "Written",
];

/// How many types of each crate still have such names. The numbers may only fall; crates that are
/// not named have none.
const NOT_YET_RENAMED: &[(&str, usize)] = &[("load", 15), ("views", 1)];

/// The types that `source` declares under names of [`VAGUE`].
fn vague_types(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in source.lines() {
        let mut words = line.split(|character| !is_of_word(character)).filter(|w| !w.is_empty());
        let is_type = |word: &&str| ["struct", "enum", "trait"].contains(word);
        let declares = words.by_ref().take(4).find(is_type).is_some();
        let is_code = !line.trim_start().starts_with("//");
        found.extend(words.next().filter(|name| declares && is_code && VAGUE.contains(name)));
    }
    found.into_iter().map(str::to_owned).collect()
}

#[test]
fn names_of_types_can_be_searched_for() {
    for (name, krate) in crates() {
        let mut types = Vec::new();
        collect(&krate.join("src"), &mut |path, source| {
            let of_file = vague_types(source).into_iter();
            types.extend(of_file.map(|name| format!("{}: {name}", relative(path))));
        });
        let known = NOT_YET_RENAMED.iter().find(|(known, _)| *known == name).map_or(0, |(_, n)| *n);
        let list = types.join("\n");
        assert!(types.len() <= known, "{name}: {} types, {known} known\n{list}", types.len());
        assert!(types.len() >= known, "{name} has {} such types: lower its number", types.len());
    }
}

#[test]
fn a_vague_name_is_seen_wherever_a_type_is_declared() {
    let source = "pub(crate) struct Told<'a> {\n// struct Told\n    enum What {\nstruct ToldApart;\nlet told = Told;";
    assert_eq!(vague_types(source), ["Told", "What"]);
}

#[test]
fn only_whole_words_of_comments_are_refused() {
    let source =
        "/// The client. He\n/// and HIM\nfn he() { \"his\" } /* this\n shell, himself */ // he_s";
    assert_eq!(refused_words(source), [(1, "He"), (2, "HIM"), (4, "himself")]);
}
