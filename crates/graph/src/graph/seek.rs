//! Scans: positions in a version that continue in later versions. They borrow nothing, so the graph
//! can be written while a scan is open; entries reached after a write reflect it.

use super::keys::{
    adjacency_parts, adjacency_prefix, index_entity, index_entry, index_prefix, member,
    member_entity,
};
use super::row::{node_property, relationship_property};
use super::{Graph, SchemaSubject, place, row_at};
use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use crate::store::{PAGE_ROWS, Paged, RowPage, Tree};
use crate::value::{Canonical, Value};
use std::ops::ControlFlow;

/// Number of entries that one call examines.
const CHUNK: usize = 128;

/// The progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Entries examined, including skipped ones; the amount charged to a budget.
    pub examined: usize,
    /// Whether the scan has ended. If not, another call may return more entries, even if this one
    /// returned none.
    pub is_finished: bool,
}

/// A position among keys with a common prefix.
#[derive(Debug, Clone)]
pub(crate) struct Position<const N: usize> {
    /// The next key to examine; its first bytes are the common prefix.
    next: Option<[u8; N]>,
    prefix: usize,
}

impl<const N: usize> Position<N> {
    fn new(first: [u8; N], prefix: usize) -> Position<N> {
        Position { next: Some(first), prefix }
    }

    /// Passes the next keys to `take`.
    fn advance(&mut self, tree: &Tree<N>, mut take: impl FnMut(&[u8; N])) -> Progress {
        let mut examined = 0;
        let Some(first) = self.next.take() else { return Progress { examined, is_finished: true } };
        tree.walk(&first, |key| {
            if key[..self.prefix] != first[..self.prefix] {
                return ControlFlow::Break(());
            }
            if examined == CHUNK {
                self.next = Some(*key);
                return ControlFlow::Break(());
            }
            examined += 1;
            take(key);
            ControlFlow::Continue(())
        });
        Progress { examined, is_finished: self.next.is_none() }
    }
}

/// The nodes or relationships of a scan.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// All of them, from this number on.
    All(Option<u64>),
    /// Those with a label or of a type.
    Members(Position<10>),
    /// Those with a label or of a type whose property has this canonical form.
    Filtered(Position<10>, Name, Canonical),
    /// Those that an index lists for this canonical form.
    Indexed(Position<34>, Name, Canonical),
    /// Those that an index lists for the prefix of several values: nearly always exactly those that
    /// have the values.
    Candidates(Position<34>),
}

impl Source {
    /// All entities with a label or of a type.
    pub(crate) fn members(name: Name) -> Source {
        Source::Members(Position::new(member(name, [0; 6]), 4))
    }
}

fn advance_rows(
    pages: &Paged<RowPage>,
    next: &mut Option<u64>,
    mut push: impl FnMut(u64),
) -> Progress {
    let mut examined = 0;
    let Some(first) = next.take() else { return Progress { examined, is_finished: true } };
    let (first_page, mut at) = place(first);
    let mut following = pages.next(first_page);
    while let Some((number, page)) = following {
        if number != first_page {
            at = 0;
        }
        while let Some(row) = page.next(at) {
            let id = number * PAGE_ROWS as u64 + row as u64;
            if examined == CHUNK {
                *next = Some(id);
                return Progress { examined, is_finished: false };
            }
            examined += 1;
            push(id);
            at = row + 1;
        }
        following = pages.next(number + 1);
    }
    Progress { examined, is_finished: true }
}

fn number(bytes: [u8; 6]) -> u64 {
    NodeId::from_bytes(bytes).number()
}

impl Graph {
    /// The source of nodes or relationships whose `key` equals the value.
    pub(crate) fn equality_source(
        &self,
        subject: SchemaSubject,
        key: Name,
        value: &Canonical,
    ) -> Source {
        if let Some(item) = self.schema_items().index(subject, key) {
            let prefix = index_prefix(item.number, value);
            let position = Position::new(index_entry(&prefix, [0; 6]), prefix.len());
            return Source::Indexed(position, key, value.clone());
        }
        let (SchemaSubject::Label(name) | SchemaSubject::Type(name)) = subject;
        Source::Filtered(Position::new(member(name, [0; 6]), 4), key, value.clone())
    }

    /// The source of nodes or relationships whose `keys` equal the values; empty if no index has
    /// exactly these keys in this order.
    pub(crate) fn composite_source(
        &self,
        subject: SchemaSubject,
        keys: &[Name],
        value: &Canonical,
    ) -> Option<Source> {
        let item = self.schema_items().composite(subject, keys)?;
        (item.definition.keys == keys).then(|| {
            let prefix = index_prefix(item.number, value);
            Source::Candidates(Position::new(index_entry(&prefix, [0; 6]), prefix.len()))
        })
    }

    /// Continues a scan of nodes.
    pub(crate) fn advance_nodes(&self, source: &mut Source, out: &mut Vec<NodeId>) -> Progress {
        let from = Places {
            rows: &self.content.nodes,
            members: &self.content.labels,
            index: &self.content.index,
        };
        from.advance(source, node_property, |number| out.extend(NodeId::new(number)))
    }

    /// Continues a scan of relationships.
    pub(crate) fn advance_relationships(
        &self,
        source: &mut Source,
        out: &mut Vec<RelationshipId>,
    ) -> Progress {
        let from = Places {
            rows: &self.content.relationships,
            members: &self.content.types,
            index: &self.content.index,
        };
        let push = |number| out.extend(RelationshipId::new(number));
        from.advance(source, relationship_property, push)
    }
}

/// The structures that hold a source's entries.
struct Places<'a> {
    rows: &'a Paged<RowPage>,
    members: &'a Tree<10>,
    index: &'a Tree<34>,
}

impl Places<'_> {
    fn advance(
        &self,
        source: &mut Source,
        property: fn(&[u8], Name) -> Option<Value>,
        mut push: impl FnMut(u64),
    ) -> Progress {
        let is_equal = |id: u64, key: Name, wanted: &Canonical| {
            let value = row_at(self.rows, id).and_then(|row| property(row, key));
            value.is_some_and(|value| Canonical::new(&value) == *wanted)
        };
        match source {
            Source::All(next) => advance_rows(self.rows, next, push),
            Source::Members(position) => {
                position.advance(self.members, |key| push(number(member_entity(key))))
            }
            Source::Filtered(position, key, wanted) => position.advance(self.members, |entry| {
                let id = number(member_entity(entry));
                if is_equal(id, *key, wanted) {
                    push(id);
                }
            }),
            Source::Candidates(position) => {
                position.advance(self.index, |key| push(number(index_entity(key))))
            }
            Source::Indexed(position, key, wanted) => position.advance(self.index, |entry| {
                let id = number(index_entity(entry));
                if is_equal(id, *key, wanted) {
                    push(id);
                }
            }),
        }
    }
}

/// A relationship found at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adjacent {
    /// The relationship.
    pub relationship: RelationshipId,
    /// Its type.
    pub relationship_type: Name,
    /// The node at the other end; the same node for a loop.
    pub other: NodeId,
    /// Whether it starts at the node.
    pub is_outgoing: bool,
}

/// A contiguous range of adjacencies: of a node in one direction, optionally of one type and to one
/// node.
#[derive(Debug, Clone)]
pub(crate) struct AdjacencyRun {
    position: Position<21>,
    node: NodeId,
    is_outgoing: bool,
    other: Option<NodeId>,
    /// Skips loops, because another run includes them.
    skips_loops: bool,
}

impl AdjacencyRun {
    pub(crate) fn new(
        node: NodeId,
        is_outgoing: bool,
        relationship_type: Option<Name>,
        other: Option<NodeId>,
        skips_loops: bool,
    ) -> AdjacencyRun {
        let (first, prefix) = adjacency_prefix(node, relationship_type, other);
        let position = Position::new(first, prefix);
        AdjacencyRun { position, node, is_outgoing, other, skips_loops }
    }
}

impl Graph {
    /// Continues a scan of a node's relationships.
    pub(crate) fn advance_adjacent(
        &self,
        run: &mut AdjacencyRun,
        out: &mut Vec<Adjacent>,
    ) -> Progress {
        let tree = if run.is_outgoing { &self.content.outgoing } else { &self.content.incoming };
        let (node, is_outgoing, other_end) = (run.node, run.is_outgoing, run.other);
        let skips_loops = run.skips_loops;
        run.position.advance(tree, |key| {
            let (relationship_type, other, relationship) = adjacency_parts(key);
            if other_end.is_none_or(|wanted| wanted == other) && !(skips_loops && other == node) {
                out.push(Adjacent { relationship, relationship_type, other, is_outgoing });
            }
        })
    }
}
