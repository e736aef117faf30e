//! Procedures: the targets of `CALL`.

use std::sync::Arc;

use crate::context::Context;
use crate::error::Result;
use crate::value::Value;
use wellspring_graph::{Name, SchemaDefinition, SchemaKind, SchemaSubject};

/// A procedure: takes values and returns rows.
pub trait Procedure: Send + Sync {
    /// Its arguments, in order.
    fn arguments(&self) -> Vec<Argument>;
    /// The names of its columns; empty if it returns none.
    fn yields(&self) -> Vec<String>;
    /// What it touches.
    fn mode(&self) -> Mode {
        Mode::Read
    }
    /// The rows for these arguments.
    ///
    /// # Errors
    /// Invalid arguments, and errors of the procedure.
    fn call(&self, arguments: &[Value], context: &mut Context<'_>) -> Result<Vec<Vec<Value>>>;
}

/// What a procedure touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only what the server knows without a graph.
    Server,
    /// It reads the graph.
    Read,
    /// It changes the graph.
    Write,
}

/// An argument of a procedure.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its name; a bare `CALL name` uses the parameter with that name.
    pub name: String,
    /// Its type; null is always allowed.
    pub kind: ArgumentType,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentType {
    /// Any type.
    Any,
    /// A truth value.
    Boolean,
    /// An integer.
    Integer,
    /// A float, or an integer that is converted.
    Float,
    /// An integer or a float.
    Number,
    /// Text.
    String,
}

/// A registry of procedures.
pub trait Procedures {
    /// The procedure with this name.
    fn find(&self, name: &str) -> Option<Arc<dyn Procedure>>;
}

/// The built-in procedures: `db.labels()`, `db.relationshipTypes()`, `db.propertyKeys()`,
/// `db.ping()`, and `db.indexes()` and `db.constraints()`, which `SHOW` calls.
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
            "dbms.components" => return Some(Arc::new(Components)),
            "db.indexes" => return Some(Arc::new(SchemaList::Indexes)),
            "db.constraints" => return Some(Arc::new(SchemaList::Constraints)),
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

/// A procedure that reports that the database is available.
struct Ping;

impl Procedure for Ping {
    fn arguments(&self) -> Vec<Argument> {
        Vec::new()
    }

    fn yields(&self) -> Vec<String> {
        vec!["success".to_owned()]
    }

    fn mode(&self) -> Mode {
        Mode::Server
    }

    fn call(&self, _: &[Value], _: &mut Context<'_>) -> Result<Vec<Vec<Value>>> {
        Ok(vec![vec![Value::Boolean(true)]])
    }
}

/// A procedure that says which database this is: tools ask it first, and decide by the version
/// which statements they may send.
struct Components;

impl Procedure for Components {
    fn arguments(&self) -> Vec<Argument> {
        Vec::new()
    }

    fn yields(&self) -> Vec<String> {
        ["name", "versions", "edition"].map(str::to_owned).to_vec()
    }

    fn mode(&self) -> Mode {
        Mode::Server
    }

    fn call(&self, _: &[Value], _: &mut Context<'_>) -> Result<Vec<Vec<Value>>> {
        let versions = Value::list(vec![Value::string(NEO4J_VERSION)]);
        Ok(vec![vec![Value::string("Neo4j Kernel"), versions, Value::string("community")]])
    }
}

/// The version of Neo4j whose language and forms of results are spoken.
pub const NEO4J_VERSION: &str = "5.26.0";

/// The columns of an index, in Neo4j's words.
pub(crate) const INDEX_COLUMNS: [&str; 9] = [
    "name",
    "state",
    "populationPercent",
    "type",
    "entityType",
    "labelsOrTypes",
    "properties",
    "indexProvider",
    "owningConstraint",
];

/// The columns of a constraint, in Neo4j's words.
pub(crate) const CONSTRAINT_COLUMNS: [&str; 7] =
    ["name", "type", "entityType", "labelsOrTypes", "properties", "ownedIndex", "propertyType"];

/// A procedure that lists the schema by name.
enum SchemaList {
    /// Indexes, including those of constraints.
    Indexes,
    Constraints,
}

impl Procedure for SchemaList {
    fn arguments(&self) -> Vec<Argument> {
        Vec::new()
    }

    fn yields(&self) -> Vec<String> {
        let columns = match self {
            SchemaList::Indexes => INDEX_COLUMNS.as_slice(),
            SchemaList::Constraints => CONSTRAINT_COLUMNS.as_slice(),
        };
        columns.iter().map(|column| (*column).to_owned()).collect()
    }

    fn call(&self, _: &[Value], context: &mut Context<'_>) -> Result<Vec<Vec<Value>>> {
        let transaction = &*context.transaction;
        let rows = transaction.schema().filter_map(|item| {
            let texts = |names: &[Name]| {
                Value::list(
                    names.iter().map(|name| Value::String(transaction.text(*name))).collect(),
                )
            };
            let (entity, subject) = match item.subject {
                SchemaSubject::Label(label) => ("NODE", label),
                SchemaSubject::Type(name) => ("RELATIONSHIP", name),
            };
            let about = [Value::string(entity), texts(&[subject]), texts(&item.keys)];
            match self {
                SchemaList::Indexes => index_row(item, about),
                SchemaList::Constraints => constraint_row(item, about),
            }
        });
        let rows: Vec<Vec<Value>> = rows.collect();
        context.budget.charge_steps(rows.len() as u64)?;
        Ok(rows)
    }
}

/// A row of [`INDEX_COLUMNS`], if the item has an index.
fn index_row(item: &SchemaDefinition, [entity, subject, keys]: [Value; 3]) -> Option<Vec<Value>> {
    let name = || Value::String(Arc::clone(&item.name));
    let owner = if item.kind.is_constraint() { name() } else { Value::Null };
    let [state, kind, provider] = ["ONLINE", "RANGE", "range-1.0"].map(Value::string);
    let full = Value::Float(100.0);
    item.kind
        .is_indexed()
        .then(|| vec![name(), state, full, kind, entity, subject, keys, provider, owner])
}

/// A row of [`CONSTRAINT_COLUMNS`], if the item is a constraint.
fn constraint_row(
    item: &SchemaDefinition,
    [entity, subject, keys]: [Value; 3],
) -> Option<Vec<Value>> {
    let kind = match (item.kind, item.subject) {
        (SchemaKind::Range, _) => return None,
        (SchemaKind::Unique, SchemaSubject::Label(_)) => "UNIQUENESS",
        (SchemaKind::Unique, SchemaSubject::Type(_)) => "RELATIONSHIP_UNIQUENESS",
        (SchemaKind::Exists, SchemaSubject::Label(_)) => "NODE_PROPERTY_EXISTENCE",
        (SchemaKind::Exists, SchemaSubject::Type(_)) => "RELATIONSHIP_PROPERTY_EXISTENCE",
        (SchemaKind::Key, SchemaSubject::Label(_)) => "NODE_KEY",
        (SchemaKind::Key, SchemaSubject::Type(_)) => "RELATIONSHIP_KEY",
    };
    let name = || Value::String(Arc::clone(&item.name));
    let index = if item.kind.is_indexed() { name() } else { Value::Null };
    Some(vec![name(), Value::string(kind), entity, subject, keys, index, Value::Null])
}
