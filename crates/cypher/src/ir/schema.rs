//! Schema changes.

use std::sync::Arc;

/// `CREATE/DROP INDEX/CONSTRAINT`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaChange {
    /// `CREATE … [IF NOT EXISTS]`
    Create {
        /// The name; without it, one is generated from the definition.
        name: Option<Arc<str>>,
        /// The kind of item to create.
        kind: SchemaKind,
        /// Nodes or relationships.
        on: SchemaTarget,
        /// The label or type.
        label: Arc<str>,
        /// The properties.
        keys: Vec<Arc<str>>,
        /// `IF NOT EXISTS`: no error if it exists.
        if_not_exists: bool,
    },
    /// `DROP INDEX|CONSTRAINT name [IF EXISTS]`
    Drop {
        /// The name.
        name: Arc<str>,
        /// Whether it must be a constraint.
        constraint: bool,
        /// `IF EXISTS`: no error if it does not exist.
        if_exists: bool,
    },
}

/// The kind of an index or constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaKind {
    /// An index for equality lookups.
    Range,
    /// No two entities have the same values.
    Unique,
    /// Every entity has the properties.
    Exists,
    /// Both of the above.
    Key,
}

/// The target of an index or constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaTarget {
    /// Nodes with a label.
    Nodes,
    /// Relationships of a type.
    Relationships,
}
