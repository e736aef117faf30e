//! Everything that has a name, collected before any text is compiled, so that
//! a step can use what a later one captures.

use super::super::data::{ORDERS, Table};
use super::super::document::{Fields, Kind, Node};
use super::super::error::ScenarioError;
use super::super::file::Options;
use super::super::names::{Names, Slot, check_name};
use super::{Files, expect};
use std::path::Path;
use wellspring_readable::nearest::nearest;

/// What `[login]` captures.
pub(super) const LOGIN_TOKEN: &str = "token";

/// Reads `[vars]` and `[data]`, and looks through the rest for captures.
pub(super) fn all(
    top: &mut Fields<'_>,
    root: &Node,
    files: &Files,
    options: &Options,
) -> Result<(Names, Vec<Table>), ScenarioError> {
    let mut names = Names { vars: vars(top, options)?, ..Names::default() };
    let mut tables = Vec::new();
    for (name, node) in top.entries("data")? {
        let place = format!("data.{name}");
        check_name(name).map_err(|why| ScenarioError::at(node.line, &*place, why))?;
        let table = data(node, &place, files)?;
        names.data.push((name.clone(), table.columns.clone()));
        tables.push(table);
    }
    if let Some(login) = child(root, "login") {
        add_setup(&mut names, LOGIN_TOKEN, login.line)?;
    }
    for node in children(root, "setup") {
        for written in captured_by(node)? {
            add_setup(&mut names, &written.capture.name, written.line)?;
            if written.keep.is_some() {
                add_slot(&mut names, &written)?;
            }
        }
    }
    for step in children(root, "step") {
        for written in captured_by(step)? {
            add_slot(&mut names, &written)?;
        }
        for request in children(step, "request") {
            for written in captured_by(request)? {
                add_slot(&mut names, &written)?;
            }
        }
        if let Some(Node { kind: Kind::Table(entries), .. }) = child(step, "let") {
            for (name, node) in entries {
                check_name(name).map_err(|why| ScenarioError::at(node.line, "let", why))?;
                add(&mut names, name, None, node.line)?;
            }
        }
    }
    Ok((names, tables))
}

fn child<'d>(node: &'d Node, key: &str) -> Option<&'d Node> {
    match &node.kind {
        Kind::Table(entries) => entries.iter().find(|(there, _)| there == key).map(|(_, n)| n),
        _ => None,
    }
}

/// The tables of a list; what is no list is refused later, where it is read.
fn children<'d>(node: &'d Node, key: &str) -> &'d [Node] {
    match child(node, key) {
        Some(Node { kind: Kind::List(items), .. }) => items,
        _ => &[],
    }
}

fn captured_by(node: &Node) -> Result<Vec<expect::CaptureDeclaration>, ScenarioError> {
    match &node.kind {
        Kind::Table(_) => expect::captures(&mut Fields::of(node, "")?),
        _ => Ok(Vec::new()),
    }
}

fn add_setup(names: &mut Names, name: &str, line: u32) -> Result<(), ScenarioError> {
    refuse_var(names, name, line)?;
    if !names.setup.iter().any(|there| there == name) {
        names.setup.push(name.to_owned());
    }
    Ok(())
}

fn add_slot(names: &mut Names, written: &expect::CaptureDeclaration) -> Result<(), ScenarioError> {
    add(names, &written.capture.name, written.keep, written.line)
}

fn add(names: &mut Names, name: &str, keep: Option<u32>, line: u32) -> Result<(), ScenarioError> {
    refuse_var(names, name, line)?;
    match names.slots.iter_mut().find(|slot| slot.name == name) {
        None => names.slots.push(Slot { name: name.to_owned(), keep }),
        Some(slot) if slot.keep == keep => {}
        Some(_) => {
            return Err(ScenarioError::at(
                line,
                format!("{name:?}"),
                "captured in two places, of which only one keeps it (or keeps as many); expected the same `keep` in both",
            ));
        }
    }
    Ok(())
}

fn refuse_var(names: &Names, name: &str, line: u32) -> Result<(), ScenarioError> {
    if names.vars.iter().any(|(there, _)| there == name) {
        Err(ScenarioError::at(
            line,
            format!("{name:?}"),
            "this name is a variable in [vars] already; a capture needs another",
        ))
    } else {
        Ok(())
    }
}

/// `[vars]`: texts, numbers, truths, or `{ env = "NAME", default = "…" }`. What the
/// command line gives replaces them.
fn vars(top: &mut Fields<'_>, options: &Options) -> Result<Vec<(String, String)>, ScenarioError> {
    let mut vars = Vec::new();
    for (name, node) in top.entries("vars")? {
        let place = format!("vars.{name}");
        check_name(name).map_err(|why| ScenarioError::at(node.line, "vars", why))?;
        let given = options.vars.iter().rev().find(|(there, _)| there == name);
        let value = match (&node.kind, given) {
            (_, Some((_, given))) => given.clone(),
            (Kind::Text(text), _) | (Kind::Time(text), _) => text.clone(),
            (Kind::Integer(number), _) => number.to_string(),
            (Kind::Float(number), _) => number.to_string(),
            (Kind::Bool(truth), _) => truth.to_string(),
            (Kind::Table(_), _) => from_environment(node, &place, options)?,
            (Kind::List(_), _) => {
                return Err(ScenarioError::at(
                    node.line,
                    place,
                    "expected a text, a number, or { env = \"NAME\" }, found a list",
                ));
            }
        };
        vars.push((name.clone(), value));
    }
    for (name, _) in &options.vars {
        if !vars.iter().any(|(there, _)| there == name) {
            let all: Vec<&str> = vars.iter().map(|(name, _)| name.as_str()).collect();
            let meant = nearest(name, all.iter().copied())
                .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            return Err(ScenarioError::new(
                "vars",
                format!(
                    "the variable {name:?} was given, but the scenario has none of this name{meant} Its variables: {}",
                    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
                ),
            ));
        }
    }
    Ok(vars)
}

fn from_environment(node: &Node, place: &str, options: &Options) -> Result<String, ScenarioError> {
    let mut fields = Fields::of(node, place)?;
    let name = fields.text("env")?.ok_or_else(|| {
        fields.error("expected { env = \"NAME\" }, the name of an environment variable")
    })?;
    let default = fields.text("default")?;
    let value = (options.environment)(name).or(default.map(str::to_owned));
    let value = value.ok_or_else(|| {
        fields.error(format!(
            "the environment variable {name:?} is not set; set it, or give a default here"
        ))
    })?;
    fields.finish()?;
    Ok(value)
}

fn data(node: &Node, place: &str, files: &Files) -> Result<Table, ScenarioError> {
    let mut fields = Fields::of(node, place)?;
    let file = fields
        .text("file")?
        .ok_or_else(|| fields.error("expected file = \"…\", a .csv, .tsv, .ndjson or .json"))?;
    let order = fields.text("order")?.unwrap_or(ORDERS[0].0);
    let order = ORDERS.iter().find(|(word, _)| *word == order).ok_or_else(|| {
        let words: Vec<&str> = ORDERS.iter().map(|(word, _)| *word).collect();
        fields.error(format!("expected order to be one of {}; found {order:?}", words.join(", ")))
    })?;
    let text = files.text(file).map_err(|why| fields.error(why))?;
    let table = Table::parse(Path::new(file), &text, order.1)
        .map_err(|why| fields.error(format!("{}: {why}", files.path(file).display())))?;
    fields.finish()?;
    Ok(table)
}
