//! The pages that a newcomer reads first: how long they may be, and whether the tests, crates and
//! files that they name are there.

use crate::{collect, crates, root};
use std::fs;
use std::path::Path;

/// Pages with the most bytes that they may have.
const SIZES: &[(&str, usize)] = &[("ARCHITECTURE.md", 12_288), ("docs/testing.md", 8_192)];

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The section of `page` below this heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let mut parts = page.split("\n## ");
    let found = parts.find_map(|part| part.strip_prefix(heading));
    found.unwrap_or_else(|| panic!("no section {heading}"))
}

/// The words of `text` between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_first_pages_are_short() {
    for (name, most) in SIZES {
        let bytes = page(name).len();
        assert!(bytes <= *most, "{name} has {bytes} bytes, {most} are allowed");
    }
}

/// The source of every test.
fn sources_of_tests() -> String {
    let mut sources = String::new();
    let mut add = |path: &Path, content: &str| {
        let of_tests =
            path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
        let rooms_of_tests = ["tests", "log-conformance"];
        let in_tests = |part: &std::ffi::OsStr| rooms_of_tests.iter().any(|room| part == *room);
        if of_tests || path.components().any(|part| in_tests(part.as_os_str())) {
            sources.push_str(content);
        }
    };
    for top in ["crates", "loadtest", "sim"] {
        collect(&root().join(top), &mut add);
    }
    sources
}

#[test]
fn every_test_named_by_an_invariant_or_a_rule_exists() {
    let (invariants, map) = (page("docs/invariants.md"), page("ARCHITECTURE.md"));
    let sources = sources_of_tests();
    let missing = |text: &str, least: usize| {
        let is_test = |word: &&str| word.contains("::") || word.matches('_').count() >= 3;
        let named: Vec<&str> = quoted(text).filter(is_test).collect();
        assert!(named.len() >= least, "the table names tests: {named:?}");
        let is_there = |name: &str| {
            let function = name.rsplit("::").next().expect("a name");
            sources.contains(&format!("fn {function}("))
        };
        named.into_iter().filter(|name| !is_there(name)).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut faults = missing(&invariants, 50);
    faults.extend(missing(section(&map, "Rules"), 10));
    assert!(faults.is_empty(), "no tests are called {faults:#?}");
}

#[test]
fn the_picture_of_floors_has_every_crate() {
    let map = page("ARCHITECTURE.md");
    let picture = section(&map, "Floors").split("```").nth(1).expect("a picture");
    let is_drawn = |name: &str| picture.split_whitespace().any(|word| word == name);
    for (name, _) in crates() {
        let group = name.split_once('/').map(|(group, _)| format!("{group}/*"));
        let name = group.unwrap_or(name);
        assert!(is_drawn(&name), "ARCHITECTURE.md's picture of floors lacks {name}");
    }
}

/// The files and folders that a word of the map stands for: `log/{a,b}.rs` for two.
fn paths(word: &str) -> Vec<String> {
    let braces = word.split_once('{').and_then(|(before, behind)| {
        behind.split_once('}').map(|(names, after)| (before, names, after))
    });
    match braces {
        Some((before, names, after)) => {
            names.split(',').map(|name| format!("{before}{name}{after}")).collect()
        }
        None => vec![word.to_owned()],
    }
}

#[test]
fn every_file_that_the_map_names_exists() {
    let map = page("ARCHITECTURE.md");
    let names: Vec<String> = crates().into_iter().map(|(name, _)| name).collect();
    let mut missing = Vec::new();
    let mut count = 0;
    for path in quoted(&map).filter(|word| word.contains('/')).flat_map(paths) {
        let is_pattern =
            path.contains(['*', ' ']) || ["NAME", "SUITE"].iter().any(|word| path.contains(word));
        let krate = names.iter().find(|name| path.starts_with(&format!("{name}/")));
        let place = match krate {
            Some(krate) if path[krate.len()..].starts_with("/tests/") => format!("crates/{path}"),
            Some(krate) => format!("crates/{krate}/src{}", &path[krate.len()..]),
            None => path.clone(),
        };
        let is_ours = !is_pattern && !path.starts_with('/');
        count += usize::from(is_ours);
        if is_ours && !root().join(&place).exists() {
            missing.push(path);
        }
    }
    assert!(count > 40, "the map names files");
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that are not there: {missing:#?}");
}

#[test]
fn sections_words_and_paths_are_found() {
    let page = "# A\n\n## B\nx `y` `z`\n\n## C\n";
    assert_eq!(quoted(section(page, "B")).collect::<Vec<_>>(), ["y", "z"]);
    assert_eq!(paths("log/{a,b}.rs"), ["log/a.rs", "log/b.rs"]);
    assert_eq!(paths("log/a.rs"), ["log/a.rs"]);
}
