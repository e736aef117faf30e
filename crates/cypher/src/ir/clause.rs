//! Clauses.

use std::sync::Arc;

use super::{Expression, PathPattern, Projection, Query, Slot};

/// A clause. A query is a chain of them: each takes the rows of the one before it.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// `MATCH`, `OPTIONAL MATCH`
    Match(Match),
    /// `UNWIND`
    Unwind(Unwind),
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
    /// What is looked for; no relationship stands for two of them.
    pub patterns: Vec<PathPattern>,
    /// `WHERE`, and what labels and types beyond a plain list ask.
    pub predicate: Option<Expression>,
    /// The slots that this clause binds, those without a name too.
    pub introduced: Vec<Slot>,
}

/// `UNWIND list AS variable`
#[derive(Debug, Clone, PartialEq)]
pub struct Unwind {
    /// The list.
    pub list: Expression,
    /// Where its elements go.
    pub variable: Slot,
}

/// `CALL name(arguments) YIELD field AS slot`
#[derive(Debug, Clone, PartialEq)]
pub struct CallProcedure {
    /// The name, as it was written.
    pub name: Arc<str>,
    /// The arguments; of `CALL name` alone the parameters of their names.
    pub arguments: Vec<Expression>,
    /// The fields taken over and their slots.
    pub yields: Vec<(Arc<str>, Slot)>,
    /// `YIELD … WHERE`
    pub predicate: Option<Expression>,
}

/// `CALL { query }`
#[derive(Debug, Clone, PartialEq)]
pub struct CallSubquery {
    /// What is run for every row. Without a result it passes the row on once.
    pub query: Query,
    /// The slots its columns go to, in their order; empty if it returns nothing.
    pub introduced: Vec<Slot>,
}

/// `MERGE pattern ON CREATE SET … ON MATCH SET …`
#[derive(Debug, Clone, PartialEq)]
pub struct Merge {
    /// What is matched as a whole or created as a whole.
    pub pattern: PathPattern,
    /// What is set if it was created.
    pub on_create: Vec<SetItem>,
    /// What is set if it was matched.
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
        /// Which property.
        key: Expression,
        /// Its value; null removes it.
        value: Expression,
    },
    /// `subject = map`: all others are removed.
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
}

/// An item of `REMOVE`.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoveItem {
    /// `subject.key`
    Property {
        /// A node or relationship.
        subject: Expression,
        /// Which property.
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
    /// Relationships of a deleted node go as well.
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
