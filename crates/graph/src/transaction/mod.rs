//! A transaction: a private version, and the record of what it read and wrote.
//!
//! There is no undo: dropping a transaction rolls it back.

mod finish;
mod ids;
mod read;
mod scan;
mod schema;
mod statistics;
mod write;

pub use finish::FinishedTransaction;
pub use ids::DrawnIds;
pub use scan::{AdjacencyScan, Direction, EntityScan, NodeScan, RelationshipScan};
pub use statistics::Statistics;
pub use write::PropertyChange;

use crate::fault::{GraphError, Violation};
use crate::footprint::Footprint;
use crate::graph::{Graph, Relationship, SchemaDefinition};
use crate::id::{NodeId, RelationshipId};
use crate::limits::{MAX_GROWTH_BYTES, MAX_WRITES};
use crate::names::{Name, PrivateNames, is_name};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Memory for recording one written or read entity, in bytes.
const NOTE_BYTES: usize = 64;

/// Reads and writes a private version.
#[derive(Debug)]
pub struct Transaction {
    base: Graph,
    graph: Graph,
    access: Access,
    footprint: RefCell<Footprint>,
    /// Bytes of rows scanned since the last query.
    walked: Cell<u64>,
    writes: Writes,
    statistics: Statistics,
    drawn: DrawnIds,
    /// Ids to be drawn first, from the end.
    reserved: DrawnIds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The ids of what was written; the results are in the version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes {
    pub(crate) nodes: BTreeSet<NodeId>,
    pub(crate) relationships: BTreeSet<RelationshipId>,
    pub(crate) deleted: BTreeMap<RelationshipId, Relationship>,
    pub(crate) created_items: Vec<SchemaDefinition>,
    pub(crate) dropped_items: Vec<Arc<str>>,
    /// Growth of the rows, in bytes.
    growth: i64,
    /// Number of writes.
    count: u64,
    /// Size of the pages at the last measurement, and `count` at that time.
    measured: Cell<(usize, u64)>,
    /// Nodes not checked against the constraints yet.
    unchecked_nodes: Vec<NodeId>,
    unchecked_relationships: Vec<RelationshipId>,
}

impl Transaction {
    /// A read-only transaction, which records nothing.
    #[must_use]
    pub fn reading(graph: Graph) -> Transaction {
        Transaction::new(graph, Access::Read)
    }

    /// A transaction that may write and records its reads.
    #[must_use]
    pub fn writing(graph: Graph) -> Transaction {
        Transaction::new(graph, Access::Write)
    }

    /// A transaction with a lower footprint limit.
    #[cfg(test)]
    pub(crate) fn with_footprint_limit(graph: Graph, limit: usize) -> Transaction {
        let footprint = RefCell::new(Footprint::with_limit(limit));
        Transaction { footprint, ..Transaction::writing(graph) }
    }

    fn new(base: Graph, access: Access) -> Transaction {
        Transaction {
            graph: match access {
                Access::Read => base.clone(),
                Access::Write => base.with_private_names(),
            },
            base,
            access,
            footprint: RefCell::default(),
            walked: Cell::default(),
            writes: Writes::default(),
            statistics: Statistics::default(),
            drawn: DrawnIds::default(),
            reserved: DrawnIds::default(),
        }
    }

    /// The position of its base version.
    #[must_use]
    pub fn base_position(&self) -> u64 {
        self.base.position()
    }

    /// Whether it may write.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.access == Access::Write
    }

    /// Whether its base is a version of this graph.
    #[must_use]
    pub fn is_of(&self, graph: &Graph) -> bool {
        self.base.is_kin(graph)
    }

    /// Number of writes so far: what was read before is still so as long as it stays the same.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.count
    }

    /// Whether it has written anything, even without a net change.
    #[must_use]
    pub fn has_written(&self) -> bool {
        let Writes { nodes, relationships, created_items, dropped_items, .. } = &self.writes;
        !nodes.is_empty()
            || !relationships.is_empty()
            || !created_items.is_empty()
            || !dropped_items.is_empty()
    }

    /// A copy for a tentative execution; `None` if it has read or written so much that a copy would
    /// be expensive.
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
            drawn: self.drawn.clone(),
            reserved: self.reserved.clone(),
        })
    }

    /// The name with this text, of a label, type or key, for use in this transaction.
    /// [`Name::UNKNOWN`] for an invalid name and, in a read-only transaction, for a name that the
    /// graph never used; lookups with it find nothing, and writing it is refused.
    #[must_use]
    pub fn name(&self, text: &str) -> Name {
        let name = match self.access {
            Access::Read => self.graph.find_name(text),
            // Names that do not exist also need a number, so that the footprint can contain them.
            Access::Write => self.graph.intern_for_statement(text),
        };
        name.unwrap_or(Name::UNKNOWN)
    }

    /// The name with this text, if the graph ever used it: enough to read a property or test a
    /// label of one entity, which is recorded as a whole. Otherwise [`Name::UNKNOWN`], until a
    /// write introduces it.
    #[must_use]
    pub fn known_name(&self, text: &str) -> Name {
        self.graph.find_name(text).unwrap_or(Name::UNKNOWN)
    }

    /// Why [`name`](Self::name) rejected a text.
    #[must_use]
    pub fn refused_name(&self, text: &str) -> GraphError {
        if is_name(text) { self.graph.refused_name() } else { GraphError::NotAName }
    }

    /// The text of a name.
    #[must_use]
    pub fn text(&self, name: Name) -> Arc<str> {
        self.graph.text(name)
    }

    /// Approximate memory in bytes beyond the base version: the pages it created and copied, the
    /// records of its writes, and its footprint.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let Writes { nodes, relationships, deleted, .. } = &self.writes;
        let written = nodes.len() + relationships.len() + deleted.len();
        let notes = written + self.footprint.borrow().entries();
        size_of::<Transaction>()
            + notes * NOTE_BYTES
            + self.name_bytes()
            + self.page_bytes()
            + self.drawn.bytes()
    }

    /// Approximate memory in bytes taken by writes so far, for pages and records: cheap enough to
    /// query after every write. Pages are measured again after every eighth more writes.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        /// Number of writes that are not worth measuring.
        const FEW_WRITES: u64 = 256;
        /// Assumed memory of a write until it is measured.
        const WRITE_BYTES: usize = 1 << 10;
        let Writes { nodes, relationships, count, measured, .. } = &self.writes;
        let (_, at) = measured.get();
        if *count >= at + at / 8 + FEW_WRITES {
            measured.set((self.graph.own_bytes(), *count));
        }
        let (bytes, at) = measured.get();
        let since = usize::try_from(count - at).unwrap_or(usize::MAX).saturating_mul(WRITE_BYTES);
        bytes + since + (nodes.len() + relationships.len()) * NOTE_BYTES + self.name_bytes()
    }

    /// Approximate memory in bytes needed to finish it: the change of each entity and all events.
    #[must_use]
    pub fn finishing_bytes(&self) -> usize {
        /// Overhead of a change and its touches, without content.
        const CHANGE_BYTES: usize = 256;
        let Writes { nodes, relationships, growth, .. } = &self.writes;
        let growth = usize::try_from(*growth).unwrap_or(0);
        (nodes.len() + relationships.len()) * CHANGE_BYTES + 2 * growth
    }

    /// Memory in bytes of names that its base does not have.
    fn name_bytes(&self) -> usize {
        self.graph.private_names().map_or(0, PrivateNames::bytes)
    }

    /// Size in bytes of the pages that it created and copied. For a large transaction this is
    /// measured after growth, not every time.
    fn page_bytes(&self) -> usize {
        /// More than most writes take, including the pages of a few indexes.
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

    /// The statistics of statements since the last call.
    pub fn take_statistics(&mut self) -> Statistics {
        std::mem::take(&mut self.statistics)
    }

    /// The statistics of statements since [`take_statistics`](Self::take_statistics).
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Bytes of rows scanned for reads and writes since the last call: accessing one property of an
    /// entity with very many costs as much as scanning all.
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

    /// Checks what was written since the last call against the constraints; to be called at the end
    /// of a statement.
    ///
    /// # Errors
    /// The first violated constraint. The transaction must then be dropped.
    pub fn check(&mut self) -> Result<(), Violation> {
        for id in std::mem::take(&mut self.writes.unchecked_nodes) {
            self.graph.check_node(id)?;
        }
        for id in std::mem::take(&mut self.writes.unchecked_relationships) {
            self.graph.check_relationship(id)?;
        }
        Ok(())
    }

    /// Counts a write and fails a transaction that could not be committed anyway.
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
