//! Encodes schema changes as events and decodes them.
//!
//! ```json
//! {"create":[{"name":"one","kind":"unique","on":"node","labels":["Person"],"keys":["name"]}],"drop":["old"]}
//! ```

use super::decode::{once, read_names};
use super::encode::{Tag, event};
use super::json::Json;
use super::value::put_text;
use super::{EventFault, GRAPH_SCHEMA_CHANGED, MAX_PROPERTY_BYTES, MAX_TAGS, fault};
use crate::change::ChangeSet;
use crate::fault::Violation;
use crate::graph::{
    Graph, SchemaDefinition, SchemaKind, SchemaSubject, Similarity, VectorSettings,
};
use std::collections::BTreeSet;
use std::fmt::Write;
use wellspring_types::Event;

/// The kinds without settings.
const KINDS: [(&str, SchemaKind); 5] = [
    ("range", SchemaKind::Range),
    ("unique", SchemaKind::Unique),
    ("exists", SchemaKind::Exists),
    ("key", SchemaKind::Key),
    ("fulltext", SchemaKind::Fulltext),
];
/// The kind with settings.
const VECTOR: &str = "vector";
const SIMILARITIES: [(&str, Similarity); 2] =
    [("cosine", Similarity::Cosine), ("euclidean", Similarity::Euclidean)];

fn put_names<'a>(out: &mut String, names: impl Iterator<Item = &'a str>) {
    out.push('[');
    for (at, name) in names.enumerate() {
        if at > 0 {
            out.push(',');
        }
        put_text(out, name);
    }
    out.push(']');
}

fn put_definition(out: &mut String, names: &Graph, definition: &SchemaDefinition) {
    out.push_str("{\"name\":");
    put_text(out, &definition.name);
    let kind = KINDS.iter().find(|(_, kind)| *kind == definition.kind);
    let kind = kind.map_or(VECTOR, |(name, _)| name);
    let on = match definition.subject {
        SchemaSubject::Label(_) => "node",
        SchemaSubject::Type(_) => "rel",
    };
    _ = write!(out, ",\"kind\":\"{kind}\",\"on\":\"{on}\"");
    if let SchemaKind::Vector(settings) = definition.kind {
        let same = SIMILARITIES.iter().find(|(_, known)| *known == settings.similarity);
        let similarity = same.map_or("", |(name, _)| name);
        if settings.dimensions > 0 {
            _ = write!(out, ",\"dimensions\":{}", settings.dimensions);
        }
        _ = write!(out, ",\"similarity\":\"{similarity}\"");
    }
    out.push_str(",\"labels\":");
    let subjects: Vec<_> = definition.subjects().map(|name| names.text(name)).collect();
    put_names(out, subjects.iter().map(|name| &**name));
    out.push_str(",\"keys\":");
    let keys: Vec<_> = definition.keys.iter().map(|key| names.text(*key)).collect();
    put_names(out, keys.iter().map(|key| &**key));
    out.push('}');
}

/// The event of a schema change.
pub(super) fn encode_schema(base: &Graph, changes: &ChangeSet) -> Result<Vec<Event>, Violation> {
    let mut json = String::from("{\"create\":[");
    for (at, definition) in changes.created_items.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        put_definition(&mut json, base, definition);
    }
    json.push_str("],\"drop\":");
    put_names(&mut json, changes.dropped_items.iter().map(|name| &**name));
    json.push('}');
    let known = base.schema().filter(|item| changes.dropped_items.contains(&item.name));
    let tags: BTreeSet<Tag> = known
        .chain(&changes.created_items)
        .flat_map(|definition| {
            let tag = match definition.subject {
                SchemaSubject::Label(_) => Tag::Label,
                SchemaSubject::Type(_) => Tag::Type,
            };
            definition.subjects().map(tag)
        })
        .collect();
    if json.len() > MAX_PROPERTY_BYTES || tags.len() > MAX_TAGS {
        return Err(Violation::TransactionTooLarge { bytes: json.len() });
    }
    Ok(vec![event(GRAPH_SCHEMA_CHANGED, base, &tags, json)])
}

/// Decodes a [`GRAPH_SCHEMA_CHANGED`] event.
pub(crate) fn decode_schema(names: &Graph, data: &[u8]) -> Result<ChangeSet, EventFault> {
    let mut json = Json::new(data);
    let (mut created, mut dropped) = (None, None);
    json.object(|json, field| match field {
        "create" => {
            let mut list = Vec::new();
            json.list(|json| {
                list.push(read_definition(names, json)?);
                Ok(())
            })?;
            once(&mut created, field, list)
        }
        "drop" => {
            let mut list = Vec::new();
            json.list(|json| {
                list.push((&*json.text()?).into());
                Ok(())
            })?;
            once(&mut dropped, field, list)
        }
        _ => fault(format!("unknown field {field:?} of a schema change")),
    })?;
    json.end()?;
    Ok(ChangeSet {
        created_items: created.unwrap_or_default(),
        dropped_items: dropped.unwrap_or_default(),
        ..ChangeSet::default()
    })
}

fn read_definition(names: &Graph, json: &mut Json<'_>) -> Result<SchemaDefinition, EventFault> {
    let (mut name, mut kind, mut on) = (None, None, None);
    let (mut labels, mut keys) = (None, None);
    let (mut dimensions, mut similarity) = (None, None);
    json.object(|json, field| match field {
        "name" => once(&mut name, field, json.text()?.into_owned()),
        "kind" => once(&mut kind, field, json.text()?.into_owned()),
        "on" => once(&mut on, field, json.text()?.into_owned()),
        "labels" => once(&mut labels, field, read_names(names, json)?),
        "keys" => once(&mut keys, field, read_names(names, json)?),
        "dimensions" => once(&mut dimensions, field, json.natural()?),
        "similarity" => once(&mut similarity, field, json.text()?.into_owned()),
        _ => fault(format!("unknown field {field:?} of a schema item")),
    })?;
    let (Some(name), Some(kind), Some(on)) = (name, kind, on) else {
        return fault("a schema item needs name, kind and on");
    };
    let kind = if kind == VECTOR {
        let similarity = similarity.take().unwrap_or_default();
        let same = SIMILARITIES.iter().find(|(known, _)| **known == similarity);
        let Some((_, similarity)) = same else { return fault("similarity: unknown") };
        let Ok(dimensions) = u16::try_from(dimensions.take().unwrap_or(0)) else {
            return fault("dimensions: too many");
        };
        SchemaKind::Vector(VectorSettings { dimensions, similarity: *similarity })
    } else {
        let kind = KINDS.iter().find(|(known, _)| **known == kind).map(|(_, kind)| *kind);
        let Some(kind) = kind else { return fault("kind: unknown") };
        kind
    };
    if dimensions.is_some() || similarity.is_some() {
        return fault("dimensions and similarity: only of a vector index");
    }
    let labels = labels.unwrap_or_default();
    let [subject, others @ ..] = &labels[..] else {
        return fault("labels: expected one or more");
    };
    let subject = match &*on {
        "node" => SchemaSubject::Label(*subject),
        "rel" => SchemaSubject::Type(*subject),
        _ => return fault("on: expected node or rel"),
    };
    let (others, keys) = (others.to_vec(), keys.unwrap_or_default());
    Ok(SchemaDefinition { name: name.into(), kind, subject, others, keys })
}
