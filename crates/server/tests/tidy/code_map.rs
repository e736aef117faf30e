//! The code map, `docs/code-map.md`: the first sentence of each module's documentation, in the
//! order of the folders.

use crate::modules::{Arrow, Rooms};
use crate::rooms::every_crate;
use crate::{entries, relative, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that has the page written instead of compared.
const WRITE: &str = "WELLSPRING_TEST_WRITE_CODE_MAP";

const PAGE: &str = "docs/code-map.md";

const HEAD: &str = "\
# Code map

The modules at the top of each package, and the folders below them, each by the first sentence of \
its documentation. This page is generated: change the sentence in the module, then run

```sh
WELLSPRING_TEST_WRITE_CODE_MAP=1 cargo test -p wellspring-server --test tidy code_map
```

[ARCHITECTURE.md](../ARCHITECTURE.md) says how the packages fit together.
";

/// The folders of the repository.
const FOLDERS: &[(&str, &str)] = &[
    (
        "bench",
        "A command for every figure in docs/benchmarks.md; the floors and peers it measures.",
    ),
    (
        "clients",
        "Client libraries in Python and TypeScript, what tests and packs them; trials of Neo4j's drivers.",
    ),
    ("crates", "The workspace of the event store."),
    ("datasets", "Real public data for `./quickstart` and the tests."),
    (
        "deploy",
        "Packages, unit, container, manifests, alert rules and dashboard, with their checks.",
    ),
    ("docs", "The manual, the decisions, and pages for developers."),
    ("examples", "The seven DCB examples, a consumer, and a face in one file."),
    ("fuzz", "A fuzz target for every parser; `fuzz/run` builds and runs them."),
    ("loadtest", "The load tester, which knows HTTP and nothing of the server."),
    ("scenarios", "Ready-made load for `wellspring bench scenario`."),
    ("sim", "The simulator: seeded histories of several nodes, with faults and planted bugs."),
    ("test-servers", "Scripts that start PostgreSQL, Kafka and an S3 server for tests."),
    ("tests", "The runner of tests, what suites share, and the trial of real clusters."),
];

fn stem(path: &Path) -> String {
    path.file_stem().expect("a name").to_string_lossy().into_owned()
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// The first sentence of a module's documentation, without links; empty if there is none.
fn first_sentence(source: &str) -> String {
    let documented = source.lines().skip_while(|line| !line.starts_with("//!"));
    let lines = documented.map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let mut text = without_links(&paragraph.join(" "));
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_uppercase() || "`*(".contains(c));
    let end = text.match_indices(". ").find(|(at, _)| begins(&text[at + 2..]));
    if let Some((at, _)) = end {
        text.truncate(at + 1);
    }
    text
}

/// `text` with the words of links in place of the links.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((words, behind)) = link.split_once(']') else { break };
        plain.push_str(before);
        plain.push_str(words);
        let target = behind.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(behind, |(_, behind)| behind);
    }
    plain + rest
}

/// The modules at the top of a package and the folders below them: names with their files.
fn modules(dir: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) {
    for path in entries(dir) {
        let name = format!("{prefix}{}", stem(&path));
        if path.is_dir() && !path.ends_with("tests") {
            let roof = [path.join("mod.rs"), path.with_extension("rs")];
            let roof = roof.into_iter().find(|roof| roof.exists());
            found.extend(roof.map(|roof| (format!("{name}/"), roof)));
            modules(&path, &format!("{name}/"), found);
        } else if prefix.is_empty() && is_rust(&path) && !path.with_extension("").is_dir() {
            let is_roof = ["lib", "main"].contains(&name.as_str());
            if !is_roof && !name.ends_with("tests") {
                found.push((name, path));
            }
        }
    }
}

/// The programs of a package beside its source: those of its tests, and its examples.
fn programs(package: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let folders = ["tests", "examples"].map(|name| package.join(name));
    for path in folders.iter().filter(|folder| folder.is_dir()).flat_map(|folder| entries(folder)) {
        let file = if path.is_dir() { path.join("main.rs") } else { path.clone() };
        if is_rust(&file) && file.exists() {
            let name = path.with_extension("");
            let name = name.strip_prefix(package).expect("below").display().to_string();
            found.push((name, file));
        }
    }
    found
}

/// The packages with source in or below `dir`.
fn packages(dir: &Path, found: &mut Vec<PathBuf>) {
    if dir.join("Cargo.toml").exists() && dir.join("src").is_dir() {
        found.push(dir.to_owned());
    }
    for folder in entries(dir).into_iter().filter(|path| path.is_dir()) {
        if !["src", "target", "node_modules"].iter().any(|name| folder.ends_with(name)) {
            packages(&folder, found);
        }
    }
}

/// Crates with at least so many rooms are drawn floor by floor.
const MANY_ROOMS: usize = 25;

/// The rooms of a crate floor by floor, from the top: each uses only rooms on floors below.
fn floors(rooms: &Rooms) -> Vec<Vec<&str>> {
    let mut heights: BTreeMap<&str, usize> =
        rooms.names.iter().map(|name| (name.as_str(), 0)).collect();
    // Rooms form no circle, so as many rounds as there are rooms settle every height.
    for _ in &rooms.names {
        for arrow in &rooms.arrows {
            let above = heights.get(arrow.to.as_str()).map_or(0, |height| height + 1);
            let height = heights.entry(arrow.from.as_str()).or_default();
            *height = above.max(*height);
        }
    }
    let top = heights.values().max().copied().unwrap_or_default();
    let on = |floor| heights.iter().filter(move |(_, height)| **height == floor);
    (0..=top).rev().map(|floor| on(floor).map(|(name, _)| *name).collect()).collect()
}

/// The drawings of crates with many rooms, by the crate's folder.
fn drawings() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    every_crate(&mut |_, source, rooms| {
        if rooms.names.len() >= MANY_ROOMS {
            let drawn = floors(rooms).into_iter().map(|floor| floor.join("  ") + "\n");
            let text = format!(
                "\nFrom the top, each using only what is below:\n\n```\n{}```\n",
                drawn.collect::<String>()
            );
            found.insert(source.trim_end_matches("/src").to_owned(), text);
        }
    });
    found
}

/// The page as the tree makes it, and the modules whose documentation begins with no sentence.
fn page() -> (String, Vec<String>) {
    let mut page = format!("{HEAD}\n| folder | content |\n|---|---|\n");
    let mut faults = Vec::new();
    let mut sentence = |file: &Path| {
        let text = first_sentence(&fs::read_to_string(file).expect("UTF-8"));
        if !text.ends_with('.') {
            faults.push(format!("{}: {text:?}", relative(file)));
        }
        text
    };
    for (folder, content) in FOLDERS {
        _ = writeln!(page, "| `{folder}` | {content} |");
    }
    let drawings = drawings();
    let mut found = Vec::new();
    FOLDERS.iter().for_each(|(folder, _)| packages(&root().join(folder), &mut found));
    for package in found {
        let source = package.join("src");
        let roof = ["lib.rs", "main.rs"].map(|name| source.join(name));
        _ = write!(page, "\n## {}\n\n", relative(&package));
        if let Some(roof) = roof.iter().find(|roof| roof.exists()) {
            _ = write!(page, "{}\n\n", sentence(roof));
        }
        let mut listed = Vec::new();
        modules(&source, "", &mut listed);
        for (name, file) in listed.into_iter().chain(programs(&package)) {
            _ = writeln!(page, "- `{name}`: {}", sentence(&file));
        }
        page.push_str(drawings.get(&relative(&package)).map_or("", String::as_str));
    }
    (page, faults)
}

#[test]
fn code_map_is_that_of_the_tree() {
    let (made, faults) = page();
    let advice = "Begin the module's documentation with a sentence that says what it is.";
    assert!(faults.is_empty(), "{}\n{advice}", faults.join("\n"));
    let path = root().join(PAGE);
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, &made).expect("the page");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differing = made.lines().find(|line| !kept.lines().any(|kept| kept == *line));
    assert!(
        kept == made,
        "{PAGE} is not that of the tree: run this test with {WRITE}=1. First new line: {differing:?}"
    );
}

#[test]
fn code_map_names_every_folder_of_the_repository() {
    let listed: Vec<&str> = FOLDERS.iter().map(|(folder, _)| *folder).collect();
    let passed_over = ["target", "data", "dist"];
    let there = entries(&root()).into_iter().filter(|path| path.is_dir()).map(|p| relative(&p));
    let is_ours = |name: &String| !name.starts_with('.') && !passed_over.contains(&name.as_str());
    assert_eq!(there.filter(is_ours).collect::<Vec<_>>(), listed, "FOLDERS and the tree differ");
}

#[test]
fn a_room_is_above_what_it_uses() {
    let names = ["a", "b", "c", "d"].map(str::to_owned).into();
    let arrow = |from: &str, to: &str| {
        let (from, to) = (from.to_owned(), to.to_owned());
        Arrow { from, to, name: String::new(), place: (String::new(), 1) }
    };
    let arrows = vec![arrow("a", "b"), arrow("b", "d"), arrow("a", "c")];
    let rooms = Rooms { names, arrows, ..Rooms::default() };
    assert_eq!(floors(&rooms), [vec!["a"], vec!["b"], vec!["c", "d"]]);
}

#[test]
fn first_sentences_end_where_the_next_begins_and_have_no_links() {
    let source = "//! Reads [batches](crate::batch), e.g. from a [`File`],\n//! in order. Then more.\n\
                  //!\n//! No.\nuse x;";
    assert_eq!(first_sentence(source), "Reads batches, e.g. from a `File`, in order.");
    assert_eq!(first_sentence("#![forbid(unsafe_code)]\n//! Two:\n//!\n//! - a"), "Two:");
    assert_eq!(first_sentence("use x;"), "");
    assert_eq!(without_links("a [b] c [d](e) [f"), "a b c d [f");
}
