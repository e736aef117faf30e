//! What is expected of an answer, and what is captured from it.

use super::super::check::{Capture, CaptureSource, Check, KINDS, Test};
use super::super::document::{Fields, Kind, Node};
use super::super::error::ScenarioError;
use super::super::names::{Names, Scope, check_name};
use super::super::parts;
use super::super::pointer::Pointer;
use super::super::statuses::Statuses;
use super::super::template::{Place, Template};
use crate::invalid::Invalid;
use serde_json::Value;

/// The most values kept of one capture.
pub(crate) const MOST_KEPT: i64 = 1_000_000;
/// How many are kept with `keep = true`.
const KEPT: u32 = 10_000;

/// What is expected of an answer.
pub(crate) struct Expected {
    pub(crate) statuses: Statuses,
    pub(crate) checks: Vec<Check>,
}

/// Reads `expect = {…}`.
pub(crate) fn expected(
    fields: &mut Fields<'_>,
    names: &mut Names,
) -> Result<Expected, ScenarioError> {
    let mut found = Expected { statuses: Statuses::default(), checks: Vec::new() };
    let Some(node) = fields.take("expect") else { return Ok(found) };
    let mut expect = Fields::of(node, fields.inside("expect"))?;
    if let Some(node) = expect.take("status") {
        found.statuses = statuses(node).map_err(|why| expect.wrong("status", node, why))?;
    }
    for (pointer, node) in expect.entries("json")? {
        let path = Pointer::parse(pointer).map_err(|why| expect.wrong("json", node, why))?;
        let place = expect.inside(&format!("json {pointer:?}"));
        for test in tests(node, &place, names)? {
            found.checks.push(Check::Json(path.clone(), test));
        }
    }
    for (name, node) in expect.entries("header")? {
        let name = name.to_ascii_lowercase();
        let place = expect.inside(&format!("header {name:?}"));
        for test in tests(node, &place, names)? {
            found.checks.push(Check::Header(name.clone(), test));
        }
    }
    let fixed = |text: &str, key: &str, line: u32, expect: &Fields<'_>, names: &mut Names| {
        fixed_text(text, names).map_err(|why| ScenarioError::at(line, expect.inside(key), why))
    };
    if let Some(text) = expect.text("body")? {
        let line = expect.line;
        found.checks.push(Check::Body(fixed(text, "body", line, &expect, names)?));
    }
    for (text, line) in expect.texts("body_contains")? {
        found.checks.push(Check::Contains(fixed(text, "body_contains", line, &expect, names)?));
    }
    for (text, line) in expect.texts("body_lacks")? {
        found.checks.push(Check::Lacks(fixed(text, "body_lacks", line, &expect, names)?));
    }
    expect.finish()?;
    Ok(found)
}

fn fixed_text(text: &str, names: &mut Names) -> Result<String, Invalid> {
    let template = Template::compile(text, Place::Plain, names, Scope::Fixed)?;
    Ok(template.constant().unwrap_or_default().to_owned())
}

fn statuses(node: &Node) -> Result<Statuses, Invalid> {
    match &node.kind {
        Kind::Integer(number) => Statuses::parse(&number.to_string()),
        Kind::Text(text) => Statuses::parse(text),
        Kind::List(items) if !items.is_empty() => {
            let mut set = Statuses::none();
            for item in items {
                set = set.or(statuses(item)?);
            }
            Ok(set)
        }
        other => Err(format!(
            "expected a status like 201, a text like \"2xx\", or a list of them, found {}",
            other.what()
        )
        .into()),
    }
}

/// `"exists"`, `"missing"`, a value to be equal to, or a table of tests.
fn tests(node: &Node, place: &str, names: &mut Names) -> Result<Vec<Test>, ScenarioError> {
    let wrong = |why: Invalid| ScenarioError::at(node.line, place, why);
    match &node.kind {
        Kind::Text(text) if text == "exists" => Ok(vec![Test::Exists]),
        Kind::Text(text) if text == "missing" => Ok(vec![Test::Missing]),
        Kind::Table(_) => table_of_tests(node, place, names),
        _ => Ok(vec![Test::Equals(value(node, names).map_err(wrong)?)]),
    }
}

fn table_of_tests(node: &Node, place: &str, names: &mut Names) -> Result<Vec<Test>, ScenarioError> {
    let mut fields = Fields::of(node, place)?;
    let mut tests = Vec::new();
    for (key, make) in [
        ("equals", Test::Equals as fn(Value) -> Test),
        ("differs", Test::Differs),
        ("contains", Test::Contains),
    ] {
        if let Some(node) = fields.take(key) {
            let value = value(node, names).map_err(|why| fields.wrong(key, node, why))?;
            tests.push(make(value));
        }
    }
    for (key, make) in [
        ("starts_with", Test::StartsWith as fn(String) -> Test),
        ("ends_with", Test::EndsWith),
        ("like", Test::Like),
    ] {
        if let Some(text) = fields.text(key)? {
            tests.push(make(fixed_text(text, names).map_err(|why| fields.error(why))?));
        }
    }
    for (key, make) in [("at_least", Test::AtLeast as fn(f64) -> Test), ("at_most", Test::AtMost)] {
        if let Some(node) = fields.take(key) {
            let bound = match node.kind {
                Kind::Integer(number) => number as f64,
                Kind::Float(number) if !number.is_nan() => number,
                _ => {
                    let found = node.kind.what();
                    return Err(fields.wrong(
                        key,
                        node,
                        format!("expected a number, found {found}"),
                    ));
                }
            };
            tests.push(make(bound));
        }
    }
    if let Some(length) = fields.integer("length", 0, i64::MAX)? {
        tests.push(Test::Length(length.unsigned_abs()));
    }
    if let Some(kind) = fields.text("type")? {
        if !KINDS.contains(&kind) {
            let all = KINDS.join(", ");
            return Err(fields.error(format!("expected type to be one of {all}; found {kind:?}")));
        }
        tests.push(Test::Kind(kind.to_owned()));
    }
    if let Some(exists) = fields.boolean("exists")? {
        tests.push(if exists { Test::Exists } else { Test::Missing });
    }
    if tests.is_empty() && matches!(&node.kind, Kind::Table(entries) if entries.is_empty()) {
        return Err(fields.error("nothing is tested; expected e.g. { starts_with = \"a\" }"));
    }
    fields.finish()?;
    Ok(tests)
}

/// A TOML value as JSON, with variables filled in.
fn value(node: &Node, names: &mut Names) -> Result<Value, Invalid> {
    Ok(match &node.kind {
        Kind::Text(text) => Value::String(fixed_text(text, names)?),
        Kind::Integer(number) => Value::from(*number),
        Kind::Float(number) => Value::from(*number),
        Kind::Bool(truth) => Value::Bool(*truth),
        Kind::Time(time) => Value::String(time.clone()),
        Kind::List(items) => {
            Value::Array(items.iter().map(|item| value(item, names)).collect::<Result<_, _>>()?)
        }
        Kind::Table(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, node)| Ok((key.clone(), value(node, names)?)))
                .collect::<Result<_, Invalid>>()?,
        ),
    })
}

/// A capture as the scenario declares it, before it has a place among the values.
pub(crate) struct CaptureDeclaration {
    pub(crate) capture: Capture,
    pub(crate) keep: Option<u32>,
    pub(crate) line: u32,
}

/// Reads `capture = {…}`.
pub(crate) fn captures(fields: &mut Fields<'_>) -> Result<Vec<CaptureDeclaration>, ScenarioError> {
    let place = fields.inside("capture");
    let read = |(name, node): &(String, Node)| {
        let place = format!("{place} {name:?}");
        check_name(name).map_err(|why| ScenarioError::at(node.line, place.clone(), why))?;
        capture(name, node, &place)
    };
    fields.entries("capture")?.iter().map(read).collect()
}

fn capture(name: &str, node: &Node, place: &str) -> Result<CaptureDeclaration, ScenarioError> {
    let pointer =
        |text: &str| Pointer::parse(text).map_err(|why| ScenarioError::at(node.line, place, why));
    let of = |source, between, optional| Capture {
        name: name.to_owned(),
        source,
        between,
        optional,
        setup: None,
        slot: None,
    };
    if let Kind::Text(text) = &node.kind {
        let capture = of(CaptureSource::Json(pointer(text)?), None, false);
        return Ok(CaptureDeclaration { capture, keep: None, line: node.line });
    }
    if !matches!(node.kind, Kind::Table(_)) {
        return Err(ScenarioError::at(
            node.line,
            place,
            format!(
                "expected a JSON Pointer like \"/id\", or a table like {{ header = \"location\" }}, found {}",
                node.kind.what()
            ),
        ));
    }
    let mut fields = Fields::of(node, place)?;
    let source = match (fields.text("json")?, fields.text("header")?) {
        (Some(_), Some(_)) => return Err(fields.error("json and header cannot stand together")),
        (Some(text), None) => CaptureSource::Json(pointer(text)?),
        (None, Some(header)) => {
            CaptureSource::Header(parts::any_header_name(header).map_err(|why| fields.error(why))?)
        }
        (None, None) => CaptureSource::Body,
    };
    let (after, before) = (fields.text("after")?, fields.text("before")?);
    if source == CaptureSource::Body && after.is_none() && before.is_none() {
        return Err(fields.error(
            "expected where to find it: json = \"/pointer\", header = \"name\", or after = \"…\" and before = \"…\"",
        ));
    }
    let between = match (after, before) {
        (None, None) => None,
        (after, before) => {
            Some((after.unwrap_or_default().to_owned(), before.unwrap_or_default().to_owned()))
        }
    };
    let optional = fields.boolean("optional")?.unwrap_or(false);
    let keep = keep(&mut fields)?;
    fields.finish()?;
    Ok(CaptureDeclaration { capture: of(source, between, optional), keep, line: node.line })
}

/// `keep = true` or how many.
pub(crate) fn keep(fields: &mut Fields<'_>) -> Result<Option<u32>, ScenarioError> {
    match fields.take("keep") {
        None => Ok(None),
        Some(Node { kind: Kind::Bool(keep), .. }) => Ok(keep.then_some(KEPT)),
        Some(Node { kind: Kind::Integer(n), .. }) if (1..=MOST_KEPT).contains(n) => {
            Ok(u32::try_from(*n).ok())
        }
        Some(other) => Err(fields.wrong(
            "keep",
            other,
            format!(
                "expected true, or how many to keep (1 to {MOST_KEPT}), found {}",
                other.kind.what()
            ),
        )),
    }
}
