//! Encodes a change set as events.

use super::fragment::Fragments;
use super::schema::encode_schema;
use super::{
    GRAPH_CHANGED, LABEL_TAG, MAX_PARTS, MAX_TAGS, MAX_TRANSACTION_BYTES, PART_BYTES, TYPE_TAG,
};
use crate::change::{ChangeSet, NodeChange, RelationshipChange};
use crate::fault::Violation;
use crate::graph::{Graph, Relationship};
use crate::id::{Entity, NodeId, RelationshipId};
use crate::names::Name;
use std::collections::BTreeSet;
use wellspring_types::{DataKind, Event};

/// A label or relationship type as a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tag {
    Label(Name),
    Type(Name),
}

impl Tag {
    pub(super) fn text(self, names: &Graph) -> String {
        let (prefix, name) = match self {
            Tag::Label(name) => (LABEL_TAG, name),
            Tag::Type(name) => (TYPE_TAG, name),
        };
        [prefix, &names.text(name)].concat()
    }
}

/// A part being filled.
#[derive(Debug, Default)]
struct OpenPart {
    nodes: String,
    relationships: String,
    tags: BTreeSet<Tag>,
}

impl OpenPart {
    fn len(&self) -> usize {
        self.nodes.len() + self.relationships.len()
    }

    fn json(&self, prefix: &str) -> String {
        let mut json = String::with_capacity(self.len() + prefix.len() + 24);
        json.push('{');
        json.push_str(prefix);
        for (field, list) in [("nodes", &self.nodes), ("rels", &self.relationships)] {
            if !list.is_empty() {
                let comma = if json.len() > 1 && !json.ends_with(',') { "," } else { "" };
                json.extend([comma, "\"", field, "\":[", list, "]"]);
            }
        }
        json.push('}');
        json
    }
}

/// Fills parts one after another.
struct Packer {
    full: Vec<OpenPart>,
    open: OpenPart,
}

impl Packer {
    fn put(&mut self, entity: Entity, fragment: String, tags: &BTreeSet<Tag>) {
        if self.open.len() > 0 {
            let is_too_long = self.open.len() + fragment.len() > PART_BYTES;
            if is_too_long || self.open.tags.union(tags).count() > MAX_TAGS {
                self.full.push(std::mem::take(&mut self.open));
            }
        }
        self.open.tags.extend(tags);
        let list = match entity {
            Entity::Node(_) => &mut self.open.nodes,
            Entity::Relationship(_) => &mut self.open.relationships,
        };
        if list.is_empty() {
            // Most events have a single fragment.
            *list = fragment;
        } else {
            list.push(',');
            list.push_str(&fragment);
        }
    }
}

/// The events of a change set; none if it is empty. `base` is the version it changes, `transaction`
/// identifies its parts.
pub(crate) fn encode(
    base: &Graph,
    changes: &ChangeSet,
    transaction: u128,
) -> Result<Vec<Event>, Violation> {
    if changes.has_schema() {
        return encode_schema(base, changes);
    }
    let mut packer = Packer { full: Vec::new(), open: OpenPart::default() };
    for (id, change) in &changes.nodes {
        put_node(base, &mut packer, *id, change)?;
    }
    for (id, change) in &changes.relationships {
        put_relationship(base, &mut packer, *id, change)?;
    }
    let mut parts = packer.full;
    if packer.open.len() > 0 {
        parts.push(packer.open);
    }
    let bytes = parts.iter().map(OpenPart::len).sum();
    if parts.len() > MAX_PARTS || bytes > MAX_TRANSACTION_BYTES {
        return Err(Violation::TransactionTooLarge { bytes });
    }
    let of = parts.len();
    let numbered = parts.into_iter().zip(1..);
    Ok(numbered
        .map(|(part, number)| {
            let prefix = match of {
                1 => String::new(),
                _ => format!("\"tx\":\"{transaction:032x}\",\"part\":{number},\"of\":{of},"),
            };
            event(GRAPH_CHANGED, base, &part.tags, part.json(&prefix))
        })
        .collect())
}

pub(super) fn event(event_type: &str, names: &Graph, tags: &BTreeSet<Tag>, json: String) -> Event {
    Event {
        event_type: event_type.to_owned(),
        tags: tags.iter().map(|tag| tag.text(names)).collect(),
        data: json.into_bytes(),
        kind: DataKind::Json,
        id: None,
        metadata: Vec::new(),
    }
}

fn put_node(
    base: &Graph,
    packer: &mut Packer,
    id: NodeId,
    change: &NodeChange,
) -> Result<(), Violation> {
    let entity = Entity::Node(id);
    let mut fragments = Fragments::new(base, entity);
    let mut tags: BTreeSet<Tag> = match change {
        NodeChange::Created { labels, .. } => labels.iter().copied().map(Tag::Label).collect(),
        _ => base.labels(id).unwrap_or_default().into_iter().map(Tag::Label).collect(),
    };
    match change {
        NodeChange::Created { labels, properties } => {
            fragments.names("new", labels);
            fragments.set(properties)?;
        }
        NodeChange::Changed { label, unlabel, properties } => {
            if !unlabel.is_empty() {
                fragments.names("unlabel", unlabel);
            }
            let added = label.iter().copied().map(Tag::Label);
            if tags.len() + label.len() > MAX_TAGS {
                // Too many labels for one event: removals come first, in a fragment tagged with the
                // old labels.
                fragments.cut();
                fragments.finished.drain(..).for_each(|json| packer.put(entity, json, &tags));
                tags.retain(|tag| !unlabel.iter().any(|name| *tag == Tag::Label(*name)));
            }
            tags.extend(added);
            if !label.is_empty() {
                fragments.names("label", label);
            }
            fragments.set(&properties.set)?;
            fragments.unset(&properties.unset);
        }
        NodeChange::Deleted => fragments.field("gone", true),
    }
    fragments.finish().into_iter().for_each(|json| packer.put(entity, json, &tags));
    Ok(())
}

fn put_relationship(
    base: &Graph,
    packer: &mut Packer,
    id: RelationshipId,
    change: &RelationshipChange,
) -> Result<(), Violation> {
    let entity = Entity::Relationship(id);
    let mut fragments = Fragments::new(base, entity);
    let known = base.relationship(id).map(|head| head.relationship_type);
    let mut tags: BTreeSet<Tag> = known.into_iter().map(Tag::Type).collect();
    match change {
        RelationshipChange::Created { head, properties } => {
            let Relationship { relationship_type, from, to } = head;
            tags = BTreeSet::from([Tag::Type(*relationship_type)]);
            fragments.name("new", *relationship_type);
            fragments.field("from", from.number());
            fragments.field("to", to.number());
            fragments.set(properties)?;
        }
        RelationshipChange::Changed(properties) => {
            fragments.set(&properties.set)?;
            fragments.unset(&properties.unset);
        }
        RelationshipChange::Deleted => fragments.field("gone", true),
    }
    fragments.finish().into_iter().for_each(|json| packer.put(entity, json, &tags));
    Ok(())
}
