//! The Prometheus text format, version 0.0.4, parsed more strictly than any scraper does:
//! deviations from custom are errors too.

use std::collections::{BTreeMap, BTreeSet};

/// Labels of one series, by name.
pub type Labels = BTreeMap<String, String>;

/// All series of one name.
#[derive(Debug)]
pub struct Family {
    pub help: String,
    pub kind: String,
    /// Name of the line (`NAME`, `NAME_bucket`, …), labels, value.
    pub lines: Vec<(String, Labels, f64)>,
}

/// A page, by the names of its families.
pub type Page = BTreeMap<String, Family>;

/// Parses a page; panics on any error.
#[track_caller]
pub fn read(text: &str) -> Page {
    assert!(text.ends_with('\n'), "the last line has no end");
    let mut page = Page::new();
    let mut current: Option<(String, Family)> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let family = Family { help: help.to_owned(), kind: String::new(), lines: Vec::new() };
            finish(&mut page, current.replace((name.to_owned(), family)));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let (of, family) = current.as_mut().unwrap_or_else(|| panic!("no HELP before {line}"));
            assert_eq!(of, name, "HELP and TYPE differ");
            assert!(family.kind.is_empty() && family.lines.is_empty(), "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            kind.clone_into(&mut family.kind);
        } else {
            let (name, labels, value) = series(line);
            let (of, family) = current.as_mut().unwrap_or_else(|| panic!("no TYPE before {line}"));
            let suffix = name.strip_prefix(of.as_str()).unwrap_or_else(|| panic!("{line} in {of}"));
            let known: &[&str] =
                if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(known.contains(&suffix), "{line} in a {} {of}", family.kind);
            family.lines.push((name, labels, value));
        }
    }
    finish(&mut page, current);
    page
}

fn finish(page: &mut Page, family: Option<(String, Family)>) {
    let Some((name, family)) = family else { return };
    assert!(is_name(&name) && family.help.ends_with('.'), "{name}: {}", family.help);
    assert!(!family.kind.is_empty() && !family.lines.is_empty(), "{name} is empty");
    assert_eq!(name.ends_with("_total"), family.kind == "counter", "{name} is a {}", family.kind);
    let mut seen = BTreeSet::new();
    for (line, labels, value) in &family.lines {
        assert!(seen.insert((line, labels)), "{line}{labels:?} comes twice");
        assert!(value.is_finite() && *value >= 0.0, "{line}{labels:?} {value}");
    }
    if family.kind == "histogram" {
        check_histogram(&name, &family);
    }
    assert!(page.insert(name.clone(), family).is_none(), "{name} comes twice");
}

/// Bounds increase, counts do not decrease, the last bucket has everything.
fn check_histogram(name: &str, family: &Family) {
    let mut of: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (line, labels, value) in &family.lines {
        let mut labels = labels.clone();
        if line.ends_with("_bucket") {
            let le = labels.remove("le").unwrap_or_else(|| panic!("{line} has no bound"));
            let bound = if le == "+Inf" { f64::INFINITY } else { le.parse().unwrap() };
            of.entry(labels).or_default().push((bound, *value));
        } else {
            assert!(!labels.contains_key("le"), "{line}");
        }
    }
    for (labels, buckets) in of {
        assert!(
            buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "{name}{labels:?} {buckets:?}"
        );
        let (bound, all) = *buckets.last().unwrap();
        let one = |suffix: &str| {
            let line = format!("{name}{suffix}");
            let found = family.lines.iter().find(|(l, of, _)| *l == line && *of == labels);
            found.unwrap_or_else(|| panic!("no {line}{labels:?}")).2
        };
        assert_eq!((bound, all), (f64::INFINITY, one("_count")), "{name}{labels:?}");
        assert!(one("_sum") >= 0.0);
    }
}

fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// `NAME VALUE` or `NAME{LABEL="VALUE",…} VALUE`, with exactly one space.
fn series(line: &str) -> (String, Labels, f64) {
    let fault = || -> ! { panic!("not a series: {line}") };
    let end = line.find(['{', ' ']).unwrap_or_else(|| fault());
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| fault());
            let mut value = String::new();
            let mut chars = after.char_indices();
            let end = loop {
                match chars.next() {
                    Some((at, '"')) => break at + 1,
                    Some((_, '\\')) => match chars.next() {
                        Some((_, 'n')) => value.push('\n'),
                        Some((_, c @ ('\\' | '"'))) => value.push(c),
                        _ => fault(),
                    },
                    Some((_, c)) => value.push(c),
                    None => fault(),
                }
            };
            assert!(is_name(label), "{line}");
            assert!(labels.insert(label.to_owned(), value).is_none(), "{label} twice: {line}");
            rest = &after[end..];
            match rest.split_at_checked(1) {
                Some((",", more)) => rest = more,
                Some(("}", more)) => {
                    rest = more;
                    break;
                }
                _ => fault(),
            }
        }
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| fault());
    assert!(is_name(name) && !value.contains(' '), "{line}");
    (name.to_owned(), labels, value.parse().unwrap_or_else(|_| fault()))
}

/// The only value of a family with these labels.
#[track_caller]
pub fn value(page: &Page, line: &str, labels: &[(&str, &str)]) -> f64 {
    let wanted: Labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let lines = page.values().flat_map(|family| &family.lines);
    let mut found = lines.filter(|(name, of, _)| name == line && *of == wanted);
    let (_, _, value) = found.next().unwrap_or_else(|| panic!("no {line}{labels:?}"));
    assert!(found.next().is_none(), "{line}{labels:?} comes twice");
    *value
}
