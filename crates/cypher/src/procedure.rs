//! Procedures: what `CALL` finds by name.

use std::sync::Arc;

use crate::context::Context;
use crate::error::Result;
use crate::value::Value;

/// Something that is called with values and comes to rows.
pub trait Procedure: Send + Sync {
    /// Its arguments, in order.
    fn arguments(&self) -> Vec<Argument>;
    /// The names of the columns of its rows; none if it only does something.
    fn yields(&self) -> Vec<String>;
    /// Its rows for these arguments.
    ///
    /// # Errors
    /// Arguments that do not fit, and whatever it runs into.
    fn call(&self, arguments: &[Value], context: &mut Context<'_>) -> Result<Vec<Vec<Value>>>;
}

/// An argument of a procedure.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its name; `CALL name` without brackets takes the parameter of that name.
    pub name: String,
    /// What it may be, beside null.
    pub kind: ArgumentType,
}

/// What an argument may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentType {
    /// Anything.
    Any,
    /// A truth value.
    Boolean,
    /// An integer.
    Integer,
    /// A float, or an integer that is taken for one.
    Float,
    /// An integer or a float.
    Number,
    /// Text.
    String,
}

/// Which procedures there are.
pub trait Procedures {
    /// The procedure of a name.
    fn find(&self, name: &str) -> Option<Arc<dyn Procedure>>;
}

/// The procedures that are always there: `db.labels()`, `db.relationshipTypes()`, `db.propertyKeys()`, `db.ping()`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIn;

impl Procedures for BuiltIn {
    fn find(&self, name: &str) -> Option<Arc<dyn Procedure>> {
        let (column, names): (_, Names) = match name.to_ascii_lowercase().as_str() {
            "db.labels" => ("label", |context| context.transaction.labels_in_use()),
            "db.relationshiptypes" => {
                ("relationshipType", |context| context.transaction.types_in_use())
            }
            "db.propertykeys" => ("propertyKey", |context| context.transaction.keys_in_use()),
            "db.ping" => return Some(Arc::new(Ping)),
            _ => return None,
        };
        Some(Arc::new(NameList { column, names }))
    }
}

type Names = fn(&Context<'_>) -> Vec<Arc<str>>;

/// A procedure that lists names.
struct NameList {
    column: &'static str,
    names: Names,
}

impl Procedure for NameList {
    fn arguments(&self) -> Vec<Argument> {
        Vec::new()
    }

    fn yields(&self) -> Vec<String> {
        vec![self.column.to_owned()]
    }

    fn call(&self, _: &[Value], context: &mut Context<'_>) -> Result<Vec<Vec<Value>>> {
        let names = (self.names)(context);
        Ok(names.into_iter().map(|name| vec![Value::String(name)]).collect())
    }
}

/// A procedure that says that somebody is there.
struct Ping;

impl Procedure for Ping {
    fn arguments(&self) -> Vec<Argument> {
        Vec::new()
    }

    fn yields(&self) -> Vec<String> {
        vec!["success".to_owned()]
    }

    fn call(&self, _: &[Value], _: &mut Context<'_>) -> Result<Vec<Vec<Value>>> {
        Ok(vec![vec![Value::Boolean(true)]])
    }
}
