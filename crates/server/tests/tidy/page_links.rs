//! Links between the pages of this repository lead to files, and to headings, that exist.

use crate::wording::pages;
use crate::{relative, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The lines of a page outside code fences.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut in_fence = false;
    page.lines().filter(move |line| {
        let is_edge = line.trim_start().starts_with("```");
        in_fence ^= is_edge;
        !in_fence && !is_edge
    })
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = |character: &char| character.is_alphanumeric() || " -_".contains(*character);
    let text = heading.trim().to_lowercase();
    text.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

pub(crate) fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// The targets of the links in `page` that lead into this repository: `file#anchor`, `#anchor`.
fn targets(page: &str) -> Vec<&str> {
    let texts = prose(page).flat_map(|line| line.split("](").skip(1));
    let targets = texts.filter_map(|text| text.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// What is wrong with a link to `target` on the page at `path`.
fn fault(path: &Path, target: &str, all: &BTreeMap<PathBuf, String>) -> Option<String> {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
    let folder = path.parent().expect("a folder");
    let goal = if file.is_empty() { path.to_owned() } else { folder.join(file) };
    let Ok(goal) = goal.canonicalize() else {
        return Some(format!("{}: there is no {target}", relative(path)));
    };
    let page = all.get(&goal)?;
    let anchor = anchor?;
    let is_there = anchors(page).iter().any(|known| known == anchor);
    (!is_there).then(|| format!("{}: no heading {target}", relative(path)))
}

#[test]
fn links_between_pages_lead_to_files_and_headings() {
    let mut found = Vec::new();
    pages(&root(), &mut found);
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).expect("UTF-8"));
    let all: BTreeMap<PathBuf, String> = found.into_iter().map(read).collect();
    let links =
        all.iter().flat_map(|(path, page)| targets(page).into_iter().map(move |t| (path, t)));
    let links: Vec<_> = links.collect();
    assert!(links.len() > 100, "the pages link to each other");
    let faults: Vec<_> =
        links.iter().filter_map(|(path, target)| fault(path, target, &all)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn anchors_are_those_of_github_and_code_has_no_links() {
    let page = "# What is promised, precisely\n```\n# no [heading](nowhere.md)\n```\n## The `a-b` _c_\n\
                [a](b.md#c) [d](https://e) and [f](#g)\n";
    assert_eq!(anchors(page), ["what-is-promised-precisely", "the-a-b-_c_"]);
    assert_eq!(targets(page), ["b.md#c", "#g"]);
}
