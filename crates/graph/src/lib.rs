//! A property graph as persistent data.
//!
//! A version of the graph is one [`Graph`], which is cloned in constant time; a [`Transaction`] works on its own
//! clone. Nothing here reads a clock, a disk or a socket.
#![forbid(unsafe_code)]

mod change;
mod decide;
mod dump;
pub mod event;
mod fault;
mod fold;
mod footprint;
mod graph;
mod id;
pub mod limits;
mod names;
mod store;
#[cfg(test)]
mod tests;
mod transaction;
pub mod value;

pub use change::{
    ChangeSet, CommittedChanges, NodeChange, PropertyChanges, RelationshipChange, Touches, Unsound,
};
pub use decide::{Commit, PreparedTransaction, Verdict};
pub use event::EventFault;
pub use fault::{GraphError, SnapshotFault, Violation};
pub use fold::{FoldStep, GraphFold};
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
