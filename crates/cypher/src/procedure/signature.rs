//! Signatures of procedures in Neo4j's words.

use super::built_in::BuiltInProcedure;
use super::{Argument, ArgumentType};
use crate::value::Value;
use std::fmt::Write;

/// A parameter of a built-in procedure.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) kind: ArgumentType,
    pub(super) is_optional: bool,
}

impl Parameter {
    /// One that must be given.
    pub(super) const fn required(name: &'static str, kind: ArgumentType) -> Self {
        Self { name, kind, is_optional: false }
    }

    /// One that may be omitted.
    pub(super) const fn optional(name: &'static str, kind: ArgumentType) -> Self {
        Self { name, kind, is_optional: true }
    }

    /// It as the planner sees it.
    pub(super) fn argument(&self) -> Argument {
        Argument { name: self.name.to_owned(), kind: self.kind, is_optional: self.is_optional }
    }
}

/// A column of a built-in procedure.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Its type in the words of Cypher.
    pub(super) kind: &'static str,
}

/// A column.
pub(super) const fn column(name: &'static str, kind: &'static str) -> Column {
    Column { name, kind }
}

/// `name(a :: STRING, b = {} :: MAP) :: (c :: INTEGER)`
pub(super) fn text(procedure: &BuiltInProcedure) -> String {
    let mut text = format!("{}(", procedure.name);
    for (index, parameter) in procedure.parameters.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let default = match (parameter.is_optional, parameter.kind) {
            (false, _) => "",
            (true, ArgumentType::Map) => " = {}",
            (true, _) => " = null",
        };
        let (name, kind) = (parameter.name, type_text(parameter.kind));
        // Writing to a text cannot fail.
        let _ = write!(text, "{comma}{name}{default} :: {kind}");
    }
    text.push(')');
    if !procedure.columns.is_empty() {
        let columns = procedure.columns.iter().map(|it| format!("{} :: {}", it.name, it.kind));
        let _ = write!(text, " :: ({})", columns.collect::<Vec<_>>().join(", "));
    }
    text
}

/// A list of maps that describe the parameters.
pub(super) fn parameters(procedure: &BuiltInProcedure) -> Value {
    let described = procedure.parameters.iter().map(|it| described(it.name, type_text(it.kind)));
    Value::list(described.collect())
}

/// A list of maps that describe the columns.
pub(super) fn columns(procedure: &BuiltInProcedure) -> Value {
    Value::list(procedure.columns.iter().map(|it| described(it.name, it.kind)).collect())
}

fn described(name: &str, kind: &str) -> Value {
    Value::map([
        ("name".into(), Value::string(name)),
        ("type".into(), Value::string(kind)),
        ("description".into(), Value::string(format!("{name} :: {kind}"))),
        ("isDeprecated".into(), Value::Boolean(false)),
    ])
}

fn type_text(kind: ArgumentType) -> &'static str {
    match kind {
        ArgumentType::Any => "ANY",
        ArgumentType::Boolean => "BOOLEAN",
        ArgumentType::Integer => "INTEGER",
        ArgumentType::Float => "FLOAT",
        ArgumentType::Number => "INTEGER | FLOAT",
        ArgumentType::String => "STRING",
        ArgumentType::Map => "MAP",
        ArgumentType::List => "LIST<ANY>",
        ArgumentType::Node => "NODE",
        ArgumentType::Relationship => "RELATIONSHIP",
    }
}
