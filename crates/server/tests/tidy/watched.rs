//! The alert rules and the dashboard under `deploy/` name figures, labels and functions that
//! exist. The figures are those of the table in `docs/operations.md`; a black-box test holds that
//! the table is what the server serves.

use crate::page_links::anchors;
use crate::promql::{Selector, read_expression};
use crate::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const RULES: &str = "deploy/prometheus/wellspring-alerts.yml";
const RULE_TESTS: [&str; 2] = [
    "deploy/prometheus/wellspring-alerts-test.yml",
    "deploy/prometheus/wellspring-alerts-days-test.yml",
];
const DASHBOARD: &str = "deploy/grafana/wellspring.json";

/// What the table says of a figure.
struct Figure {
    kind: String,
    labels: BTreeSet<String>,
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The figures by name.
fn figures() -> BTreeMap<String, Figure> {
    let page = text("docs/operations.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows =
        rows.filter(|(name, _)| ["wellspring_", "process_"].iter().any(|p| name.starts_with(p)));
    let figure = |(name, rest): (&str, &str)| {
        let mut cells = rest.split('|').map(str::trim);
        let kind = cells.next().expect("a kind").to_owned();
        let labels = cells
            .next()
            .expect("labels")
            .split(',')
            .map(|label| label.trim_matches([' ', '`']).to_owned());
        (
            name.to_owned(),
            Figure { kind, labels: labels.filter(|label| !label.is_empty()).collect() },
        )
    };
    rows.map(figure).collect()
}

/// The kind and the labels of a series: its family's, or those of a part of a histogram.
fn series(name: &str, figures: &BTreeMap<String, Figure>) -> Option<(String, BTreeSet<String>)> {
    let scraped = ["job", "instance"].map(str::to_owned);
    if name == "up" {
        return Some(("gauge".to_owned(), scraped.into()));
    }
    let with = |figure: &Figure, kind: &str, more: &[&str]| {
        let more = more.iter().map(|label| (*label).to_owned());
        (
            kind.to_owned(),
            figure.labels.iter().cloned().chain(scraped.clone()).chain(more).collect(),
        )
    };
    if let Some(figure) = figures.get(name).filter(|figure| figure.kind != "histogram") {
        return Some(with(figure, &figure.kind, &[]));
    }
    let (family, part) = name.rsplit_once('_')?;
    let figure = figures.get(family).filter(|figure| figure.kind == "histogram")?;
    match part {
        "bucket" => Some(with(figure, "counter", &["le"])),
        "sum" | "count" => Some(with(figure, "counter", &[])),
        _ => None,
    }
}

/// What is wrong with an expression; adds the labels of its series to `known`.
fn faults_of(
    expression: &str,
    figures: &BTreeMap<String, Figure>,
    known: &mut BTreeSet<String>,
) -> Vec<String> {
    let read = match read_expression(expression) {
        Ok(read) => read,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    for Selector { name, labels, range_of } in &read.selectors {
        let Some((kind, of_series)) = series(name, figures) else {
            faults.push(format!("{name} is not a figure"));
            continue;
        };
        let unknown = labels.iter().filter(|label| !of_series.contains(*label));
        faults.extend(unknown.map(|label| format!("{name} has no label {label}")));
        let wanted = match range_of.as_deref() {
            Some("rate" | "irate" | "increase") => "counter",
            Some("deriv" | "delta" | "predict_linear") => "gauge",
            _ => &kind,
        };
        if kind != wanted {
            faults
                .push(format!("{} of the {kind} {name}", range_of.as_deref().unwrap_or_default()));
        }
        known.extend(of_series);
    }
    let unknown = read.grouped_by.iter().filter(|label| !known.contains(*label));
    faults.extend(unknown.map(|label| format!("no series has a label {label}")));
    faults
}

/// One rule: its name, and its fields as written.
type Rule = (String, BTreeMap<String, String>);

/// The rules of the file, as far as YAML is used in it: a field a line, or a block after `|-`.
fn rules(yaml: &str) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut block: Option<(String, usize)> = None;
    for line in yaml.lines() {
        let indent = line.len() - line.trim_start().len();
        if let Some((field, at_least)) = &block {
            if indent >= *at_least {
                let fields = &mut rules.last_mut().expect("a rule").1;
                let value = fields.entry(field.clone()).or_default();
                *value = format!("{value} {}", line.trim()).trim().to_owned();
                continue;
            }
            block = None;
        }
        if let Some(name) = line.strip_prefix("      - alert: ") {
            rules.push((name.to_owned(), BTreeMap::new()));
        } else if let (Some((field, value)), Some(rule)) =
            (line.trim().split_once(':'), rules.last_mut().filter(|_| indent >= 8))
        {
            if value.trim() == "|-" {
                block = Some((field.to_owned(), indent + 2));
            } else {
                let value = value.trim();
                let quoted = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let value = quoted.map_or(value.to_owned(), |inner| inner.replace("''", "'"));
                assert!(rule.1.insert(field.to_owned(), value).is_none(), "{}: {field}", rule.0);
            }
        }
    }
    rules
}

/// The labels that a text of a rule or a legend names between braces.
fn named_labels<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let inside = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
    let words = inside.map(|(inside, _)| inside.split('|').next().unwrap_or_default().trim());
    // `strip_prefix` on what begins otherwise (`$value`) gives nothing.
    words.filter_map(|word| word.strip_prefix(prefix)).collect()
}

#[test]
fn every_alert_rule_is_sound_and_names_figures_that_exist() {
    let (figures, rules) = (figures(), rules(&text(RULES)));
    let pages = ["docs/operations.md", "docs/production.md", "docs/privacy.md"]
        .map(|page| (page, text(page)));
    let is_heading = |page: &str, anchor: &str| {
        let page = pages.iter().find(|(name, _)| page.ends_with(&format!("/{name}")));
        page.is_some_and(|(_, text)| anchors(text).iter().any(|heading| heading == anchor))
    };
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    for (name, fields) in &rules {
        let mut known = BTreeSet::new();
        let field = |field: &str| fields.get(field).unwrap_or_else(|| panic!("{name}: no {field}"));
        let mut found = faults_of(field("expr"), &figures, &mut known);
        for text in [field("summary"), field("description")] {
            let unknown = named_labels(text, "$labels.").into_iter();
            let unknown = unknown.filter(|label| !known.contains(*label));
            found.extend(unknown.map(|label| format!("no label {label} for {text:?}")));
        }
        let severity = field("labels");
        if !["{ severity: critical }", "{ severity: warning }"].contains(&severity.as_str()) {
            found.push(format!("severity {severity}"));
        }
        let (page, anchor) = field("runbook_url").split_once('#').expect("an anchor");
        if !is_heading(page, anchor) {
            found.push(format!("no page {page}#{anchor}"));
        }
        if !names.insert(name) {
            found.push("the name comes twice".to_owned());
        }
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{RULES}:\n{}", faults.join("\n"));
    assert!(rules.len() >= 20, "only {} rules were read", rules.len());
}

#[test]
fn every_panel_of_the_dashboard_names_figures_that_exist() {
    let figures = figures();
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let (mut faults, mut ids, mut expressions) = (Vec::new(), BTreeSet::new(), 0);
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}: its id comes twice");
        for target in panel["targets"].as_array().into_iter().flatten() {
            let mut known = BTreeSet::new();
            let expression = target["expr"].as_str().expect("an expression");
            let mut found = faults_of(expression, &figures, &mut known);
            let legend = target["legendFormat"].as_str().expect("a legend");
            let unknown = named_labels(legend, "").into_iter();
            let unknown = unknown.filter(|label| !known.contains(*label));
            found.extend(unknown.map(|label| format!("no label {label} for {legend:?}")));
            faults.extend(found.into_iter().map(|fault| format!("{title}: {fault}")));
            expressions += 1;
        }
    }
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        let Some(query) = variable["definition"].as_str() else { continue };
        let inside = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (selector, label) = inside.and_then(|inside| inside.rsplit_once(", ")).expect(query);
        let expression = format!("count by ({label}) ({selector})");
        faults.extend(faults_of(&expression, &figures, &mut BTreeSet::new()));
    }
    for mark in dashboard["annotations"]["list"].as_array().expect("marks") {
        let expression = mark["expr"].as_str().expect("an expression");
        faults.extend(faults_of(expression, &figures, &mut BTreeSet::new()));
    }
    assert!(faults.is_empty(), "{DASHBOARD}:\n{}", faults.join("\n"));
    assert!(expressions >= 40, "only {expressions} expressions were read");
}

/// Prometheus itself reads the rules and runs their tests, where it is installed.
#[test]
fn prometheus_takes_the_rules() {
    let tests = RULE_TESTS.map(|path| ("test", path));
    for (command, path) in [("check", RULES)].into_iter().chain(tests) {
        let promtool = std::process::Command::new("promtool")
            .args([command, "rules"])
            .arg(root().join(path))
            .output();
        match promtool {
            Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr)),
            Err(error) => {
                let is_required = std::env::var_os("WELLSPRING_TEST_REQUIRE_PROMTOOL").is_some();
                assert!(!is_required, "promtool: {error}");
                return eprintln!(
                    "SKIPPED: promtool is not installed, so Prometheus reads no rule"
                );
            }
        }
    }
}

#[test]
fn a_wrong_name_label_or_function_is_found() {
    let figures = figures();
    let faults = |expression: &str| faults_of(expression, &figures, &mut BTreeSet::new());
    assert_eq!(faults("sum by (log, instance) (wellspring_log_head{log=\"main\"}) > 5"), [""; 0]);
    assert_eq!(faults("wellspring_heads > 0"), ["wellspring_heads is not a figure"]);
    assert_eq!(faults("wellspring_ready{log=\"a\"}"), ["wellspring_ready has no label log"]);
    assert_eq!(faults("sum by (view) (wellspring_ready)"), ["no series has a label view"]);
    assert_eq!(faults("rate(wellspring_links[5m])"), ["rate of the gauge wellspring_links"]);
    let histogram = "wellspring_log_barrier_seconds";
    assert_eq!(faults(histogram), [format!("{histogram} is not a figure")]);
    assert_eq!(faults(&format!("rate({histogram}_bucket{{le=\"1\"}}[5m])")), [""; 0]);
    assert_eq!(
        faults(&format!("rate({histogram}_count{{le=\"1\"}}[5m])")),
        [format!("{histogram}_count has no label le")]
    );
    assert_eq!(named_labels("{{ $labels.log }} {{ $value | humanize }}", "$labels."), ["log"]);
}
