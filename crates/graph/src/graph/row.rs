//! Rows: nodes and relationships as bytes.
//!
//! A node consists of its labels, then pairs of key and value; a relationship of its type and ends,
//! then pairs. Names are sorted by number, so equal entities have equal bytes within a process.

use super::counts::NameCounts;
use crate::id::NodeId;
use crate::limits::MAX_LABELS;
use crate::names::Name;
use crate::value::{Reader, Value, check_value, put_value, put_varint, skip_value, take_value};
use std::collections::BTreeMap;

/// Properties sorted by key.
pub(crate) type Properties = Vec<(Name, Value)>;

/// A decoded node.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeRow {
    /// Sorted by number.
    pub(crate) labels: Vec<Name>,
    pub(crate) properties: Properties,
}

/// The type and the end nodes of a relationship, which never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relationship {
    /// Its type.
    pub relationship_type: Name,
    /// Its start node.
    pub from: NodeId,
    /// Its end node.
    pub to: NodeId,
}

/// A decoded relationship.
#[derive(Debug, Clone)]
pub(crate) struct RelationshipRow {
    pub(crate) head: Relationship,
    pub(crate) properties: Properties,
}

fn take_name(input: &mut Reader<'_>) -> Option<Name> {
    Some(Name::new(u32::try_from(input.varint()?).ok()?))
}

fn put_properties(out: &mut Vec<u8>, properties: &[(Name, Value)]) {
    for (key, value) in properties {
        put_varint(out, key.number().into());
        put_value(out, value);
    }
}

fn take_properties(mut input: Reader<'_>) -> Option<Properties> {
    let mut properties = Vec::new();
    while !input.is_empty() {
        let key = take_name(&mut input)?;
        properties.push((key, take_value(&mut input)?));
    }
    Some(properties)
}

/// Scans for the value of `key`.
fn find_property(mut input: Reader<'_>, key: Name) -> Option<Value> {
    while !input.is_empty() {
        let at = take_name(&mut input)?;
        if at == key {
            return take_value(&mut input);
        }
        if at > key {
            return None;
        }
        skip_value(&mut input)?;
    }
    None
}

impl NodeRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        put_varint(&mut out, self.labels.len() as u64);
        self.labels.iter().for_each(|label| put_varint(&mut out, label.number().into()));
        put_properties(&mut out, &self.properties);
        out
    }

    /// Decodes a row. `None` if it is damaged.
    pub(crate) fn decode(row: &[u8]) -> Option<NodeRow> {
        let mut input = Reader::new(row);
        let labels = take_labels(&mut input)?;
        Some(NodeRow { labels, properties: take_properties(input)? })
    }
}

fn take_labels(input: &mut Reader<'_>) -> Option<Vec<Name>> {
    (0..input.varint()?).map(|_| take_name(input)).collect()
}

/// The labels of a node's row.
pub(crate) fn labels(row: &[u8]) -> Option<Vec<Name>> {
    take_labels(&mut Reader::new(row))
}

/// Whether a node's row has this label.
pub(crate) fn has_label(row: &[u8], label: Name) -> bool {
    let mut input = Reader::new(row);
    let count = input.varint().unwrap_or(0);
    (0..count).any(|_| take_name(&mut input) == Some(label))
}

/// A property of a node's row.
pub(crate) fn node_property(row: &[u8], key: Name) -> Option<Value> {
    let mut input = Reader::new(row);
    for _ in 0..input.varint()? {
        input.varint()?;
    }
    find_property(input, key)
}

fn take_head(input: &mut Reader<'_>) -> Option<Relationship> {
    let relationship_type = take_name(input)?;
    let from = NodeId::new(input.varint()?)?;
    Some(Relationship { relationship_type, from, to: NodeId::new(input.varint()?)? })
}

/// The type and ends of a relationship's row.
pub(crate) fn head(row: &[u8]) -> Option<Relationship> {
    take_head(&mut Reader::new(row))
}

/// A property of a relationship's row.
pub(crate) fn relationship_property(row: &[u8], key: Name) -> Option<Value> {
    let mut input = Reader::new(row);
    take_head(&mut input)?;
    find_property(input, key)
}

impl RelationshipRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        put_varint(&mut out, self.head.relationship_type.number().into());
        put_varint(&mut out, self.head.from.number());
        put_varint(&mut out, self.head.to.number());
        put_properties(&mut out, &self.properties);
        out
    }

    /// Decodes a row. `None` if it is damaged.
    pub(crate) fn decode(row: &[u8]) -> Option<RelationshipRow> {
        let mut input = Reader::new(row);
        Some(RelationshipRow { head: take_head(&mut input)?, properties: take_properties(input)? })
    }
}

/// The value of `key` in sorted properties.
pub(crate) fn property_of(properties: &[(Name, Value)], key: Name) -> Option<&Value> {
    let at = properties.binary_search_by_key(&key, |(key, _)| *key).ok()?;
    Some(&properties[at].1)
}

/// Sets or removes a property in sorted properties. Returns whether it existed before or does now.
fn set_property(properties: &mut Properties, key: Name, value: Option<Value>) -> bool {
    match (properties.binary_search_by_key(&key, |(key, _)| *key), value) {
        (Ok(at), Some(value)) => properties[at].1 = value,
        (Ok(at), None) => {
            properties.remove(at);
        }
        (Err(at), Some(value)) => properties.insert(at, (key, value)),
        (Err(_), None) => return false,
    }
    true
}

/// Sets or removes several properties in sorted properties, in this order. Returns how many existed
/// before or do now.
pub(crate) fn set_properties(
    properties: &mut Properties,
    changes: impl IntoIterator<Item = (Name, Option<Value>)>,
) -> u64 {
    /// Up to this many, finding and moving is faster than sorting.
    const FEW: usize = 64;
    let mut count = 0;
    let mut changes = changes.into_iter();
    for (key, value) in changes.by_ref().take(FEW) {
        count += u64::from(set_property(properties, key, value));
    }
    let Some(next) = changes.next() else { return count };
    let mut sorted: BTreeMap<Name, Value> = std::mem::take(properties).into_iter().collect();
    for (key, value) in std::iter::once(next).chain(changes) {
        let is_set = value.is_some();
        let before = match value {
            Some(value) => sorted.insert(key, value),
            None => sorted.remove(&key),
        };
        count += u64::from(is_set || before.is_some());
    }
    *properties = sorted.into_iter().collect();
    count
}

/// Checks a possibly damaged node row and counts its keys. `None` if it is damaged.
pub(crate) fn check_node(row: &[u8], names: usize, counts: &mut NameCounts) -> Option<()> {
    let mut input = Reader::new(row);
    let count = input.varint().filter(|count| *count <= MAX_LABELS as u64)?;
    let mut last = None;
    for _ in 0..count {
        last = Some(next_name(&mut input, last, names)?);
    }
    check_properties(input, names, counts)
}

/// Checks a possibly damaged relationship row and counts its keys. `None` if it is damaged.
pub(crate) fn check_relationship(row: &[u8], names: usize, counts: &mut NameCounts) -> Option<()> {
    let mut input = Reader::new(row);
    let head = take_head(&mut input)?;
    let is_known = (head.relationship_type.number() as usize) < names;
    check_properties(input, names, counts).filter(|()| is_known)
}

fn check_properties(mut input: Reader<'_>, names: usize, counts: &mut NameCounts) -> Option<()> {
    let mut last = None;
    while !input.is_empty() {
        let key = next_name(&mut input, last, names)?;
        check_value(&mut input)?;
        counts.increment(key);
        last = Some(key);
    }
    Some(())
}

/// A known name that sorts after `last`.
fn next_name(input: &mut Reader<'_>, last: Option<Name>, names: usize) -> Option<Name> {
    let name = take_name(input)?;
    ((name.number() as usize) < names && last.is_none_or(|last| last < name)).then_some(name)
}
