//! Keys of the trees.

use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use crate::value::{Canonical, PREFIX_BYTES};

/// A key of `outgoing` or `incoming`: the node, the type, the node at the other end, the
/// relationship.
pub(crate) type AdjacencyKey = [u8; 21];
/// A key of `labels` or `types`: the name, the entity.
pub(crate) type MemberKey = [u8; 10];
/// A key of `index`: the index, the prefix and the hash of the value, the entity.
pub(crate) type IndexKey = [u8; 34];
/// An [`IndexKey`] without the entity.
pub(crate) type IndexPrefix = [u8; 28];

/// The key of an adjacency.
pub(crate) fn adjacency(
    node: NodeId,
    relationship_type: Name,
    other: NodeId,
    relationship: RelationshipId,
) -> AdjacencyKey {
    let mut key = [0; 21];
    key[..6].copy_from_slice(&node.bytes());
    key[6..9].copy_from_slice(&relationship_type.bytes()[1..]);
    key[9..15].copy_from_slice(&other.bytes());
    key[15..].copy_from_slice(&relationship.bytes());
    key
}

/// The prefix of the keys of a node's adjacencies, optionally of one type or to one other node.
pub(crate) fn adjacency_prefix(
    node: NodeId,
    relationship_type: Option<Name>,
    other: Option<NodeId>,
) -> ([u8; 21], usize) {
    let unknown = (Name::new(0), NodeId::from_bytes([0; 6]));
    let last = RelationshipId::from_bytes([0; 6]);
    match (relationship_type, other) {
        (None, _) => (adjacency(node, unknown.0, unknown.1, last), 6),
        (Some(name), None) => (adjacency(node, name, unknown.1, last), 9),
        (Some(name), Some(other)) => (adjacency(node, name, other, last), 15),
    }
}

fn six(key: &[u8], at: usize) -> [u8; 6] {
    let mut bytes = [0; 6];
    bytes.copy_from_slice(&key[at..at + 6]);
    bytes
}

/// The type, the other end and the relationship of an adjacency.
pub(crate) fn adjacency_parts(key: &AdjacencyKey) -> (Name, NodeId, RelationshipId) {
    let name = Name::new(u32::from_be_bytes([0, key[6], key[7], key[8]]));
    (name, NodeId::from_bytes(six(key, 9)), RelationshipId::from_bytes(six(key, 15)))
}

/// The key of a label's or a type's member.
pub(crate) fn member(name: Name, entity: [u8; 6]) -> MemberKey {
    let mut key = [0; 10];
    key[..4].copy_from_slice(&name.bytes());
    key[4..].copy_from_slice(&entity);
    key
}

/// The entity of a member key.
pub(crate) fn member_entity(key: &MemberKey) -> [u8; 6] {
    six(key, 4)
}

/// The prefix of an index's keys for a value.
pub(crate) fn index_prefix(index: u32, value: &Canonical) -> IndexPrefix {
    let mut key = [0; 28];
    key[..4].copy_from_slice(&index.to_be_bytes());
    key[4..4 + PREFIX_BYTES].copy_from_slice(&value.prefix());
    key[4 + PREFIX_BYTES..].copy_from_slice(&value.hash().to_be_bytes());
    key
}

/// The key of an index entry.
pub(crate) fn index_entry(prefix: &IndexPrefix, entity: [u8; 6]) -> IndexKey {
    let mut key = [0; 34];
    key[..28].copy_from_slice(prefix);
    key[28..].copy_from_slice(&entity);
    key
}

/// The entity of an index entry.
pub(crate) fn index_entity(key: &IndexKey) -> [u8; 6] {
    six(key, 28)
}
