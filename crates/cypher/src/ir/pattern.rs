//! Patterns of nodes and relationships.

use std::sync::Arc;

use super::{Expression, Slot};

/// A path: a node, then relationships and nodes in turn.
#[derive(Debug, Clone, PartialEq)]
pub struct PathPattern {
    /// The slot of the whole path, if it has a name.
    pub variable: Option<Slot>,
    /// `shortestPath(…)`, `allShortestPaths(…)`
    pub shortest: Option<Shortest>,
    /// The first node.
    pub start: NodePattern,
    /// The rest.
    pub steps: Vec<(RelationshipPattern, NodePattern)>,
}

/// Which of the paths between two nodes.
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
    /// Its slot; nodes without a name have one too.
    pub slot: Slot,
    /// Whether the slot has its value from before this clause or from earlier in its pattern.
    pub bound: bool,
    /// Labels it must have or gets.
    pub labels: Vec<Arc<str>>,
    /// Properties it must have or gets.
    pub properties: Properties,
}

/// A relationship of a pattern, or a chain of them if it has a length.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationshipPattern {
    /// Its slot (a list if it has a length); relationships without a name have one too.
    pub slot: Slot,
    /// Whether the slot has its value from before this clause.
    pub bound: bool,
    /// Types of which it must have one; empty for any.
    pub types: Vec<Arc<str>>,
    /// Seen from the node before it.
    pub direction: Direction,
    /// Properties it must have or gets.
    pub properties: Properties,
    /// `*`, `*2`, `*1..3`
    pub length: Option<Length>,
}

/// A direction, seen from the node written first.
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
    /// The same seen from the other end.
    pub fn reversed(self) -> Self {
        match self {
            Direction::Outgoing => Direction::Incoming,
            Direction::Incoming => Direction::Outgoing,
            Direction::Either => Direction::Either,
        }
    }
}

/// How many relationships in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// At least.
    pub from: u32,
    /// At most.
    pub to: Option<u32>,
}

/// What a pattern says about properties.
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
