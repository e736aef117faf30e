//! A property graph as persistent data.
//!
//! A version of the graph is one [`Graph`], which is cloned in constant time; a [`Transaction`] works on its own
//! clone. Nothing here reads a clock, a disk or a socket.
#![forbid(unsafe_code)]
// What change sets and snapshots will use.
#![allow(dead_code)]

mod fault;
mod footprint;
mod graph;
mod id;
pub mod limits;
mod names;
mod store;
mod transaction;
pub mod value;

pub use fault::{GraphError, Violation};
pub use graph::{
    Adjacent, Graph, Progress, Relationship, SchemaDefinition, SchemaKind, SchemaSubject,
};
pub use id::{Entity, NodeId, RelationshipId};
pub use names::{Name, is_name};
pub use transaction::{
    AdjacencyScan, Direction, FinishedTransaction, NodeScan, PropertyChange, RelationshipScan,
    Statistics, Transaction,
};
pub use value::Value;
