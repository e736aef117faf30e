//! A property graph as persistent data.
//!
//! A version of the graph is a [`Graph`], which is cloned in constant time; a [`Transaction`] works
//! on its own clone. Nothing here uses a clock, a disk or a socket.
//!
//! ```text
//! Transaction::writing(version) ── statements: reads are recorded, writes go to the clone
//!   finish()                       constraints, relationships of deleted nodes
//!   prepare()                      the net change; its events(…)
//!   decide(head, changes since)    Committed: the next version │ Unchanged │ Overtaken: again │ Refused
//! GraphFold::apply(event)          the same version from the log; encode and decode: its snapshot
//! ```
//! Dropping a transaction rolls it back. After an error in the middle of a statement the
//! transaction holds a partial statement, so it must be dropped as well. Holding a version only
//! makes writers copy the pages they change.
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
    ChangeFault, ChangeSet, CommittedChanges, NodeChange, PropertyChanges, RelationshipChange,
    Touches,
};
pub use decide::{Commit, PreparedTransaction, Verdict};
pub use event::EventFault;
pub use fault::{GraphError, SnapshotFault, Violation};
pub use fold::{Adoption, FoldStep, GraphFold};
pub use graph::{
    Adjacent, Graph, Progress, Relationship, SchemaDefinition, SchemaKind, SchemaSubject,
    Similarity, VectorSettings, VersionStamp,
};
pub use id::{Entity, NodeId, RelationshipId};
pub use names::{Name, is_name};
pub use transaction::{
    AdjacencyScan, Direction, DrawnIds, EntityScan, FinishedTransaction, NodeScan, PropertyChange,
    RelationshipScan, Statistics, Transaction,
};
pub use value::Value;
