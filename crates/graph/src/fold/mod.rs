//! The fold: from events to versions.

mod snapshot;

use crate::change::{ChangeSet, CommittedChanges};
use crate::event::{
    EventFault, GRAPH_CHANGED, GRAPH_SCHEMA_CHANGED, Part, PartPlace, decode_changes,
    decode_schema, merge,
};
use crate::graph::{Graph, VersionStamp};
use crate::names::{Name, PrivateNames};
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
        let decoded = if is_schema {
            DecodedChanges::of(&self.graph, |names| decode_schema(names, data))
        } else {
            match join(&self.graph, unfinished, data) {
                Ok(Reassembly::Whole(changes)) => Ok(changes),
                Ok(Reassembly::Incomplete(unfinished)) => {
                    self.unfinished = Some(unfinished);
                    return FoldStep::Pending;
                }
                Err(fault) => Err(fault),
            }
        };
        let DecodedChanges { changes, names } = match decoded {
            Ok(decoded) => decoded,
            Err(fault) => return FoldStep::Void(fault.to_string()),
        };
        match self.graph.apply_decoded(changes, &names) {
            Ok(committed) => FoldStep::Applied(committed),
            Err(unsound) => FoldStep::Void(unsound.to_string()),
        }
    }
}

/// The change set of an event, or of all parts of a transaction.
struct DecodedChanges {
    changes: ChangeSet,
    /// The private names in it.
    names: Vec<(Name, Arc<str>)>,
}

impl DecodedChanges {
    /// Decodes with private names for those that the version does not have.
    fn of(
        graph: &Graph,
        decode: impl FnOnce(&Graph) -> Result<ChangeSet, EventFault>,
    ) -> Result<DecodedChanges, EventFault> {
        let names = graph.with_private_names();
        let changes = decode(&names).and_then(merge)?;
        let names = names.private_names().map(PrivateNames::all).unwrap_or_default();
        Ok(DecodedChanges { changes, names })
    }
}

/// Adds an event to the received parts.
fn join(
    graph: &Graph,
    unfinished: Option<Arc<IncompleteTransaction>>,
    data: &[u8],
) -> Result<Reassembly, EventFault> {
    let mut part = None;
    let alone = DecodedChanges::of(graph, |names| {
        let Part { changes, place } = decode_changes(names, data)?;
        part = place;
        Ok(changes)
    });
    let Some(PartPlace { transaction, number, of }) = part else {
        return alone.map(Reassembly::Whole);
    };
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
    // Names are numbered in the order of the parts.
    let whole = DecodedChanges::of(graph, |names| {
        let mut whole = ChangeSet::default();
        for payload in so_far.payloads.iter().map(|payload| &**payload).chain([data]) {
            let part = decode_changes(names, payload)?.changes;
            whole.nodes.extend(part.nodes);
            whole.relationships.extend(part.relationships);
        }
        Ok(whole)
    });
    whole.map(Reassembly::Whole)
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
    Whole(DecodedChanges),
    Incomplete(Arc<IncompleteTransaction>),
}
