//! The fold: from events to versions.

mod snapshot;

use crate::change::{ChangeSet, CommittedChanges};
use crate::event::{
    EventFault, GRAPH_CHANGED, GRAPH_SCHEMA_CHANGED, Part, decode_changes, decode_schema, merge,
};
use crate::graph::{Graph, VersionStamp};
use std::sync::Arc;

/// A version and the received parts of an incomplete transaction: they are published, stored in a
/// snapshot and restored together. A clone is cheap.
#[derive(Debug, Clone, Default)]
pub struct GraphFold {
    graph: Graph,
    unfinished: Option<Arc<IncompleteTransaction>>,
}

/// The received parts of an incomplete transaction.
#[derive(Debug, Clone, PartialEq)]
struct IncompleteTransaction {
    transaction: String,
    of: u64,
    /// Payloads of the received parts, in order.
    payloads: Vec<Arc<[u8]>>,
}

/// Maximum size of all parts of a transaction: what one append can hold.
const MAX_BYTES: usize = 16 << 20;

/// Whether the fold adopted a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// It is the fold's version now.
    Adopted,
    /// It is older, of another graph, or based on another version: the event must be folded.
    MustFold,
}

/// The effect of an event.
#[derive(Debug)]
pub enum FoldStep {
    /// It is not an event of the graph, or the version includes it already.
    Passed,
    /// It is a part; the transaction takes effect with its last part.
    Pending,
    /// It was applied.
    Applied(CommittedChanges),
    /// It is invalid, or the version does not allow it: its whole transaction is ignored.
    Void(String),
}

impl From<Graph> for GraphFold {
    /// The fold at a version, without an incomplete transaction.
    fn from(graph: Graph) -> GraphFold {
        GraphFold { graph, unfinished: None }
    }
}

impl GraphFold {
    /// The fold of no events.
    #[must_use]
    pub fn new() -> GraphFold {
        GraphFold::default()
    }

    /// The current version.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Adopts the version of a commit instead of folding its event. The version must have the
    /// event's position and be based on exactly the folded version. The caller guarantees that the
    /// event records this commit.
    pub fn adopt(&mut self, version: &Graph, follows: VersionStamp) -> Adoption {
        let is_newer = version.position() > self.graph.position();
        if !is_newer || !version.is_kin(&self.graph) || self.graph.stamp() != follows {
            return Adoption::MustFold;
        }
        self.unfinished = None;
        self.graph = version.clone();
        Adoption::Adopted
    }

    /// Folds the next event; ignores events that the version already includes.
    pub fn apply(&mut self, position: u64, event_type: &str, data: &[u8]) -> FoldStep {
        let is_schema = event_type == GRAPH_SCHEMA_CHANGED;
        let concerns = is_schema || event_type == GRAPH_CHANGED;
        if !concerns || position <= self.graph.position() {
            return FoldStep::Passed;
        }
        self.graph.set_position(position);
        self.graph.stamp_anew();
        // Whatever comes next: parts that are not continued now never will be.
        let unfinished = self.unfinished.take();
        let changes = match is_schema {
            true => decode_schema(&self.graph, data),
            false => match decode_changes(&self.graph, data) {
                Err(fault) => Err(fault),
                Ok(part) => match self.join(unfinished, part, data) {
                    Ok(Reassembly::Whole(changes)) => Ok(changes),
                    Ok(Reassembly::Incomplete(unfinished)) => {
                        self.unfinished = Some(unfinished);
                        return FoldStep::Pending;
                    }
                    Err(fault) => Err(fault),
                },
            },
        };
        let changes = match changes.and_then(merge) {
            Ok(changes) => changes,
            Err(fault) => return FoldStep::Void(fault.to_string()),
        };
        match self.graph.apply(&changes) {
            Ok(touches) => FoldStep::Applied(CommittedChanges { changes, touches }),
            Err(unsound) => FoldStep::Void(unsound.to_string()),
        }
    }

    /// Adds a part to the received ones.
    fn join(
        &self,
        unfinished: Option<Arc<IncompleteTransaction>>,
        part: Part,
        data: &[u8],
    ) -> Result<Reassembly, EventFault> {
        let Part { transaction, number, of, changes } = part;
        let Some(transaction) = transaction else { return Ok(Reassembly::Whole(changes)) };
        let mut so_far = match unfinished.map(Arc::unwrap_or_clone) {
            Some(known) if known.is_followed_by(&transaction, number, of, data.len()) => known,
            _ if number == 1 => IncompleteTransaction { transaction, of, payloads: Vec::new() },
            _ => {
                return Err(EventFault(
                    "a part out of sequence, or too many bytes in parts".to_owned(),
                ));
            }
        };
        if number < of {
            so_far.payloads.push(data.into());
            return Ok(Reassembly::Incomplete(Arc::new(so_far)));
        }
        let mut whole = ChangeSet::default();
        for payload in &so_far.payloads {
            let part = decode_changes(&self.graph, payload)?.changes;
            whole.nodes.extend(part.nodes);
            whole.relationships.extend(part.relationships);
        }
        whole.nodes.extend(changes.nodes);
        whole.relationships.extend(changes.relationships);
        Ok(Reassembly::Whole(whole))
    }
}

impl IncompleteTransaction {
    fn is_followed_by(&self, transaction: &str, number: u64, of: u64, bytes: usize) -> bool {
        let so_far: usize = self.payloads.iter().map(|payload| payload.len()).sum();
        self.transaction == transaction
            && self.of == of
            && self.payloads.len() as u64 + 1 == number
            && so_far + bytes <= MAX_BYTES
    }
}

enum Reassembly {
    Whole(ChangeSet),
    Incomplete(Arc<IncompleteTransaction>),
}
