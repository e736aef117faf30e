//! Rows: what a node or relationship is, as bytes.
//!
//! A node is its labels, then pairs of key and value; a relationship its type and ends, then pairs.
//! Names are sorted by number, so that alike is the same bytes within a process.

use super::counts::NameCounts;
use crate::id::NodeId;
use crate::limits::MAX_LABELS;
use crate::names::Name;
use crate::value::{Reader, Value, check_value, put_value, put_varint, skip_value, take_value};
use std::collections::BTreeMap;

/// Properties in order of key.
pub(crate) type Properties = Vec<(Name, Value)>;

/// A node, taken apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeRow {
    /// In order of number.
    pub(crate) labels: Vec<Name>,
    pub(crate) properties: Properties,
}

/// The type and the ends of a relationship, which never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relationship {
    /// Its type.
    pub relationship_type: Name,
    /// Where it starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
}

/// A relationship, taken apart.
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

/// Walks to the value of `key`.
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

    /// Takes a row apart. `None` if it is damaged.
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

/// Whether a node's row has that label.
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

    /// Takes a row apart. `None` if it is damaged.
    pub(crate) fn decode(row: &[u8]) -> Option<RelationshipRow> {
        let mut input = Reader::new(row);
        Some(RelationshipRow { head: take_head(&mut input)?, properties: take_properties(input)? })
    }
}

/// The value of `key` among sorted properties.
pub(crate) fn property_of(properties: &[(Name, Value)], key: Name) -> Option<&Value> {
    let at = properties.binary_search_by_key(&key, |(key, _)| *key).ok()?;
    Some(&properties[at].1)
}

/// Sets or removes a property among sorted ones. Whether anything was there or is now.
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

/// Sets or removes properties among sorted ones, in that order. How often anything was there or is
/// now.
pub(crate) fn set_properties(
    properties: &mut Properties,
    changes: impl IntoIterator<Item = (Name, Option<Value>)>,
) -> u64 {
    /// So many are found and moved faster than they are sorted.
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

/// Checks a node's row that may be damaged, and counts its keys. `None` if it is.
pub(crate) fn check_node(row: &[u8], names: usize, counts: &mut NameCounts) -> Option<()> {
    let mut input = Reader::new(row);
    let count = input.varint().filter(|count| *count <= MAX_LABELS as u64)?;
    let mut last = None;
    for _ in 0..count {
        last = Some(next_name(&mut input, last, names)?);
    }
    check_properties(input, names, counts)
}

/// Checks a relationship's row that may be damaged, and counts its keys. `None` if it is.
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

/// A known name that comes after `last`.
fn next_name(input: &mut Reader<'_>, last: Option<Name>, names: usize) -> Option<Name> {
    let name = take_name(input)?;
    ((name.number() as usize) < names && last.is_none_or(|last| last < name)).then_some(name)
}
