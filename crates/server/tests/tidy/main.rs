//! `ARCHITECTURE.md` names every folder of the tree and no other. Further house rules that a
//! program can check are here too.

#![allow(clippy::disallowed_methods)]

mod circles;
mod comment_width;
mod modules;
mod page_links;
mod paths;
mod promql;
mod rooms;
mod tokens;
mod type_names;
mod watched;
mod wording;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The folders of the code map, as paths from the root.
fn mapped(text: &str) -> BTreeSet<String> {
    let map = text.split("## Code map").nth(1).expect("a code map");
    let block = map.split("```").nth(1).expect("a fenced block");
    let mut parent = String::new();
    let mut found = BTreeSet::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let name = line.split_whitespace().next().expect("a name").trim_end_matches('/');
        if line.starts_with(' ') {
            found.insert(format!("{parent}/{name}"));
        } else {
            parent = name.to_owned();
            found.insert(parent.clone());
        }
    }
    found
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// The crates of the workspace, each by its path below `crates`: `log`, `faces/links`.
fn crates() -> Vec<(String, PathBuf)> {
    let top = root().join("crates");
    let (crates, groups): (Vec<_>, Vec<_>) =
        folders(&top).into_iter().partition(|folder| folder.join("Cargo.toml").exists());
    let grouped = groups.iter().flat_map(|group| folders(group));
    let name = |krate: &Path| krate.strip_prefix(&top).expect("below").display().to_string();
    crates.into_iter().chain(grouped).map(|krate| (name(&krate), krate)).collect()
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").display().to_string()
}

#[test]
fn the_code_map_and_the_tree_agree() {
    let map = mapped(&fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map"));
    for path in &map {
        assert!(root().join(path).is_dir(), "ARCHITECTURE.md names {path}, which is not there");
    }
    // Every top-level folder, every crate's src and tests, and every folder within a src.
    let mut there = Vec::new();
    for top in folders(&root()) {
        let name = relative(&top);
        if !["target", "data", "dist", "crates"].contains(&name.as_str()) && !name.starts_with('.')
        {
            there.push(name);
        }
    }
    for (_, krate) in crates() {
        for part in folders(&krate).iter().filter(|p| p.ends_with("src") || p.ends_with("tests")) {
            there.push(relative(part));
            if part.ends_with("src") {
                there.extend(folders(part).iter().map(|folder| relative(folder)));
            }
        }
    }
    for path in there {
        assert!(map.contains(&path), "{path} is missing from ARCHITECTURE.md's code map");
    }
}

#[test]
fn every_test_named_by_an_invariant_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let mut sources = String::new();
    let mut add = |path: &Path, content: &str| {
        let of_tests =
            path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
        let rooms_of_tests = ["tests", "conformance"];
        let in_tests = |part: &std::ffi::OsStr| rooms_of_tests.iter().any(|room| part == *room);
        if of_tests || path.components().any(|part| in_tests(part.as_os_str())) {
            sources.push_str(content);
        }
    };
    for top in ["crates", "loadtest", "sim"] {
        collect(&root().join(top), &mut add);
    }
    let table = text.split("## Invariants").nth(1).expect("the table");
    let named = table.split('`').filter(|word| word.contains("::") && !word.ends_with('*'));
    let mut count = 0;
    for name in named {
        let function = name.rsplit("::").next().expect("a name");
        assert!(sources.contains(&format!("fn {function}(")), "no test is called {name}");
        count += 1;
    }
    assert!(count >= 4, "the table names tests");
}

/// Calls `visit` with every Rust source file below `dir`.
fn collect(dir: &Path, visit: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, visit);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path, &fs::read_to_string(&path).expect("UTF-8"));
        }
    }
}

#[test]
fn files_fit_in_a_head() {
    const MOST_LINES: usize = 560;
    collect(&root().join("crates"), &mut |path, content| {
        let code = content.split("#[cfg(test)]").next().expect("the first part");
        let lines = code.lines().count();
        let tests = path.components().any(|part| part.as_os_str() == "tests");
        assert!(tests || lines <= MOST_LINES, "{} has {lines} lines", path.display());
    });
}

#[test]
fn the_log_the_views_and_the_load_tester_stay_in_their_rooms() {
    let forbidden: [(&str, &[&str]); 4] = [
        ("loadtest/engine/src", &["wellspring_log", "wellspring_types", "tokio", "hyper"]),
        ("crates/types/src", &["std::fs", "std::net", "std::thread", "serde", "tokio"]),
        ("crates/log/src", &["std::net", "serde", "tokio", "hyper"]),
        (
            "crates/views/src",
            &["std::fs", "std::net", "std::thread", "std::time", "tokio", "hyper"],
        ),
    ];
    for (dir, words) in forbidden {
        collect(&root().join(dir), &mut |path, content| {
            for word in words {
                let used = content.lines().any(|line| {
                    !line.trim_start().starts_with("//") && line.contains(&format!("{word}::"))
                });
                assert!(!used, "{} uses {word}", path.display());
            }
        });
    }
}

#[test]
fn words_without_meaning_are_not_names() {
    collect(&root().join("crates"), &mut |path, _| {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        for word in ["util", "utils", "helper", "helpers", "manager", "common", "misc"] {
            assert_ne!(name, word, "{}", path.display());
        }
    });
}
