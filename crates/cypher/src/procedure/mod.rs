//! Procedures: the targets of `CALL`.

mod apoc_schema;
mod built_in;
mod changes;
mod events;
mod graph_names;
mod meta;
mod scans;
mod schema_items;
mod search_index;
mod server_facts;
mod shown;
mod signature;
mod survey;
mod text_search;
mod vector_search;

pub use built_in::BuiltIn;
pub(crate) use shown::{SHOW_COMMAND_LISTS, ShowCommandList};

use crate::context::Context;
use crate::error::Result;
pub use crate::ir::Mode;
use crate::value::Value;
use std::sync::Arc;

/// The version of Neo4j whose language and forms of results are spoken.
pub const NEO4J_VERSION: &str = "5.26.0";

/// A procedure: takes values and returns rows.
pub trait Procedure: Send + Sync {
    /// Its arguments, in order; the optional ones are the last.
    fn arguments(&self) -> Vec<Argument>;
    /// The names of its columns; empty if it returns none.
    fn yields(&self) -> Vec<String>;
    /// What it touches.
    fn mode(&self) -> Mode {
        Mode::Read
    }
    /// The rows for these arguments, of which optional ones that are not given are null.
    ///
    /// # Errors
    /// Invalid arguments, and errors of the procedure.
    fn call(&self, arguments: &[Value], context: &mut Context<'_>) -> Result<Rows>;
}

/// The rows of a procedure, each as wide as its columns.
pub type Rows = Vec<Vec<Value>>;

/// An argument of a procedure.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its name; a bare `CALL name` uses the parameter with that name.
    pub name: String,
    /// Its type; null is always allowed.
    pub kind: ArgumentType,
    /// Whether it may be omitted, which is null.
    pub is_optional: bool,
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
    /// A map.
    Map,
    /// A list.
    List,
    /// A node.
    Node,
    /// A relationship.
    Relationship,
}

/// A registry of procedures.
pub trait Procedures {
    /// The procedure with this name.
    fn find(&self, name: &str) -> Option<Arc<dyn Procedure>>;
}
