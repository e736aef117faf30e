//! Schema changes.

use std::sync::Arc;

/// `CREATE/DROP INDEX/CONSTRAINT`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaChange {
    /// `CREATE … [IF NOT EXISTS]`
    Create(SchemaCreation),
    /// `DROP INDEX|CONSTRAINT name [IF EXISTS]`
    Drop {
        /// The name.
        name: SchemaValue,
        /// Whether it must be a constraint.
        constraint: bool,
        /// `IF EXISTS`: no error if it does not exist.
        if_exists: bool,
    },
}

/// An index or constraint to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaCreation {
    /// The name; without it, one is generated from the definition.
    pub name: Option<SchemaValue>,
    /// The kind of item to create.
    pub kind: SchemaKind,
    /// Nodes or relationships.
    pub on: SchemaTarget,
    /// The labels or types, at least one.
    pub labels: Vec<Arc<str>>,
    /// The properties.
    pub keys: Vec<Arc<str>>,
    /// The settings that `OPTIONS` has, those within `indexConfig` included.
    pub options: Vec<(Arc<str>, SchemaValue)>,
    /// `IF NOT EXISTS`: no error if it exists.
    pub if_not_exists: bool,
}

/// A value in a schema command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaValue {
    /// A name or a string.
    Text(Arc<str>),
    /// An integer.
    Integer(i64),
    /// `$name`
    Parameter(Arc<str>),
    /// Any other value, which nothing reads.
    Other,
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
    /// An index of vectors.
    Vector,
    /// An index of words.
    Fulltext,
}

/// The target of an index or constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaTarget {
    /// Nodes with a label.
    Nodes,
    /// Relationships of a type.
    Relationships,
}
