//! The fold: events in, versions out.

mod snapshot;

use crate::change::{ChangeSet, CommittedChanges};
use crate::event::{
    EventFault, GRAPH_CHANGED, GRAPH_SCHEMA_CHANGED, Part, decode_changes, decode_schema, merge,
};
use crate::graph::{Graph, VersionStamp};
use std::sync::Arc;

/// A version and the parts of a transaction whose last part has not come: what is published, kept
/// in a snapshot and restored together. A clone is cheap.
#[derive(Debug, Clone, Default)]
pub struct GraphFold {
    graph: Graph,
    unfinished: Option<Arc<Unfinished>>,
}

/// The parts of a transaction that have come.
#[derive(Debug, Clone, PartialEq)]
struct Unfinished {
    transaction: String,
    of: u64,
    /// Of the parts that have come, in order.
    payloads: Vec<Arc<[u8]>>,
}

/// Most bytes of all parts of a transaction: what one append can hold.
const MAX_BYTES: usize = 16 << 20;

/// Whether a version was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// It is the fold's now.
    Adopted,
    /// It is older, of another graph, or was decided on another version: the event must be folded.
    MustFold,
}

/// What an event did.
#[derive(Debug)]
pub enum FoldStep {
    /// It is no event of the graph, or it is in the version already.
    Passed,
    /// It is a part; the transaction shows when the last one comes.
    Pending,
    /// It is in the version now.
    Applied(CommittedChanges),
    /// It is nonsense, or the version does not allow it: nothing of its transaction shows.
    Void(String),
}

impl From<Graph> for GraphFold {
    /// A version that no parts are waited for in.
    fn from(graph: Graph) -> GraphFold {
        GraphFold { graph, unfinished: None }
    }
}

impl GraphFold {
    /// What comes of no events.
    #[must_use]
    pub fn new() -> GraphFold {
        GraphFold::default()
    }

    /// The version.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Takes the version that a commit came to, in place of folding its event: one whose position
    /// is that of the event, and which was decided on the very version that is folded. That the
    /// event tells this commit is the caller's to know.
    pub fn adopt(&mut self, version: &Graph, follows: VersionStamp) -> Adoption {
        let is_newer = version.position() > self.graph.position();
        if !is_newer || !version.is_kin(&self.graph) || self.graph.stamp() != follows {
            return Adoption::MustFold;
        }
        self.unfinished = None;
        self.graph = version.clone();
        Adoption::Adopted
    }

    /// Folds the next event. One whose position is in the version already changes nothing.
    pub fn apply(&mut self, position: u64, event_type: &str, data: &[u8]) -> FoldStep {
        let is_schema = event_type == GRAPH_SCHEMA_CHANGED;
        let concerns = is_schema || event_type == GRAPH_CHANGED;
        if !concerns || position <= self.graph.position() {
            return FoldStep::Passed;
        }
        self.graph.set_position(position);
        self.graph.stamp_anew();
        // Whatever comes: parts that do not go on now never will.
        let unfinished = self.unfinished.take();
        let changes = match is_schema {
            true => decode_schema(&self.graph, data),
            false => match decode_changes(&self.graph, data) {
                Err(fault) => Err(fault),
                Ok(part) => match self.join(unfinished, part, data) {
                    Ok(Joined::Whole(changes)) => Ok(changes),
                    Ok(Joined::Unfinished(unfinished)) => {
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

    /// Adds a part to those that have come.
    fn join(
        &self,
        unfinished: Option<Arc<Unfinished>>,
        part: Part,
        data: &[u8],
    ) -> Result<Joined, EventFault> {
        let Part { transaction, number, of, changes } = part;
        let Some(transaction) = transaction else { return Ok(Joined::Whole(changes)) };
        let mut so_far = match unfinished.map(Arc::unwrap_or_clone) {
            Some(known) if known.is_followed_by(&transaction, number, of, data.len()) => known,
            _ if number == 1 => Unfinished { transaction, of, payloads: Vec::new() },
            _ => return Err(EventFault("a part that follows nothing, or too much".to_owned())),
        };
        if number < of {
            so_far.payloads.push(data.into());
            return Ok(Joined::Unfinished(Arc::new(so_far)));
        }
        let mut whole = ChangeSet::default();
        for payload in &so_far.payloads {
            let part = decode_changes(&self.graph, payload)?.changes;
            whole.nodes.extend(part.nodes);
            whole.relationships.extend(part.relationships);
        }
        whole.nodes.extend(changes.nodes);
        whole.relationships.extend(changes.relationships);
        Ok(Joined::Whole(whole))
    }
}

impl Unfinished {
    fn is_followed_by(&self, transaction: &str, number: u64, of: u64, bytes: usize) -> bool {
        let so_far: usize = self.payloads.iter().map(|payload| payload.len()).sum();
        self.transaction == transaction
            && self.of == of
            && self.payloads.len() as u64 + 1 == number
            && so_far + bytes <= MAX_BYTES
    }
}

enum Joined {
    Whole(ChangeSet),
    Unfinished(Arc<Unfinished>),
}
