//! Procedures that scenarios describe: a signature, and a table of arguments and results.

use crate::statement::plain;
use crate::value::parse;
use std::sync::Arc;
use wellspring_cypher::context::Context;
use wellspring_cypher::error::Error;
use wellspring_cypher::value::{Value, equals};
use wellspring_cypher::{Argument, ArgumentType, Procedure, Procedures};

/// The procedures of a scenario.
#[derive(Default)]
pub(crate) struct ProcedureTables(Vec<Arc<Table>>);

/// A procedure with fixed rows.
struct Table {
    name: String,
    arguments: Vec<(String, String)>,
    yields: Vec<(String, String)>,
    rows: Vec<Vec<Value>>,
}

impl ProcedureTables {
    /// Adds `test.my.proc(in :: INTEGER?) :: (out :: STRING?)` and its rows below their header.
    pub(crate) fn add(&mut self, signature: &str, rows: &[Vec<String>]) -> Result<(), String> {
        let fail = || format!("no signature: {signature}");
        let (name, rest) = signature.split_once('(').ok_or_else(fail)?;
        let (arguments, rest) = rest.split_once(')').ok_or_else(fail)?;
        let (_, results) = rest.split_once('(').ok_or_else(fail)?;
        let results = results.trim().trim_end_matches(':').trim_end_matches(')');
        let mut values = Vec::new();
        for row in rows.iter().skip(1) {
            let row: Result<Vec<Value>, String> =
                row.iter().map(|cell| Ok(plain(&parse(cell)?))).collect();
            values.push(row?);
        }
        let (name, arguments, yields) =
            (name.trim().to_owned(), fields(arguments), fields(results));
        self.0.push(Arc::new(Table { name, arguments, yields, rows: values }));
        Ok(())
    }
}

/// `name :: TYPE?, …`
fn fields(text: &str) -> Vec<(String, String)> {
    let fields = text.split(',').filter_map(|field| field.split_once("::"));
    fields.map(|(name, kind)| (name.trim().to_owned(), kind.trim().to_owned())).collect()
}

impl Procedures for ProcedureTables {
    fn find(&self, name: &str) -> Option<Arc<dyn Procedure>> {
        let table = self.0.iter().find(|table| table.name == name)?;
        Some(Arc::clone(table) as Arc<dyn Procedure>)
    }
}

impl Procedure for Table {
    fn arguments(&self) -> Vec<Argument> {
        let arguments = self.arguments.iter().map(|(name, kind)| Argument {
            name: name.clone(),
            is_optional: false,
            kind: match kind.trim_end_matches('?') {
                "INTEGER" => ArgumentType::Integer,
                "FLOAT" => ArgumentType::Float,
                "NUMBER" => ArgumentType::Number,
                "STRING" => ArgumentType::String,
                "BOOLEAN" => ArgumentType::Boolean,
                _ => ArgumentType::Any,
            },
        });
        arguments.collect()
    }

    fn yields(&self) -> Vec<String> {
        self.yields.iter().map(|(name, _)| name.clone()).collect()
    }

    fn call(&self, arguments: &[Value], _: &mut Context<'_>) -> Result<Vec<Vec<Value>>, Error> {
        let same =
            |a: &Value, b: &Value| (a.is_null() && b.is_null()) || equals(a, b) == Some(true);
        let fits = |row: &&Vec<Value>| row.iter().zip(arguments).all(|(a, b)| same(a, b));
        let count = self.arguments.len();
        Ok(self
            .rows
            .iter()
            .filter(fits)
            .map(|row| row.iter().skip(count).cloned().collect())
            .collect())
    }
}
