//! Names of types can be searched for: a type is called by a noun, never by a bare participle,
//! question word or preposition.

use crate::tokens::{is_of_word, tokens_and_comments};
use crate::wording::SOURCES;
use crate::{collect, root};
use std::collections::BTreeSet;

/// Words that say nothing when they are the whole name of a type: particles and metaphors.
const VAGUE: &str = "\
    Accepted After Afterwards Again Ahead Answered Around As Asked At Awaited Before Begun Bell \
    By Came Chosen Counted Course Credited Dear Decided Desk Did Done Elsewhere Fallen Forgotten \
    Found From Given Gone Held Here How Inside Issued Joined Judged Kept Known Laid Lane Led \
    Left Lent Looked Lost Made Met Named Of Offered Often On Once Opened Out Own Picked Placed \
    Planned Pressed Purse Ran Reached Read Received Recorded Refused Said Saved Seat Seen Sent \
    Settled Sheet Some Standing Stored Stretch Taken Then Told Touched Tried Turned Understood \
    Unless Unlike Wanted Watched Way What When Where Which Who Whole Whose Why Woken Written";

fn is_vague(name: &str) -> bool {
    VAGUE.split(' ').any(|word| word == name)
}

/// The types that `source` declares under names of [`VAGUE`].
fn vague_types(source: &str) -> Vec<String> {
    let tokens = tokens_and_comments(source).0;
    let declares = |text: &str| ["struct", "enum", "union", "trait", "type"].contains(&text);
    let pairs = tokens.windows(2).filter(|pair| declares(pair[0].text));
    let names = pairs.map(|pair| pair[1].text).filter(|name| is_vague(name));
    names.map(str::to_owned).collect()
}

#[test]
fn names_of_types_can_be_searched_for() {
    let mut vague = BTreeSet::new();
    for folder in SOURCES {
        collect(&root().join(folder), &mut |path, source| {
            let path = path.strip_prefix(root()).expect("below the root").display();
            vague.extend(vague_types(source).iter().map(|name| format!("{path}: {name}")));
        });
    }
    assert!(vague.is_empty(), "call these types by nouns (docs/style.md): {vague:#?}");
}

#[test]
fn a_vague_name_is_seen_wherever_a_type_is_declared() {
    let source = "pub(crate) struct Told<'a> {\n// struct Told\n    enum What {\nstruct ToldApart;\n\
                  let told = Told;\"struct Who\" type Said = ();";
    assert_eq!(vague_types(source), ["Told", "What", "Said"]);
    assert!(VAGUE.split(' ').all(|word| word.chars().all(is_of_word) && !word.is_empty()));
}
