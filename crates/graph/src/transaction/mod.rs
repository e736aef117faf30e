//! A transaction: a version of its own, and what was read and written in it.
//!
//! Nothing is undone: to roll back is to drop it.

mod finish;
mod read;
mod scan;
mod schema;
mod statistics;
mod write;

pub use finish::FinishedTransaction;
pub use scan::{AdjacencyScan, Direction, NodeScan, RelationshipScan};
pub use statistics::Statistics;
pub use write::PropertyChange;

use crate::fault::{GraphError, Violation};
use crate::footprint::Footprint;
use crate::graph::{Graph, Relationship, SchemaDefinition};
use crate::id::{NodeId, RelationshipId};
use crate::limits::{MAX_GROWTH_BYTES, MAX_WRITES};
use crate::names::{Name, is_name};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is noted of an entity that was written or read, in bytes.
const NOTE_BYTES: usize = 64;

/// Reads and writes on a version of its own.
#[derive(Debug)]
pub struct Transaction {
    base: Graph,
    graph: Graph,
    access: Access,
    footprint: RefCell<Footprint>,
    /// Bytes of rows that were gone through since that was last asked.
    walked: Cell<u64>,
    writes: Writes,
    statistics: Statistics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// What was written, by id; what came of it is in the version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes {
    pub(crate) nodes: BTreeSet<NodeId>,
    pub(crate) relationships: BTreeSet<RelationshipId>,
    /// What is left of relationships that were deleted.
    pub(crate) deleted: BTreeMap<RelationshipId, Relationship>,
    pub(crate) created_items: Vec<SchemaDefinition>,
    pub(crate) dropped_items: Vec<Arc<str>>,
    /// By how many bytes the rows are longer.
    growth: i64,
    /// How often something was written.
    count: u64,
    /// How many bytes of pages it had when that was last found out, and `count` then.
    measured: Cell<(usize, u64)>,
    /// What the constraints were not yet asked about.
    unchecked_nodes: Vec<NodeId>,
    unchecked_relationships: Vec<RelationshipId>,
}

impl Transaction {
    /// A transaction that only reads, and notes nothing.
    #[must_use]
    pub fn reading(graph: Graph) -> Transaction {
        Transaction::new(graph, Access::Read)
    }

    /// A transaction that may write, and notes what it reads.
    #[must_use]
    pub fn writing(graph: Graph) -> Transaction {
        Transaction::new(graph, Access::Write)
    }

    /// One that becomes coarser sooner.
    #[cfg(test)]
    pub(crate) fn with_footprint_limit(graph: Graph, limit: usize) -> Transaction {
        let footprint = RefCell::new(Footprint::with_limit(limit));
        Transaction { footprint, ..Transaction::writing(graph) }
    }

    fn new(base: Graph, access: Access) -> Transaction {
        Transaction {
            graph: base.clone(),
            base,
            access,
            footprint: RefCell::default(),
            walked: Cell::default(),
            writes: Writes::default(),
            statistics: Statistics::default(),
        }
    }

    /// The position of the version it began with.
    #[must_use]
    pub fn base_position(&self) -> u64 {
        self.base.position()
    }

    /// Whether it may write.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.access == Access::Write
    }

    /// Whether it began with a version of the graph that this is a version of.
    #[must_use]
    pub fn is_of(&self, graph: &Graph) -> bool {
        self.base.is_kin(graph)
    }

    /// Whether anything was written in it, even if that has come to no change.
    #[must_use]
    pub fn has_written(&self) -> bool {
        let Writes { nodes, relationships, created_items, dropped_items, .. } = &self.writes;
        !nodes.is_empty()
            || !relationships.is_empty()
            || !created_items.is_empty()
            || !dropped_items.is_empty()
    }

    /// The same once more, to try something with; nothing if it has read or written so much that a
    /// copy would be dear.
    #[must_use]
    pub fn small_copy(&self) -> Option<Transaction> {
        const MOST_ENTRIES: usize = 256;
        let Writes { nodes, relationships, created_items, dropped_items, .. } = &self.writes;
        let written = nodes.len() + relationships.len() + created_items.len() + dropped_items.len();
        let is_small = written + self.footprint.borrow().entries() <= MOST_ENTRIES;
        is_small.then(|| Transaction {
            base: self.base.clone(),
            graph: self.graph.clone(),
            access: self.access,
            footprint: self.footprint.clone(),
            walked: self.walked.clone(),
            writes: self.writes.clone(),
            statistics: self.statistics,
        })
    }

    /// The name of that text: of a label, a type or a key. [`Name::UNKNOWN`] for what cannot be a
    /// name, and in a reading transaction for what the graph never saw; nothing is found by it, and
    /// writing it is refused.
    #[must_use]
    pub fn name(&self, text: &str) -> Name {
        let name = match self.access {
            Access::Read => self.graph.find_name(text),
            // What is not there must have a name too, for the footprint to say so.
            Access::Write => self.graph.names().intern_for_statement(text),
        };
        name.unwrap_or(Name::UNKNOWN)
    }

    /// The name of that text, if the graph ever saw it: enough to read a property or ask for a
    /// label of one entity, which is noted as a whole. [`Name::UNKNOWN`] otherwise, until somebody
    /// writes it.
    #[must_use]
    pub fn known_name(&self, text: &str) -> Name {
        self.graph.find_name(text).unwrap_or(Name::UNKNOWN)
    }

    /// Why [`name`](Self::name) gave none for a text.
    #[must_use]
    pub fn refused_name(&self, text: &str) -> GraphError {
        if is_name(text) { self.graph.refused_name() } else { GraphError::NotAName }
    }

    /// The text of a name.
    #[must_use]
    pub fn text(&self, name: Name) -> Arc<str> {
        self.graph.text(name)
    }

    /// About how many bytes it holds besides the version that it began with: the pages it made and
    /// copied, what it notes of what it wrote, and its footprint.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let Writes { nodes, relationships, deleted, .. } = &self.writes;
        let written = nodes.len() + relationships.len() + deleted.len();
        let notes = written + self.footprint.borrow().entries();
        size_of::<Transaction>() + notes * NOTE_BYTES + self.page_bytes()
    }

    /// About how many bytes of memory what was written has taken so far, of pages and of what is
    /// noted of them: cheap enough to be asked after every write. Pages are gone through each time
    /// that an eighth more was written.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        /// Writes that are not worth looking at.
        const FEW_WRITES: u64 = 256;
        /// About what a write takes, until that is known.
        const WRITE_BYTES: usize = 1 << 10;
        let Writes { nodes, relationships, count, measured, .. } = &self.writes;
        let (_, at) = measured.get();
        if *count >= at + at / 8 + FEW_WRITES {
            measured.set((self.graph.own_bytes(), *count));
        }
        let (bytes, at) = measured.get();
        let since = usize::try_from(count - at).unwrap_or(usize::MAX).saturating_mul(WRITE_BYTES);
        bytes + since + (nodes.len() + relationships.len()) * NOTE_BYTES
    }

    /// About how many bytes of memory it takes to finish it: the change of each entity, and the
    /// events of them all.
    #[must_use]
    pub fn finishing_bytes(&self) -> usize {
        /// Of a change, and what it touches, besides its content.
        const CHANGE_BYTES: usize = 256;
        let Writes { nodes, relationships, growth, .. } = &self.writes;
        let growth = usize::try_from(*growth).unwrap_or(0);
        (nodes.len() + relationships.len()) * CHANGE_BYTES + 2 * growth
    }

    /// How many bytes of pages it made and copied. Of a large one this is found out when it has
    /// grown, not every time.
    fn page_bytes(&self) -> usize {
        /// More than most writes take, with the pages of a few indexes.
        const WRITE_BYTES: usize = 16 << 10;
        let Writes { count, measured, .. } = &self.writes;
        let (bytes, at) = measured.get();
        let since = usize::try_from(count - at).unwrap_or(usize::MAX).saturating_mul(WRITE_BYTES);
        if since == 0 || since < bytes / 16 {
            return bytes + since;
        }
        let bytes = self.graph.own_bytes();
        measured.set((bytes, *count));
        bytes
    }

    /// What the statements did since this was last asked.
    pub fn take_statistics(&mut self) -> Statistics {
        std::mem::take(&mut self.statistics)
    }

    /// What the statements did since [`take_statistics`](Self::take_statistics).
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// How many bytes of rows were gone through to read and write since this was last asked: one
    /// property of an entity with very many costs as many.
    #[must_use]
    pub fn take_walked(&self) -> u64 {
        self.walked.take()
    }

    fn walk(&self, row: Option<&[u8]>) {
        self.walked.set(self.walked.get().saturating_add(row.map_or(0, <[u8]>::len) as u64));
    }

    fn note(&self, note: impl FnOnce(&mut Footprint)) {
        if self.access == Access::Write {
            note(&mut self.footprint.borrow_mut());
        }
    }

    /// Judges what was written since the last call by the constraints: to be called when a
    /// statement ends.
    ///
    /// # Errors
    /// The first constraint that is broken. The transaction must be dropped then.
    pub fn check(&mut self) -> Result<(), Violation> {
        for id in std::mem::take(&mut self.writes.unchecked_nodes) {
            self.graph.check_node(id)?;
        }
        for id in std::mem::take(&mut self.writes.unchecked_relationships) {
            self.graph.check_relationship(id)?;
        }
        Ok(())
    }

    /// Counts a write, and ends a transaction that could not be committed anyway.
    fn grow(&mut self, bytes: i64) -> Result<(), GraphError> {
        let writes = &mut self.writes;
        writes.growth += bytes;
        writes.count += 1;
        let count = writes.nodes.len() + writes.relationships.len();
        if count > MAX_WRITES || writes.growth > MAX_GROWTH_BYTES {
            let bytes = usize::try_from(writes.growth).unwrap_or(0);
            return Err(Violation::TransactionTooLarge { bytes }.into());
        }
        Ok(())
    }

    fn writable(&self) -> Result<(), GraphError> {
        match self.access {
            Access::Read => Err(GraphError::ReadOnly),
            Access::Write => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
