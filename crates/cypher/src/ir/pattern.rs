//! Patterns of nodes and relationships.

use std::sync::Arc;

use super::{Expression, Slot};

/// A path: a node, then alternating relationships and nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct PathPattern {
    /// The slot of the whole path, if it has a name.
    pub variable: Option<Slot>,
    /// `shortestPath(…)`, `allShortestPaths(…)`
    pub shortest: Option<Shortest>,
    /// The first node.
    pub start: NodePattern,
    /// The other elements.
    pub steps: Vec<(RelationshipPattern, NodePattern)>,
}

/// Which of the paths between two nodes to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortest {
    /// One of the shortest.
    One,
    /// All of the shortest.
    All,
}

/// A node of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePattern {
    /// Its slot; unnamed nodes have one too.
    pub slot: Slot,
    /// Whether the slot is bound before this clause or earlier in its pattern.
    pub bound: bool,
    /// The labels to match or to create.
    pub labels: Vec<Arc<str>>,
    /// Further labels to create: a label or a list of labels each. To match them is a condition.
    pub dynamic_labels: Vec<Expression>,
    /// The properties to match or to create.
    pub properties: Properties,
}

/// A relationship of a pattern, or a chain of relationships if it has a length.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationshipPattern {
    /// Its slot (a list if it has a length); unnamed relationships have one too.
    pub slot: Slot,
    /// Whether it has a name.
    pub has_name: bool,
    /// Whether the slot is bound before this clause.
    pub bound: bool,
    /// Its possible types; empty for any.
    pub types: Vec<Arc<str>>,
    /// The type to create, if `types` does not have it. To match it is a condition.
    pub dynamic_type: Option<Expression>,
    /// Relative to the preceding node.
    pub direction: Direction,
    /// The properties to match or to create.
    pub properties: Properties,
    /// `*`, `*2`, `*1..3`
    pub length: Option<Length>,
}

/// A direction, relative to the node written first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `-->`
    Outgoing,
    /// `<--`
    Incoming,
    /// `--`, `<-->`
    Either,
}

impl Direction {
    /// The direction relative to the other end.
    pub fn reversed(self) -> Self {
        match self {
            Direction::Outgoing => Direction::Incoming,
            Direction::Incoming => Direction::Outgoing,
            Direction::Either => Direction::Either,
        }
    }
}

/// The number of relationships in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// Minimum.
    pub from: u32,
    /// Maximum.
    pub to: Option<u32>,
}

/// The properties in a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum Properties {
    /// `{key: value}`, or nothing.
    Entries(Vec<(Arc<str>, Expression)>),
    /// `$parameter`: a whole map.
    Map(Expression),
}

impl Properties {
    /// The entries of a literal map.
    pub fn entries(&self) -> &[(Arc<str>, Expression)] {
        match self {
            Properties::Entries(entries) => entries,
            Properties::Map(_) => &[],
        }
    }
}
