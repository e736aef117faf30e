//! Clauses.

use std::sync::Arc;

use super::{Expression, PathPattern, Projection, Query, Slot};

/// A clause. A query is a chain of clauses: each takes the rows of the previous one.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// `MATCH`, `OPTIONAL MATCH`
    Match(Match),
    /// `UNWIND`
    Unwind(Unwind),
    /// `LOAD CSV`
    LoadCsv(LoadCsv),
    /// `CALL name(…) YIELD …`
    CallProcedure(CallProcedure),
    /// `CALL { … }`
    CallSubquery(CallSubquery),
    /// `WITH`, `RETURN`
    Project(Projection),
    /// `CREATE`
    Create(Vec<PathPattern>),
    /// `MERGE`
    Merge(Merge),
    /// `SET`
    Set(Vec<SetItem>),
    /// `REMOVE`
    Remove(Vec<RemoveItem>),
    /// `DELETE`, `DETACH DELETE`
    Delete(Delete),
    /// `FOREACH`
    Foreach(Foreach),
}

/// `[OPTIONAL] MATCH patterns WHERE predicate`
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// A row without a match passes once, with nulls.
    pub optional: bool,
    /// The patterns; each relationship of the graph matches at most one of theirs.
    pub patterns: Vec<PathPattern>,
    /// `WHERE`, and conditions on labels and types beyond a plain list.
    pub predicate: Option<Expression>,
    /// The slots that this clause binds, including unnamed ones.
    pub introduced: Vec<Slot>,
}

/// `UNWIND list AS variable`
#[derive(Debug, Clone, PartialEq)]
pub struct Unwind {
    /// The list.
    pub list: Expression,
    /// The slot of its elements.
    pub variable: Slot,
}

/// `LOAD CSV [WITH HEADERS] FROM source AS variable FIELDTERMINATOR …`
#[derive(Debug, Clone, PartialEq)]
pub struct LoadCsv {
    /// The address of the file.
    pub source: Expression,
    /// Whether the first line names the fields: a row is then a map, otherwise a list.
    pub with_headers: bool,
    /// What stands between fields.
    pub terminator: u8,
    /// The slot of the row.
    pub variable: Slot,
}

/// `CALL name(arguments) YIELD field AS slot`
#[derive(Debug, Clone, PartialEq)]
pub struct CallProcedure {
    /// The name as written.
    pub name: Arc<str>,
    /// What it touches.
    pub mode: Mode,
    /// The arguments; for a bare `CALL name`, the parameters with the arguments' names.
    pub arguments: Vec<Expression>,
    /// The yielded fields and their slots.
    pub yields: Vec<(Arc<str>, Slot)>,
    /// `YIELD … WHERE`
    pub predicate: Option<Expression>,
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

/// `CALL { query }`
#[derive(Debug, Clone, PartialEq)]
pub struct CallSubquery {
    /// The query to run for every row. Without a result, it passes the row on once.
    pub query: Query,
    /// The slots of its columns, in order; empty if it returns nothing.
    pub introduced: Vec<Slot>,
}

/// `MERGE pattern ON CREATE SET … ON MATCH SET …`
#[derive(Debug, Clone, PartialEq)]
pub struct Merge {
    /// The pattern, which is matched or created as a whole.
    pub pattern: PathPattern,
    /// Conditions of the search on labels and types from expressions.
    pub predicate: Option<Expression>,
    /// What to set if it was created.
    pub on_create: Vec<SetItem>,
    /// What to set if it was matched.
    pub on_match: Vec<SetItem>,
    /// The slots that this clause binds.
    pub introduced: Vec<Slot>,
}

/// An item of `SET`.
#[derive(Debug, Clone, PartialEq)]
pub enum SetItem {
    /// `subject.key = value`
    Property {
        /// A node or relationship.
        subject: Expression,
        /// The property.
        key: Expression,
        /// Its value; null removes the property.
        value: Expression,
    },
    /// `subject = map`: removes all other properties.
    Replace {
        /// A node or relationship.
        subject: Expression,
        /// A map, node or relationship.
        value: Expression,
    },
    /// `subject += map`
    Merge {
        /// A node or relationship.
        subject: Expression,
        /// A map, node or relationship.
        value: Expression,
    },
    /// `subject:A:B`
    Labels {
        /// A node.
        subject: Expression,
        /// The labels.
        labels: Vec<Arc<str>>,
    },
    /// `subject:$(label)`, also in `REMOVE`
    DynamicLabels {
        /// A node.
        subject: Expression,
        /// A list of labels and lists of labels.
        labels: Expression,
        /// Whether they are removed.
        is_removal: bool,
    },
}

/// An item of `REMOVE`.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoveItem {
    /// `subject.key`
    Property {
        /// A node or relationship.
        subject: Expression,
        /// The property.
        key: Expression,
    },
    /// `subject:A:B`
    Labels {
        /// A node.
        subject: Expression,
        /// The labels.
        labels: Vec<Arc<str>>,
    },
}

/// `[DETACH] DELETE targets`
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// Also deletes the relationships of a deleted node.
    pub detach: bool,
    /// Nodes, relationships and paths.
    pub targets: Vec<Expression>,
}

/// `FOREACH (variable IN list | updates)`
#[derive(Debug, Clone, PartialEq)]
pub struct Foreach {
    /// The slot of the element.
    pub variable: Slot,
    /// The list.
    pub list: Expression,
    /// Updating clauses only.
    pub updates: Vec<Clause>,
}
