//! Changes of the schema.

use std::sync::Arc;

/// `CREATE/DROP INDEX/CONSTRAINT`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaChange {
    /// `CREATE … [IF NOT EXISTS]`
    Create {
        /// The name; without it one is made up from what it is on.
        name: Option<Arc<str>>,
        /// What is created.
        kind: SchemaKind,
        /// Nodes or relationships.
        on: SchemaTarget,
        /// The label or type.
        label: Arc<str>,
        /// The properties.
        keys: Vec<Arc<str>>,
        /// `IF NOT EXISTS`: no error if it is there.
        if_not_exists: bool,
    },
    /// `DROP INDEX|CONSTRAINT name [IF EXISTS]`
    Drop {
        /// The name.
        name: Arc<str>,
        /// Whether a constraint is meant.
        constraint: bool,
        /// `IF EXISTS`: no error if it is not there.
        if_exists: bool,
    },
}

/// What kind of index or constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaKind {
    /// An index that finds equal values.
    Range,
    /// No two entities have the same values.
    Unique,
    /// Every entity has the properties.
    Exists,
    /// Both.
    Key,
}

/// What an index or constraint is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaTarget {
    /// Nodes with a label.
    Nodes,
    /// Relationships of a type.
    Relationships,
}
