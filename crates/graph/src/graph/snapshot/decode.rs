//! Reads a version. Everything that could mislead a reader is checked, and no length is trusted.

use super::{
    FORM, HEAD, INCOMING, INDEX, LABELS, NAMES, NODES, OUTGOING, RELATIONSHIPS, SCHEMA, TYPES,
};
use crate::fault::SnapshotFault;
use crate::graph::counts::NameCounts;
use crate::graph::{
    Content, Graph, SchemaDefinition, SchemaItem, SchemaKind, SchemaSubject, Similarity,
    VectorSettings, row,
};
use crate::limits::{MAX_ID, MAX_SCHEMA_ITEMS};
use crate::names::{Name, is_name};
use crate::store::{PAGE_ROWS, TreeBuilder};
use crate::value::Reader;
use std::sync::Arc;

/// A version being read, block by block.
#[derive(Default)]
pub(crate) struct GraphReader {
    graph: Graph,
    /// Names that are read, until something else comes.
    names: Vec<Arc<str>>,
    has_head: bool,
    outgoing: TreeReader<21>,
    incoming: TreeReader<21>,
    labels: TreeReader<10>,
    types: TreeReader<10>,
    index: TreeReader<34>,
}

fn malformed<T>(what: &'static str) -> Result<T, SnapshotFault> {
    Err(SnapshotFault::Malformed(what))
}

/// The value read, or an error that names the damaged part.
fn sound<T>(read: Option<T>, what: &'static str) -> Result<T, SnapshotFault> {
    read.map_or_else(|| malformed(what), Ok)
}

impl GraphReader {
    pub(crate) fn read(&mut self, kind: u8, block: &[u8]) -> Result<(), SnapshotFault> {
        let mut input = Reader::new(block);
        if kind == HEAD {
            return sound(self.head(&mut input), "the head");
        }
        if !self.has_head {
            return malformed("no head");
        }
        if kind != NAMES {
            sound(self.settle_names(), "a name that occurs twice")?;
        }
        while !input.is_empty() {
            match kind {
                NAMES => sound(self.name(&mut input), "a name")?,
                SCHEMA => sound(self.item(&mut input), "a schema item")?,
                NODES => sound(self.node_page(&mut input), "a page of nodes")?,
                RELATIONSHIPS => {
                    sound(self.relationship_page(&mut input), "a page of relationships")?;
                }
                OUTGOING => sound(self.outgoing.read(&mut input), "an adjacency")?,
                INCOMING => sound(self.incoming.read(&mut input), "an adjacency")?,
                LABELS => sound(self.labels.read(&mut input), "a label's node")?,
                TYPES => sound(self.types.read(&mut input), "a type's relationship")?,
                INDEX => sound(self.index.read(&mut input), "an index entry")?,
                _ => return malformed("a block of unknown kind"),
            }
        }
        Ok(())
    }

    fn head(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let form = input.varint()?;
        self.graph.position = input.varint()?;
        let next = [input.varint()?, input.varint()?];
        let is_first = !std::mem::replace(&mut self.has_head, true);
        let is_sound =
            is_first && (1..=FORM).contains(&form) && next.iter().all(|next| *next <= MAX_ID);
        self.graph.shared.begin_ids(next);
        (is_sound && input.is_empty()).then_some(())
    }

    fn text<'a>(input: &mut Reader<'a>) -> Option<&'a str> {
        std::str::from_utf8(input.sized()?).ok().filter(|text| is_name(text))
    }

    fn name(&mut self, input: &mut Reader<'_>) -> Option<()> {
        self.names.push(Self::text(input)?.into());
        Some(())
    }

    fn settle_names(&mut self) -> Option<()> {
        let names = std::mem::take(&mut self.names);
        if names.is_empty() { Some(()) } else { self.graph.content_mut().names.extend(names) }
    }

    fn known_name(&self, input: &mut Reader<'_>) -> Option<Name> {
        let number = u32::try_from(input.varint()?).ok()?;
        ((number as usize) < self.graph.names().len()).then(|| Name::new(number))
    }

    fn item(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let number = u32::try_from(input.varint()?).ok().filter(|number| *number < u32::MAX)?;
        let name = Self::text(input)?.into();
        let kind = input.byte()?;
        let on = input.byte()?;
        let subject = self.known_name(input)?;
        let subject = match on {
            0 => SchemaSubject::Label(subject),
            1 => SchemaSubject::Type(subject),
            _ => return None,
        };
        let keys: Option<Vec<Name>> =
            (0..input.varint()?).map(|_| self.known_name(input)).collect();
        let keys = keys?;
        let mut others = Vec::new();
        let kind = match kind {
            0 => SchemaKind::Range,
            1 => SchemaKind::Unique,
            2 => SchemaKind::Exists,
            3 => SchemaKind::Key,
            4 => {
                let dimensions = u16::try_from(input.varint()?).ok()?;
                let similarity = match input.byte()? {
                    0 => Similarity::Cosine,
                    1 => Similarity::Euclidean,
                    _ => return None,
                };
                SchemaKind::Vector(VectorSettings { dimensions, similarity })
            }
            5 => {
                let names = (0..input.varint()?).map(|_| self.known_name(input));
                others = names.collect::<Option<_>>()?;
                SchemaKind::Fulltext
            }
            _ => return None,
        };
        let definition = SchemaDefinition { name, kind, subject, others, keys };
        self.graph.check_definition(&definition).ok()?;
        let schema = Arc::make_mut(&mut self.graph.content_mut().schema);
        let is_new = schema.items().iter().all(|item| item.number != number);
        let has_room = schema.items().len() < MAX_SCHEMA_ITEMS;
        schema.restore(SchemaItem { number, definition });
        (is_new && has_room).then_some(())
    }

    fn node_page(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let names = self.graph.names().len();
        let Content { nodes, node_count, key_counts, .. } = self.graph.content_mut();
        let check = |bytes: &[u8], counts: &mut NameCounts| row::check_node(bytes, names, counts);
        *node_count += read_page(input, nodes, key_counts, check)?;
        Some(())
    }

    fn relationship_page(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let names = self.graph.names().len();
        let Content { relationships, relationship_count, key_counts, .. } =
            self.graph.content_mut();
        let check =
            |bytes: &[u8], counts: &mut NameCounts| row::check_relationship(bytes, names, counts);
        *relationship_count += read_page(input, relationships, key_counts, check)?;
        Some(())
    }

    /// The version, once all blocks are read.
    pub(crate) fn finish(mut self) -> Result<Graph, SnapshotFault> {
        sound(self.settle_names(), "a name that occurs twice")?;
        let counts = [self.outgoing.count, self.incoming.count, self.types.count];
        if !self.has_head || counts.iter().any(|count| *count != self.graph.relationship_count()) {
            return malformed("inconsistent relationships");
        }
        let names = self.graph.names().len();
        let content = self.graph.content_mut();
        for (members, counts) in
            [(&self.labels, &mut content.label_counts), (&self.types, &mut content.type_counts)]
        {
            for (first, count) in &members.groups {
                let number = u32::from_be_bytes([first[0], first[1], first[2], first[3]]);
                if number as usize >= names {
                    return malformed("a member of an unknown label or type");
                }
                counts.set(Name::new(number), *count);
            }
        }
        content.outgoing = self.outgoing.builder.finish();
        content.incoming = self.incoming.builder.finish();
        content.labels = self.labels.builder.finish();
        content.types = self.types.builder.finish();
        content.index = self.index.builder.finish();
        Ok(self.graph)
    }
}

/// Reads a page; returns its number of rows.
fn read_page(
    input: &mut Reader<'_>,
    pages: &mut crate::store::Paged<crate::store::RowPage>,
    counts: &mut NameCounts,
    check: impl Fn(&[u8], &mut NameCounts) -> Option<()>,
) -> Option<u64> {
    let number = input.varint().filter(|number| *number < MAX_ID / PAGE_ROWS as u64)?;
    let places = u64::from_le_bytes(input.array()?);
    let page = pages.get_mut(number);
    if places == 0 || page.next(0).is_some() {
        return None;
    }
    for at in (0..PAGE_ROWS).filter(|at| places & 1 << at != 0) {
        let bytes = input.sized().filter(|bytes| !bytes.is_empty())?;
        check(bytes, counts)?;
        page.set(at, bytes);
    }
    page.settle();
    Some(places.count_ones().into())
}

/// A tree being read, with the number of keys that begin with the same four bytes.
#[derive(Default)]
struct TreeReader<const N: usize> {
    builder: TreeBuilder<N>,
    last: Option<[u8; N]>,
    count: u64,
    groups: Vec<([u8; 4], u64)>,
}

impl<const N: usize> TreeReader<N> {
    fn read(&mut self, input: &mut Reader<'_>) -> Option<()> {
        let mut key = self.last.unwrap_or([0; N]);
        let shared = usize::from(input.byte()?);
        let rest = key.get_mut(shared..)?;
        rest.copy_from_slice(input.take(rest.len())?);
        self.builder.push(key)?;
        self.last = Some(key);
        self.count += 1;
        if N == 10 {
            let group = [key[0], key[1], key[2], key[3]];
            match self.groups.last_mut() {
                Some((known, count)) if *known == group => *count += 1,
                _ => self.groups.push((group, 1)),
            }
        }
        Some(())
    }
}
