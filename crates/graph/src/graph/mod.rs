//! A version of the graph and its read operations. The write operations are in `write`.

mod audit;
mod check;
mod counts;
mod keys;
mod row;
mod schema;
mod seek;
mod snapshot;
mod write;

pub use row::Relationship;
pub(crate) use row::{
    NodeRow, Properties, RelationshipRow, has_label, node_property, property_of,
    relationship_property, set_properties,
};
pub(crate) use schema::{Schema, SchemaItem};
pub use schema::{SchemaDefinition, SchemaKind, SchemaSubject, Similarity, VectorSettings};
pub(crate) use seek::{AdjacencyRun, Source};
pub use seek::{Adjacent, Progress};
pub(crate) use snapshot::{BEYOND, BlockWriter, GraphReader, next_block};
use write::Duplicate;

use crate::fault::GraphError;
use crate::id::{Entity, NodeId, RelationshipId};
use crate::limits::{MAX_ID, MAX_ID_LEAP, MAX_ID_PASSED, MAX_NAMES};
use crate::names::{Name, NameTable, PrivateNames};
use crate::store::{PAGE_ROWS, Paged, RowPage, Tree};
use crate::value::Value;
use counts::NameCounts;
use keys::{AdjacencyKey, IndexKey, MemberKey};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A version of a graph. A clone costs two reference counts and is an independent version of the
/// same graph: writes to one are never visible in the other.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    shared: Arc<SharedState>,
    /// Position of the last event in it.
    position: u64,
    stamp: VersionStamp,
    /// The names that only its transaction has; none in a version of the graph.
    private: Option<Arc<PrivateNames>>,
    /// A version is cloned a dozen times before the next write; this indirection makes that one
    /// reference count.
    content: Arc<Content>,
}

/// The content of a version. A clone shares all pages.
#[derive(Debug, Clone, Default)]
struct Content {
    names: NameTable,
    nodes: Paged<RowPage>,
    relationships: Paged<RowPage>,
    outgoing: Tree<{ size_of::<AdjacencyKey>() }>,
    incoming: Tree<{ size_of::<AdjacencyKey>() }>,
    labels: Tree<{ size_of::<MemberKey>() }>,
    types: Tree<{ size_of::<MemberKey>() }>,
    index: Tree<{ size_of::<IndexKey>() }>,
    node_count: u64,
    relationship_count: u64,
    label_counts: NameCounts,
    type_counts: NameCounts,
    key_counts: NameCounts,
    schema: Arc<Schema>,
}

/// Identifies a committed version of a graph. Equal stamps mean equal content; a transaction's
/// private version has the stamp of its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VersionStamp(u64);

/// State shared by all versions of a graph.
#[derive(Debug, Default)]
pub(crate) struct SharedState {
    next_node: AtomicU64,
    next_relationship: AtomicU64,
    stamps: AtomicU64,
}

impl SharedState {
    /// The next ids of both counters.
    fn next_ids(&self) -> [u64; 2] {
        [&self.next_node, &self.next_relationship].map(|next| next.load(Ordering::Relaxed))
    }

    fn begin_ids(&self, [node, relationship]: [u64; 2]) {
        self.next_node.store(node, Ordering::Relaxed);
        self.next_relationship.store(relationship, Ordering::Relaxed);
    }
}

/// The page number and slot of an id.
fn place(number: u64) -> (u64, usize) {
    (number / PAGE_ROWS as u64, number as usize % PAGE_ROWS)
}

fn row_at(pages: &Paged<RowPage>, number: u64) -> Option<&[u8]> {
    let (page, at) = place(number);
    pages.get(page)?.get(at)
}

impl Graph {
    /// The content for writing; copied first if another version shares it.
    fn content_mut(&mut self) -> &mut Content {
        Arc::make_mut(&mut self.content)
    }

    /// An empty graph with its own ids.
    #[must_use]
    pub fn new() -> Graph {
        Graph::default()
    }

    /// The position of the last event in this version; 0 if there is none.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Sets the position of the last event in this version.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Its stamp.
    #[must_use]
    pub fn stamp(&self) -> VersionStamp {
        self.stamp
    }

    /// Gives it a new, unique stamp.
    pub(crate) fn stamp_anew(&mut self) {
        self.stamp = VersionStamp(1 + self.shared.stamps.fetch_add(1, Ordering::Relaxed));
    }

    /// The name with this text, if the graph has used it up to this version.
    #[must_use]
    pub fn find_name(&self, text: &str) -> Option<Name> {
        let private = || self.private.as_ref()?.find(text);
        self.content.names.find(text).or_else(private)
    }

    /// The text of a name; empty for [`Name::UNKNOWN`].
    #[must_use]
    pub fn text(&self, name: Name) -> Arc<str> {
        let private = || self.private.as_ref()?.text(name);
        self.content.names.text(name).cloned().or_else(private).unwrap_or_default()
    }

    /// Why a text cannot become a name.
    pub(crate) fn refused_name(&self) -> GraphError {
        if self.is_full_of_names() { GraphError::OutOfNames } else { GraphError::NotAName }
    }

    /// Whether statements can add no further name.
    fn is_full_of_names(&self) -> bool {
        let private = self.private.as_ref().map_or(0, |names| names.len());
        self.content.names.len() + private >= MAX_NAMES
    }

    /// The names of this version, without private ones.
    pub(crate) fn names(&self) -> &NameTable {
        &self.content.names
    }

    /// This version with private names, none at first.
    pub(crate) fn with_private_names(&self) -> Graph {
        Graph { private: Some(Arc::default()), ..self.clone() }
    }

    /// This version with the private names of a transaction.
    pub(crate) fn with_names_of(self, graph: &Graph) -> Graph {
        Graph { private: graph.private.clone(), ..self }
    }

    /// This version without private names; its content must have none.
    pub(crate) fn without_private_names(self) -> Graph {
        Graph { private: None, ..self }
    }

    pub(crate) fn private_names(&self) -> Option<&PrivateNames> {
        self.private.as_deref().filter(|names| names.len() > 0)
    }

    /// The name with this text, a private one if the graph has not used it. `None` if it is not a
    /// valid name.
    pub(crate) fn intern(&self, text: &str) -> Option<Name> {
        let private = || self.private.as_ref()?.intern(text, usize::MAX);
        self.content.names.find(text).or_else(private)
    }

    /// The same for a statement; also `None` if the name is new and the limit is reached.
    pub(crate) fn intern_for_statement(&self, text: &str) -> Option<Name> {
        let most = MAX_NAMES.saturating_sub(self.content.names.len());
        let private = || self.private.as_ref()?.intern(text, most);
        self.content.names.find(text).or_else(private)
    }

    /// The names of a later version.
    pub(crate) fn set_names(&mut self, names: NameTable) {
        self.content_mut().names = names;
    }

    /// Whether both are versions of one graph and so share ids.
    pub(crate) fn is_kin(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(crate) fn new_node_id(&self) -> Option<NodeId> {
        loop {
            let id = NodeId::new(take_number(&self.shared.next_node)?)?;
            if !self.has_node(id) {
                return Some(id);
            }
        }
    }

    pub(crate) fn new_relationship_id(&self) -> Option<RelationshipId> {
        loop {
            let id = RelationshipId::new(take_number(&self.shared.next_relationship)?)?;
            if !self.has_relationship(id) {
                return Some(id);
            }
        }
    }

    /// Prevents ids used by an event from being assigned again, unless they are so high that none
    /// would be left.
    pub(crate) fn pass_id(&self, entity: Entity) {
        let (counter, number) = match entity {
            Entity::Node(id) => (&self.shared.next_node, id.number()),
            Entity::Relationship(id) => (&self.shared.next_relationship, id.number()),
        };
        let near = || counter.load(Ordering::Relaxed).saturating_add(MAX_ID_LEAP);
        if number < MAX_ID_PASSED || number <= near() {
            counter.fetch_max(number + 1, Ordering::Relaxed);
        }
    }

    /// Approximate size in bytes of the pages not shared with other versions. Walks those pages.
    pub(crate) fn own_bytes(&self) -> usize {
        let content = &*self.content;
        // A shared page shares everything below it.
        if Arc::strong_count(&self.content) > 1 {
            return 0;
        }
        let rows =
            [&content.nodes, &content.relationships].map(|rows| rows.own_bytes(RowPage::own_bytes));
        let trees = content.outgoing.own_bytes()
            + content.incoming.own_bytes()
            + content.labels.own_bytes()
            + content.types.own_bytes()
            + content.index.own_bytes();
        let counts = [&content.label_counts, &content.type_counts, &content.key_counts];
        rows.iter().sum::<usize>() + trees + counts.map(NameCounts::own_bytes).iter().sum::<usize>()
    }

    /// The bytes of a node; equal exactly if the nodes are.
    pub(crate) fn node_row(&self, id: NodeId) -> Option<&[u8]> {
        row_at(&self.content.nodes, id.number())
    }

    /// The bytes of a relationship; equal exactly if the relationships are.
    pub(crate) fn relationship_row(&self, id: RelationshipId) -> Option<&[u8]> {
        row_at(&self.content.relationships, id.number())
    }

    /// A node with all its properties.
    pub(crate) fn node(&self, id: NodeId) -> Option<NodeRow> {
        NodeRow::decode(self.node_row(id)?)
    }

    /// A relationship with all its properties.
    pub(crate) fn whole_relationship(&self, id: RelationshipId) -> Option<RelationshipRow> {
        RelationshipRow::decode(self.relationship_row(id)?)
    }

    /// Whether the node exists.
    #[must_use]
    pub fn has_node(&self, id: NodeId) -> bool {
        self.node_row(id).is_some()
    }

    /// Whether the relationship exists.
    #[must_use]
    pub fn has_relationship(&self, id: RelationshipId) -> bool {
        self.relationship_row(id).is_some()
    }

    /// A node's labels. `None` if the node does not exist.
    #[must_use]
    pub fn labels(&self, id: NodeId) -> Option<Vec<Name>> {
        row::labels(self.node_row(id)?)
    }

    /// Whether a node has this label. `None` if the node does not exist.
    #[must_use]
    pub fn has_label(&self, id: NodeId, label: Name) -> Option<bool> {
        Some(has_label(self.node_row(id)?, label))
    }

    /// A node's property. `None` also if the node does not exist.
    #[must_use]
    pub fn node_property(&self, id: NodeId, key: Name) -> Option<Value> {
        row::node_property(self.node_row(id)?, key)
    }

    /// A node's properties. `None` if the node does not exist.
    #[must_use]
    pub fn node_properties(&self, id: NodeId) -> Option<Vec<(Name, Value)>> {
        Some(self.node(id)?.properties)
    }

    /// A relationship's type and end nodes.
    #[must_use]
    pub fn relationship(&self, id: RelationshipId) -> Option<Relationship> {
        row::head(self.relationship_row(id)?)
    }

    /// A relationship's property. `None` also if the relationship does not exist.
    #[must_use]
    pub fn relationship_property(&self, id: RelationshipId, key: Name) -> Option<Value> {
        row::relationship_property(self.relationship_row(id)?, key)
    }

    /// A relationship's properties. `None` if the relationship does not exist.
    #[must_use]
    pub fn relationship_properties(&self, id: RelationshipId) -> Option<Vec<(Name, Value)>> {
        Some(self.whole_relationship(id)?.properties)
    }

    /// Number of nodes.
    #[must_use]
    pub fn node_count(&self) -> u64 {
        self.content.node_count
    }

    /// Number of relationships.
    #[must_use]
    pub fn relationship_count(&self) -> u64 {
        self.content.relationship_count
    }

    /// Number of nodes with this label.
    #[must_use]
    pub fn label_count(&self, label: Name) -> u64 {
        self.content.label_counts.get(label)
    }

    /// Number of relationships of this type.
    #[must_use]
    pub fn type_count(&self, relationship_type: Name) -> u64 {
        self.content.type_counts.get(relationship_type)
    }

    /// The labels in use, sorted by text.
    #[must_use]
    pub fn labels_in_use(&self) -> Vec<Arc<str>> {
        self.sorted_texts(&self.content.label_counts)
    }

    /// The relationship types in use, sorted by text.
    #[must_use]
    pub fn types_in_use(&self) -> Vec<Arc<str>> {
        self.sorted_texts(&self.content.type_counts)
    }

    /// The property keys in use, sorted by text.
    #[must_use]
    pub fn keys_in_use(&self) -> Vec<Arc<str>> {
        self.sorted_texts(&self.content.key_counts)
    }

    fn sorted_texts(&self, counts: &NameCounts) -> Vec<Arc<str>> {
        let mut texts: Vec<_> = counts.names().map(|name| self.text(name)).collect();
        texts.sort_unstable();
        texts
    }

    /// All indexes and constraints by name.
    pub fn schema(&self) -> impl Iterator<Item = &SchemaDefinition> {
        self.content.schema.items().iter().map(|item| &item.definition)
    }

    pub(crate) fn schema_items(&self) -> &Schema {
        &self.content.schema
    }

    /// Whether a node has any relationship.
    #[must_use]
    pub fn is_connected(&self, id: NodeId) -> bool {
        let (prefix, length) = keys::adjacency_prefix(id, None, None);
        self.content.outgoing.has_prefix(&prefix[..length])
            || self.content.incoming.has_prefix(&prefix[..length])
    }
}

/// The next number of a counter; `None` when ids are used up.
fn take_number(counter: &AtomicU64) -> Option<u64> {
    let number = counter.fetch_add(1, Ordering::Relaxed);
    if number >= MAX_ID {
        counter.store(MAX_ID, Ordering::Relaxed);
        return None;
    }
    Some(number)
}
