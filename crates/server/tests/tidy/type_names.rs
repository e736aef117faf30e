//! Names of types can be searched for: a type is called by a noun, never by a bare participle,
//! question word or preposition.

use crate::tokens::{is_of_word, tokens_and_comments};
use crate::wording::SOURCES;
use crate::{collect, root};
use std::collections::BTreeSet;
use std::path::Path;

/// Words that say nothing when they are the whole name of a type.
const VAGUE: &str = "\
    Accepted After Afterwards Again Ahead Answered Around As Asked At Awaited Before Begun By \
    Came Chosen Counted Credited Decided Did Done Elsewhere Fallen Forgotten Found From Given \
    Gone Held Here How Inside Issued Joined Judged Kept Known Laid Led Left Lent Looked Lost \
    Made Met Named Of Offered Often On Once Opened Out Own Picked Placed Planned Pressed Ran \
    Reached Read Received Recorded Refused Said Saved Seen Sent Settled Some Stored Taken Then \
    Told Touched Tried Turned Understood Unless Unlike Wanted Watched Way What When Where \
    Which Who Whole Whose Why Woken Written";

/// Types that still have such names, each after its crate. The list may only shrink: a type that
/// is renamed is struck off, and none is added.
const NOT_YET_RENAMED: &[&str] = &[
    "cli From",
    "cli Issued",
    "cli Out",
    "cli Some",
    "load Found",
    "load From",
    "load Held",
    "load Inside",
    "load Kept",
    "load Laid",
    "load Made",
    "load Once",
    "load Own",
    "load Said",
    "load Sent",
    "load Unlike",
    "load Written",
    "views Recorded",
];

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

/// The crate of a source file, as its path below `crates` (`faces/links`), or its folder.
fn crate_of(path: &Path) -> String {
    let path = path.strip_prefix(root()).expect("below the root").display().to_string();
    let path = path.strip_prefix("crates/").unwrap_or(&path);
    let end = ["/src/", "/tests/", "/examples/", "/benches/"].iter().filter_map(|s| path.find(s));
    path[..end.min().or_else(|| path.find('/')).unwrap_or(path.len())].to_owned()
}

#[test]
fn names_of_types_can_be_searched_for() {
    let mut there = BTreeSet::new();
    for folder in SOURCES {
        collect(&root().join(folder), &mut |path, source| {
            let krate = crate_of(path);
            there.extend(vague_types(source).iter().map(|name| format!("{krate} {name}")));
        });
    }
    let known: BTreeSet<String> = NOT_YET_RENAMED.iter().map(|&name| name.to_owned()).collect();
    let added: Vec<_> = there.difference(&known).collect();
    assert!(added.is_empty(), "call these types by nouns (docs/style.md): {added:#?}");
    let renamed: Vec<_> = known.difference(&there).collect();
    assert!(renamed.is_empty(), "strike these off NOT_YET_RENAMED: {renamed:#?}");
    assert!(NOT_YET_RENAMED.is_sorted(), "NOT_YET_RENAMED is in alphabetical order");
}

#[test]
fn a_vague_name_is_seen_wherever_a_type_is_declared() {
    let source = "pub(crate) struct Told<'a> {\n// struct Told\n    enum What {\nstruct ToldApart;\n\
                  let told = Told;\"struct Who\" type Said = ();";
    assert_eq!(vague_types(source), ["Told", "What", "Said"]);
    assert!(VAGUE.split(' ').all(|word| word.chars().all(is_of_word) && !word.is_empty()));
}

#[test]
fn a_crate_is_named_by_its_path() {
    let of = |path: &str| crate_of(&root().join(path));
    assert_eq!(of("crates/faces/links/src/redirects/path.rs"), "faces/links");
    assert_eq!(of("crates/log/tests/log/main.rs"), "log");
    assert_eq!(of("sim/src/main.rs"), "sim");
    assert_eq!(of("tests/cluster/src/main.rs"), "tests/cluster");
    assert_eq!(of("examples/faces/counters.rs"), "examples");
}
