//! What decides and folds is pure: it takes the time, randomness and bytes from its caller, and
//! names no clock, disk, socket, thread, runtime or module of HTTP.

use crate::paths::{NamedPath, is_name, read_path};
use crate::tokens::{Token, tokens_and_comments};
use crate::{collect, crates, relative};
use std::collections::BTreeSet;
use std::path::Path;

/// The pure part of `host`, which a pure part of a face may take too: module paths.
const OF_HOST: &[&str] =
    &["access::view", "hex", "hostname", "identity", "names", "view::contract"];

/// Crates that are pure from their roof on. Which others they take, their manifests say.
const WHOLE: &[&str] = &["graph", "cypher", "bolt", "consumers"];

/// The pure half of a face, where the face has one.
const OF_FACE: &str = "view";

/// Crates that a pure part may use. `tracing` is one: the process writes log lines and never reads
/// them.
const CRATES: &[&str] = &[
    "idna",
    "iso_currency",
    "serde",
    "serde_json",
    "sha2",
    "tracing",
    "wellspring_graph",
    "wellspring_json",
    "wellspring_types",
    "zeroize",
];

/// Parts of other crates that one crate's pure part may take.
const PARTS: &[(&str, &str)] = &[
    ("faces/connectors", "wellspring_connectors::Cursor"),
    // Zones of time, from a database that is bundled with the program.
    ("faces/events", "jiff::tz"),
    ("faces/events", "jiff::Timestamp"),
    // Locks that are awaited: they need no runtime.
    ("faces/graph", "tokio::sync"),
];

/// Modules of the standard library with effects. Addresses are `core::net`.
const EFFECTS: &[&str] = &["env", "fs", "net", "os", "process", "thread", "time"];

/// A pure part of a crate.
struct Part<'a> {
    krate: &'a str,
    /// Its modules, as paths from the roof; one empty path for the whole crate.
    modules: &'a [&'a str],
    /// The crates that the manifest names.
    dependencies: BTreeSet<String>,
}

impl Part<'_> {
    fn has(&self, path: &str) -> bool {
        is_below_one(path, self.modules)
    }

    /// Whether code of this part may name a path, as from the crate's root (`crate::…`) or from
    /// another crate.
    fn may_take(&self, path: &str) -> bool {
        let (first, rest) = path.split_once("::").unwrap_or((path, ""));
        match first {
            "crate" => self.has(rest),
            "std" => !EFFECTS.contains(&rest.split("::").next().unwrap_or_default()),
            "wellspring_host" => is_below_one(rest, OF_HOST),
            _ if !self.dependencies.contains(first) || WHOLE.contains(&self.krate) => true,
            _ => {
                let parts = PARTS.iter().filter(|(krate, _)| *krate == self.krate);
                CRATES.contains(&first) || parts.clone().any(|(_, part)| is_below(path, part))
            }
        }
    }

    /// The paths of the file at `place` below `src` that it may not take, with their lines.
    fn faults(&self, place: &str, source: &str) -> Vec<(usize, String)> {
        let stem = place.trim_end_matches(".rs").trim_end_matches("mod").trim_end_matches("lib");
        let here = stem.split('/').filter(|name| !name.is_empty()).map(str::to_owned);
        let here: Vec<String> = here.collect();
        let (tokens, _) = tokens_and_comments(source);
        let named = paths(&tokens, &here).into_iter();
        let named = named.map(|path| (path.line, path.segments.join("::")));
        named.filter(|(_, path)| !self.may_take(path)).collect()
    }
}

fn is_below(path: &str, module: &str) -> bool {
    let rest = path.strip_prefix(module);
    module.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn is_below_one(path: &str, modules: &[&str]) -> bool {
    modules.iter().any(|module| is_below(path, module))
}

/// The paths that the product's code names, those of its own crate from `crate` on.
fn paths(tokens: &[Token<'_>], here: &[String]) -> Vec<NamedPath> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let begins = is_name(text(at)) && text(at + 1) == "::" && (at == 0 || text(at - 1) != "::");
        if !begins || tokens[at].in_test {
            at += 1;
            continue;
        }
        let is_local = ["crate", "super", "self"].contains(&text(at));
        let mut named = Vec::new();
        at = read_path(tokens, at, if is_local { here } else { &[] }, &mut named);
        if is_local {
            named.iter_mut().for_each(|path| path.segments.insert(0, "crate".to_owned()));
        }
        found.extend(named);
    }
    found
}

/// The crates that a manifest names, as code names them.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let sections = manifest.split("\n[").filter(|section| section.starts_with("dependencies]"));
    let names = sections.flat_map(str::lines).filter_map(|line| {
        let name = line.split(['.', ' ', '=']).next()?;
        (!name.is_empty() && line.contains('=')).then(|| name.replace('-', "_"))
    });
    names.collect()
}

fn is_test(place: &str) -> bool {
    place.split('/').any(|part| part.trim_end_matches(".rs").ends_with("tests"))
}

/// Calls `visit` with each crate that has a pure part, and each file of the crate: its path below
/// `src`, whether it is of the pure part, and its source.
fn every_file(visit: &mut dyn FnMut(&Part<'_>, &str, bool, &str)) {
    for (name, folder) in crates() {
        let modules: &[&str] = match &*name {
            "host" => OF_HOST,
            name if WHOLE.contains(&name) => &[""],
            name if name.starts_with("faces/") => &[OF_FACE],
            _ => continue,
        };
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let part = Part { krate: &name, modules, dependencies: dependencies(&manifest) };
        let source = folder.join("src");
        collect(&source, &mut |path: &Path, text| {
            let place = path.strip_prefix(&source).expect("below src").display().to_string();
            let module = place.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
            if !is_test(&place) {
                visit(&part, &place, part.has(&module), text);
            }
        });
        assert!(relative(&source).starts_with("crates/"));
    }
}

#[test]
fn what_decides_and_folds_has_no_effects() {
    let mut faults = Vec::new();
    let mut files = 0;
    every_file(&mut |part, place, is_pure, text| {
        if is_pure {
            files += 1;
            let found = part.faults(place, text).into_iter();
            faults.extend(found.map(|(line, path)| {
                format!("crates/{}/src/{place}:{line} takes {path}", part.krate)
            }));
        }
    });
    assert!(files > 150, "the pure parts have {files} files");
    let advice = "Have the caller pass it in, or move what is pure to a pure module of host.";
    assert!(faults.is_empty(), "{}\n{advice}", faults.join("\n"));
}

#[test]
fn a_view_is_in_the_pure_half_of_its_face() {
    let mut views = 0;
    every_file(&mut |part, place, is_pure, text| {
        let (tokens, _) = tokens_and_comments(text);
        let is_view = |three: &[Token<'_>]| {
            !three[0].in_test
                && three[..3].iter().map(|token| token.text).eq(["impl", "View", "for"])
        };
        if part.krate.starts_with("faces/") && tokens.windows(3).any(is_view) {
            views += 1;
            assert!(is_pure, "crates/{}/src/{place} has a view: move it to src/view", part.krate);
        }
    });
    assert!(views >= 4, "{views} views are found");
}

#[test]
fn an_effect_is_found_wherever_it_is_named() {
    let names = ["wellspring_host", "tokio", "serde"].map(str::to_owned);
    let part = Part { krate: "faces/links", modules: &["view"], dependencies: names.into() };
    let faults = |source: &str| {
        let found = part.faults("view/state.rs", source).into_iter();
        found.map(|(line, path)| format!("{line}: {path}")).collect::<Vec<_>>()
    };
    let pure = "use super::{a, super::view::b};\nuse std::{io, sync::Arc}; use core::net::Ipv4Addr;
                use wellspring_host::{hostname, view::contract::View}; use serde::Serialize;
                #[cfg(test)] mod tests { use std::fs; } // std::fs::read
                fn f() -> crate::view::A { Self::g(); \"std::fs::x\" }";
    assert_eq!(faults(pure), Vec::<String>::new());
    for (source, fault) in [
        ("\nuse std::{io, fs};", "2: std::fs"),
        ("fn f() { std::time::Instant::now() }", "1: std::time::Instant::now"),
        ("use std::net::TcpStream;", "1: std::net::TcpStream"),
        ("use tokio::sync::Mutex;", "1: tokio::sync::Mutex"),
        ("use wellspring_host::http::Request;", "1: wellspring_host::http::Request"),
        ("use wellspring_host::view::Live;", "1: wellspring_host::view::Live"),
        ("use crate::settings::X;", "1: crate::settings::X"),
        ("use super::super::settings::X;", "1: crate::settings::X"),
    ] {
        assert_eq!(faults(source), [fault], "{source}");
    }
    assert_eq!(
        dependencies(
            "[package]\na = 1\n\n[dependencies]\nb-c.workspace = true\nd = \"1\"\n\n[lints]\ne = 1\n"
        ),
        ["b_c", "d"].map(str::to_owned).into()
    );
}
