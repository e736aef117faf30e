//! Writes a version.

use super::{
    BlockWriter, FORM, HEAD, INCOMING, INDEX, LABELS, NAMES, NODES, OUTGOING, RELATIONSHIPS,
    SCHEMA, TYPES,
};
use crate::graph::{Graph, SchemaItem, SchemaKind, SchemaSubject, Similarity, VectorSettings};
use crate::store::{Paged, RowPage, Tree};
use crate::value::{put_sized, put_varint};
use std::io::{self, Write};
use std::ops::ControlFlow;

impl Graph {
    /// Writes this version.
    pub(crate) fn encode<W: Write>(&self, out: &mut BlockWriter<'_, W>) -> io::Result<()> {
        out.begin(HEAD)?;
        let [next_node, next_relationship] = self.shared.next_ids();
        for number in [FORM, self.position, next_node, next_relationship] {
            put_varint(&mut out.block, number);
        }
        out.begin(NAMES)?;
        for text in self.names().texts() {
            put_sized(&mut out.block, text.as_bytes());
            out.may_end()?;
        }
        out.begin(SCHEMA)?;
        for item in self.schema_items().items() {
            put_item(&mut out.block, item);
            out.may_end()?;
        }
        for (kind, pages) in
            [(NODES, &self.content.nodes), (RELATIONSHIPS, &self.content.relationships)]
        {
            out.begin(kind)?;
            put_pages(out, pages)?;
        }
        for (kind, tree) in [(OUTGOING, &self.content.outgoing), (INCOMING, &self.content.incoming)]
        {
            out.begin(kind)?;
            put_tree(out, tree)?;
        }
        for (kind, tree) in [(LABELS, &self.content.labels), (TYPES, &self.content.types)] {
            out.begin(kind)?;
            put_tree(out, tree)?;
        }
        out.begin(INDEX)?;
        put_tree(out, &self.content.index)
    }
}

fn put_item(out: &mut Vec<u8>, item: &SchemaItem) {
    let definition = &item.definition;
    put_varint(out, item.number.into());
    put_sized(out, definition.name.as_bytes());
    out.push(match definition.kind {
        SchemaKind::Range => 0,
        SchemaKind::Unique => 1,
        SchemaKind::Exists => 2,
        SchemaKind::Key => 3,
        SchemaKind::Vector(_) => 4,
        SchemaKind::Fulltext => 5,
    });
    let (on, name) = match definition.subject {
        SchemaSubject::Label(name) => (0, name),
        SchemaSubject::Type(name) => (1, name),
    };
    out.push(on);
    put_varint(out, name.number().into());
    put_varint(out, definition.keys.len() as u64);
    definition.keys.iter().for_each(|key| put_varint(out, key.number().into()));
    match definition.kind {
        SchemaKind::Vector(VectorSettings { dimensions, similarity }) => {
            put_varint(out, dimensions.into());
            out.push(match similarity {
                Similarity::Cosine => 0,
                Similarity::Euclidean => 1,
            });
        }
        SchemaKind::Fulltext => {
            put_varint(out, definition.others.len() as u64);
            definition.others.iter().for_each(|name| put_varint(out, name.number().into()));
        }
        _ => {}
    }
}

fn put_pages<W: Write>(out: &mut BlockWriter<'_, W>, pages: &Paged<RowPage>) -> io::Result<()> {
    for (number, page) in pages.iter() {
        let places = page.iter().fold(0u64, |places, (at, _)| places | 1 << at);
        if places == 0 {
            continue;
        }
        put_varint(&mut out.block, number);
        out.block.extend_from_slice(&places.to_le_bytes());
        page.iter().for_each(|(_, row)| put_sized(&mut out.block, row));
        out.may_end()?;
    }
    Ok(())
}

fn put_tree<const N: usize, W: Write>(
    out: &mut BlockWriter<'_, W>,
    tree: &Tree<N>,
) -> io::Result<()> {
    let mut last = [0; N];
    let mut result = Ok(());
    tree.walk(&[0; N], |key| {
        let shared = key.iter().zip(&last).take_while(|(a, b)| a == b).count();
        // N itself stands for an all-zero key.
        out.block.push(shared as u8);
        out.block.extend_from_slice(&key[shared..]);
        last = *key;
        result = out.may_end();
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    result
}
