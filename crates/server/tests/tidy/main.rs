//! The house rules that a program can check: the maps equal the tree, imports run downwards, pages
//! fit, names and words are ours.

#![allow(clippy::disallowed_methods)]

mod circles;
mod code_map;
mod comment_width;
mod decisions;
mod errors;
mod maps;
mod modules;
mod page_links;
mod paths;
mod promql;
mod purity;
mod rooms;
mod tokens;
mod type_names;
mod watched;
mod wording;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// What is in a folder, by name.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    found.sort();
    found
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    entries(dir).into_iter().filter(|path| path.is_dir()).collect()
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
fn the_log_and_the_load_tester_stay_in_their_rooms() {
    let forbidden: [(&str, &[&str]); 3] = [
        ("loadtest/engine/src", &["wellspring_log", "wellspring_types", "tokio", "hyper"]),
        ("crates/types/src", &["std::fs", "std::net", "std::thread", "serde", "tokio"]),
        ("crates/log/src", &["std::net", "serde", "tokio", "hyper"]),
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
