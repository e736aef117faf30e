//! Procedures that list the names in use.

use super::built_in::BuiltInProcedure;
use super::signature::column;
use super::{Mode, Rows};
use crate::context::Context;
use crate::error::Result;
use crate::value::Value;
use std::sync::Arc;

pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "db.labels",
        description: "The labels in use.",
        mode: Mode::Read,
        parameters: &[],
        columns: &[column("label", "STRING")],
        call: |_, context| rows(context.transaction.labels_in_use(), context),
    },
    BuiltInProcedure {
        name: "db.relationshipTypes",
        description: "The types of relationships in use.",
        mode: Mode::Read,
        parameters: &[],
        columns: &[column("relationshipType", "STRING")],
        call: |_, context| rows(context.transaction.types_in_use(), context),
    },
    BuiltInProcedure {
        name: "db.propertyKeys",
        description: "The property keys in use.",
        mode: Mode::Read,
        parameters: &[],
        columns: &[column("propertyKey", "STRING")],
        call: |_, context| rows(context.transaction.keys_in_use(), context),
    },
];

fn rows(names: Vec<Arc<str>>, context: &mut Context<'_>) -> Result<Rows> {
    context.budget.charge_steps(names.len() as u64)?;
    Ok(names.into_iter().map(|name| vec![Value::String(name)]).collect())
}
