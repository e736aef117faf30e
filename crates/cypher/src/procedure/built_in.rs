//! The built-in procedures: tables of what they take, return and do.

use super::signature::{Column, Parameter};
use super::{Argument, Mode, Procedure, Procedures, Rows};
use crate::context::Context;
use crate::error::Result;
use crate::value::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// A built-in procedure.
pub(super) struct BuiltInProcedure {
    /// Its name with its namespace.
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) mode: Mode,
    pub(super) parameters: &'static [Parameter],
    pub(super) columns: &'static [Column],
    pub(super) call: fn(&[Value], &mut Context<'_>) -> Result<Rows>,
}

/// The tables of procedures, one for each category.
static TABLES: &[&[BuiltInProcedure]] = &[
    super::apoc_schema::TABLE,
    super::changes::TABLE,
    super::events::TABLE,
    super::graph_names::TABLE,
    super::meta::TABLE,
    super::schema_items::TABLE,
    super::server_facts::TABLE,
    super::text_search::TABLE,
    super::vector_search::TABLE,
];

/// All procedures that can be called by name, sorted.
pub(super) fn listed() -> Vec<&'static BuiltInProcedure> {
    let mut all: Vec<_> = TABLES.iter().flat_map(|table| table.iter()).collect();
    all.sort_unstable_by_key(|procedure| procedure.name);
    all
}

/// By name in lower case, those that `SHOW` calls included.
static BY_NAME: LazyLock<HashMap<String, &'static BuiltInProcedure>> = LazyLock::new(|| {
    let all = listed().into_iter().chain(super::shown::TABLE);
    all.map(|procedure| (procedure.name.to_ascii_lowercase(), procedure)).collect()
});

/// The built-in procedures. `SHOW` statements call others of them, which are not listed.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIn;

impl Procedures for BuiltIn {
    fn find(&self, name: &str) -> Option<Arc<dyn Procedure>> {
        let procedure = BY_NAME.get(name.to_ascii_lowercase().as_str())?;
        Some(Arc::new(Listed(procedure)))
    }
}

/// A procedure of the tables.
struct Listed(&'static BuiltInProcedure);

impl Procedure for Listed {
    fn arguments(&self) -> Vec<Argument> {
        self.0.parameters.iter().map(Parameter::argument).collect()
    }

    fn yields(&self) -> Vec<String> {
        self.0.columns.iter().map(|column| column.name.to_owned()).collect()
    }

    fn mode(&self) -> Mode {
        self.0.mode
    }

    fn call(&self, arguments: &[Value], context: &mut Context<'_>) -> Result<Rows> {
        (self.0.call)(arguments, context)
    }
}
