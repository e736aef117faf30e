//! The modules of a crate, followed from its roof, and the names that each room uses of another.
//!
//! A **room** is a module that the roof (`lib.rs`, or `main.rs` where there is none) declares with
//! a file or folder of its own. An **arrow** leads from a room to one whose names it uses; a name
//! that the roof re-exports belongs to the room that defines it. Code compiled only for tests draws
//! no arrows, nor does the roof.

use crate::paths::{NamedPath, is_name, read_path};
use crate::tokens::{Token, tokens_and_comments};
use std::collections::{BTreeMap, BTreeSet};

/// The files of a crate: from paths below its `src`, with `/`, to their contents.
pub(crate) type Files = BTreeMap<String, String>;

/// A name that one room uses of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: String,
    /// A room other than `from`.
    pub(crate) to: String,
    /// The path as from the crate's root.
    pub(crate) name: String,
    /// The file below `src` that uses it, and the line, from 1.
    pub(crate) place: (String, usize),
}

/// The rooms of a crate.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    pub(crate) names: BTreeSet<String>,
    pub(crate) arrows: Vec<Arrow>,
    /// Names used by rooms that the roof itself defines; `to` is the roof's file.
    pub(crate) from_the_roof: Vec<Arrow>,
    /// Files that no module declares: the parser failed to find them, or they are not compiled.
    pub(crate) unreached: Vec<String>,
}

/// Reads the modules of a crate, starting at its roof.
pub(crate) fn rooms_of(files: &Files) -> Rooms {
    let roof = ["lib.rs", "main.rs"].into_iter().find(|roof| files.contains_key(*roof));
    let roof = roof.expect("a crate has lib.rs or main.rs");
    let mut unread = vec![Module {
        file: roof.to_owned(),
        path: Vec::new(),
        folder: String::new(),
        in_test: false,
    }];
    let mut readings = Vec::new();
    let mut reached = BTreeSet::new();
    while let Some(module) = unread.pop() {
        reached.insert(module.file.clone());
        let (tokens, _) = tokens_and_comments(&files[&module.file]);
        let reading = Reading::of(&tokens, &module);
        unread.extend(reading.declared.iter().map(|declared| declared.found(&module, files)));
        readings.push((module, reading));
    }
    let declared_by_roof = &readings[0].1;
    let names: BTreeSet<String> = (declared_by_roof.declared.iter())
        .filter(|declared| !declared.in_test && declared.inline.is_empty())
        .map(|declared| declared.name.clone())
        .collect();
    let re_exports: BTreeMap<String, String> = (declared_by_roof.uses.iter())
        .filter(|path| names.contains(&path.segments[0]) && path.segments.len() > 1)
        .map(|path| (path.known_as().to_owned(), path.segments[0].clone()))
        .collect();
    let mut rooms = Rooms {
        unreached: files.keys().filter(|file| !reached.contains(*file)).cloned().collect(),
        ..Rooms::default()
    };
    for (module, reading) in readings.iter().filter(|(module, _)| !module.path.is_empty()) {
        let from = &module.path[0];
        for path in reading.paths.iter().filter(|path| path.segments[0] != *from) {
            let first = &path.segments[0];
            let to = names.get(first).or_else(|| re_exports.get(first));
            let arrow = Arrow {
                from: from.clone(),
                to: to.cloned().unwrap_or_else(|| roof.to_owned()),
                name: path.segments.join("::"),
                place: (module.file.clone(), path.line),
            };
            match to {
                Some(to) if to == from => {}
                Some(_) => rooms.arrows.push(arrow),
                None => rooms.from_the_roof.push(arrow),
            }
        }
    }
    rooms.names = names;
    rooms.arrows.sort();
    rooms.from_the_roof.sort();
    rooms
}

/// A module that has a file.
struct Module {
    file: String,
    /// From the crate's root, whose own is empty.
    path: Vec<String>,
    /// Where the files of its modules are: empty, or ending in `/`.
    folder: String,
    in_test: bool,
}

/// `mod name;`
struct Declared {
    name: String,
    /// The inline modules around it, outermost first.
    inline: Vec<String>,
    /// The value of `#[path = "…"]`.
    file: Option<String>,
    in_test: bool,
}

impl Declared {
    fn found(&self, parent: &Module, files: &Files) -> Module {
        let mut path = parent.path.clone();
        path.extend(self.inline.iter().cloned());
        path.push(self.name.clone());
        let in_test = parent.in_test || self.in_test;
        if let Some(file) = &self.file {
            let folder = parent.file.rsplit_once('/').map_or("", |(folder, _)| folder);
            let file = format!("{folder}/{file}").trim_start_matches('/').to_owned();
            let folder =
                file.rsplit_once('/').map_or(String::new(), |(above, _)| format!("{above}/"));
            return Module { file, path, folder, in_test };
        }
        let inline: String = self.inline.iter().map(|name| format!("{name}/")).collect();
        let stem = format!("{}{inline}{}", parent.folder, self.name);
        let candidates = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
        let file = candidates.into_iter().find(|file| files.contains_key(file));
        let file = file.unwrap_or_else(|| panic!("{} declares {stem}: no file", parent.file));
        Module { file, path, folder: format!("{stem}/"), in_test }
    }
}

/// The modules and paths of one file.
#[derive(Default)]
struct Reading {
    declared: Vec<Declared>,
    /// Paths named by code that is not only for tests.
    paths: Vec<NamedPath>,
    /// The roof's top-level `use` paths.
    uses: Vec<NamedPath>,
}

impl Reading {
    fn of(tokens: &[Token<'_>], module: &Module) -> Self {
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
        let mut reading = Self::default();
        let mut depth = 0_usize;
        let mut inline: Vec<(String, usize)> = Vec::new();
        let mut file = None;
        let mut at = 0;
        while at < tokens.len() {
            let is_product = !module.in_test && !tokens[at].in_test;
            match text(at) {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.pop_if(|(_, outside)| *outside == depth);
                }
                "path" if text(at + 1) == "=" && at >= 2 && text(at - 2) == "#" => {
                    file = Some(text(at + 2).trim_matches('"').to_owned());
                }
                "mod" if is_name(text(at + 1)) && text(at + 2) == "{" => {
                    inline.push((text(at + 1).to_owned(), depth));
                }
                "mod" if is_name(text(at + 1)) && text(at + 2) == ";" => {
                    reading.declared.push(Declared {
                        name: text(at + 1).to_owned(),
                        inline: inline.iter().map(|(name, _)| name.clone()).collect(),
                        file: file.take(),
                        in_test: tokens[at].in_test,
                    });
                }
                "use" if module.path.is_empty() && inline.is_empty() && is_product => {
                    at = read_path(tokens, at + 1, &[], &mut reading.uses);
                    continue;
                }
                "crate" | "super" | "self"
                    if text(at + 1) == "::" && (at == 0 || text(at - 1) != "::") && is_product =>
                {
                    let inner = inline.iter().map(|(name, _)| name);
                    let here: Vec<String> = module.path.iter().chain(inner).cloned().collect();
                    at = read_path(tokens, at, &here, &mut reading.paths);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        reading
    }
}

/// The names a room uses, as `from -> to: name at file:line`, the roof's last.
#[cfg(test)]
fn told(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
    let rooms = rooms_of(&files);
    assert_eq!(rooms.unreached, Vec::<String>::new());
    let all = rooms.arrows.iter().chain(&rooms.from_the_roof);
    let told = all.map(|arrow| {
        let (file, line) = &arrow.place;
        format!("{} -> {}: {} at {file}:{line}", arrow.from, arrow.to, arrow.name)
    });
    told.collect()
}

#[test]
fn arrows_lead_between_rooms_and_not_within_one() {
    let found = told(&[
        ("lib.rs", "mod a; pub mod b; pub(crate) mod c; fn main() { b::go(); crate::a::go() }"),
        (
            "a.rs",
            "mod inner;\nuse crate::{a::inner::X, b::Y,\n c};\nuse std::fs; use self::inner::Z;",
        ),
        ("a/inner.rs", "use super::W; use super::super::c::{V, U};"),
        ("b/mod.rs", "fn f() -> crate::c::V { super::c::go::<crate::b::Y>(super::b::Y) }"),
        ("c.rs", "mod inline { use super::super::b::Y; use super::V; }"),
    ]);
    let expected = [
        "a -> b: b::Y at a.rs:2",
        "a -> c: c at a.rs:3",
        "a -> c: c::U at a/inner.rs:1",
        "a -> c: c::V at a/inner.rs:1",
        "b -> c: c::V at b/mod.rs:1",
        "b -> c: c::go at b/mod.rs:1",
        "c -> b: b::Y at c.rs:1",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_re_export_is_taken_from_its_room_and_what_the_roof_defines_from_the_roof() {
    let found = told(&[
        ("lib.rs", "mod a; mod b; pub use b::{X, Y as Z}; pub use a::W; pub type V = u64;"),
        ("a.rs", "use crate::{X, V, W}; fn f(z: crate::Z) {}"),
        ("b.rs", ""),
    ]);
    let expected = ["a -> b: X at a.rs:1", "a -> b: Z at a.rs:1", "a -> lib.rs: V at a.rs:1"];
    assert_eq!(found, expected);
}

#[test]
fn tests_comments_and_strings_draw_no_arrow() {
    let found = told(&[
        ("main.rs", "mod a; mod b; #[cfg(test)] mod b_tests;"),
        (
            "a.rs",
            "/// See [`crate::b::X`].\nconst A: &str = \"crate::b::X\"; // crate::b\n
             #[cfg(test)] use crate::b::X; #[cfg(test)] mod tests; #[cfg(test)]
             #[path = \"a_tests.rs\"] mod more; #[cfg(test)] mod inline { use crate::b::X; }",
        ),
        ("a/tests.rs", "use crate::b::X; mod deeper;"),
        ("a/tests/deeper.rs", "use crate::b::X;"),
        ("a_tests.rs", "use crate::b::X;"),
        ("b.rs", ""),
        ("b_tests.rs", "use crate::a::A;"),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn modules_are_found_where_rustc_finds_them() {
    let found = told(&[
        ("lib.rs", "mod a; mod b; mod c { mod d; }"),
        ("a/mod.rs", "#[path = \"odd_place.rs\"] mod odd; mod plain;"),
        ("a/odd_place.rs", "mod below; use crate::b::X;"),
        ("a/below.rs", "use super::super::super::b::Y;"),
        ("a/plain.rs", "mod below;"),
        ("a/plain/below.rs", "use super::super::super::b::Z;"),
        ("b.rs", ""),
        ("c/d.rs", ""),
    ]);
    let expected = [
        "a -> b: b::X at a/odd_place.rs:1",
        "a -> b: b::Y at a/below.rs:1",
        "a -> b: b::Z at a/plain/below.rs:1",
    ];
    assert_eq!(found.len(), expected.len());
    assert!(expected.iter().all(|arrow| found.iter().any(|found| found == arrow)), "{found:?}");
}

#[test]
fn a_file_that_no_module_declares_is_told() {
    let files = [("lib.rs", "mod a;"), ("a.rs", ""), ("b.rs", "")];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    assert_eq!(rooms_of(&files).unreached, ["b.rs"]);
}
