//! Writes the index of a sealed segment from the index it had while it was
//! active, or from one made anew from its records.

use super::active::ActiveIndex;
use super::column;
use super::dictionary::DictionaryWriter;
use super::file::{HEADER_BYTES, Header, Part, SECTIONS, Section, VERSION};
use super::filter;
use super::hash::{Domain, Keyed};
use super::sealed::{ID_TERMS_PER_BLOCK, PAIR_FLOOR, TERMS_PER_BLOCK, pair_key};
use super::tag_pairs::{IN_FILTER, SealedTagPairs, WIDE_KEY, WideEvents};
use super::term_table::TermTable;

/// The file for a segment that takes no more events, without reading it again.
pub(crate) fn seal(active: &ActiveIndex, segment_len: u64, seed: u64) -> Vec<u8> {
    seal_with(active, segment_len, seed, VERSION, filter::build)
}

/// The same in a version whose filter is built by `build`.
pub(super) fn seal_with(
    active: &ActiveIndex,
    segment_len: u64,
    seed: u64,
    version: u32,
    build: fn(u64, &[u64]) -> Vec<u8>,
) -> Vec<u8> {
    let events = active.len();
    let mut image = Image {
        bytes: vec![0; HEADER_BYTES],
        header: Header {
            version,
            events,
            base: active.base(),
            segment_len,
            salt: 0,
            sections: Default::default(),
        },
    };
    let mut lists = ListWriter {
        active,
        events,
        keyed: Keyed::new(seed),
        postings: Vec::new(),
        hashes: Vec::new(),
        values: Vec::new(),
    };
    debug_assert_eq!(image.header.sections.len(), SECTIONS);

    let types = SortedTerms::of(active.type_table());
    let mut ordinals = vec![0u32; active.type_table().count() as usize];
    types.iter().zip(0..).for_each(|((_, id), ordinal)| ordinals[id as usize] = ordinal);
    image.add(Part::Offsets, |out| {
        column::put(out, 4, (0..events).filter_map(|rel| active.offset(rel).ok()));
    });
    let width = column::type_width(types.len() as u32);
    image.add(Part::TypeColumn, |out| {
        column::put(out, width, (0..events).map(|rel| ordinals[active.type_of(rel) as usize]));
    });
    let (type_terms, type_hashes) = lists.terms(active.type_table(), &types, Domain::Type);
    image.add_dictionary(Part::Types, Part::TypeDirectory, type_terms);
    let type_counts: Vec<u32> =
        types.iter().map(|(_, id)| active.type_table().lists.count(id)).collect();
    drop(types);

    let tags = SortedTerms::of(active.tag_table());
    let (tag_terms, tag_hashes) = lists.terms(active.tag_table(), &tags, Domain::Tag);
    image.add_dictionary(Part::Tags, Part::TagDirectory, tag_terms);
    let tag_pairs = SealedTagPairs::of(active, events, tags.iter().map(|(_, id)| id));
    let common = if tag_pairs.is_some() { active.tag_pairs().common() | IN_FILTER } else { 0 };
    let types = TypesOfEvents { ordinals: &ordinals, hashes: &type_hashes, counts: &type_counts };
    let pairs = lists.pairs(&tags, &tag_hashes, types, tag_pairs);
    image.add_dictionary(Part::Pairs, Part::PairDirectory, pairs);
    image.header.sections[Part::Pairs as usize].crc = common;
    drop(tags);

    let ids = lists.ids();
    image.add_dictionary(Part::Ids, Part::IdDirectory, ids);
    let keys = SortedTerms::of(active.key_table());
    let (key_terms, _) = lists.terms(active.key_table(), &keys, Domain::Key);
    image.add_dictionary(Part::Keys, Part::KeyDirectory, key_terms);
    image.add(Part::Postings, |out| out.append(&mut lists.postings));
    let filter = build(seed, &lists.hashes);
    image.add_whole(Part::Filter, &filter);
    image.finish()
}

/// The texts of a table that any event carries, in byte order, with their numbers. One buffer holds
/// all of them: a `String` each would take more memory than the table itself.
struct SortedTerms {
    /// A length byte and the text, for each.
    bytes: Vec<u8>,
    /// Where a text begins in `bytes`, and its number.
    places: Vec<(u32, u32)>,
}

impl SortedTerms {
    fn of(table: &TermTable) -> SortedTerms {
        let mut buffer = [0; 256];
        let mut terms = SortedTerms { bytes: Vec::new(), places: Vec::new() };
        for id in (0..table.count()).filter(|&id| table.lists.count(id) > 0) {
            let text = table.text(id, &mut buffer);
            terms.places.push((terms.bytes.len() as u32, id));
            terms.bytes.push(text.len() as u8);
            terms.bytes.extend_from_slice(text.as_bytes());
        }
        let SortedTerms { bytes, places } = &mut terms;
        places.sort_unstable_by(|a, b| text_at(bytes, a.0).cmp(text_at(bytes, b.0)));
        terms
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.places.iter().map(|&(at, id)| (text_at(&self.bytes, at), id))
    }
}

/// The text whose length byte stands at `at`.
fn text_at(bytes: &[u8], at: u32) -> &[u8] {
    let (len, rest) = bytes[at as usize..].split_first().expect("a length byte");
    &rest[..usize::from(*len)]
}

/// The file as it grows.
struct Image {
    bytes: Vec<u8>,
    header: Header,
}

impl Image {
    fn add(&mut self, part: Part, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let len = (self.bytes.len() - start) as u64;
        self.header.sections[part as usize] =
            Section { offset: start as u64, len, items: 0, crc: 0 };
    }

    /// Adds a section that is read as a whole.
    fn add_whole(&mut self, part: Part, bytes: &[u8]) {
        self.add(part, |out| out.extend_from_slice(bytes));
        self.header.sections[part as usize].crc = crc32c::crc32c(bytes);
    }

    fn add_dictionary(&mut self, terms: Part, directory: Part, writer: DictionaryWriter) {
        let (blocks, entries, items) = writer.finish();
        self.add(terms, |out| out.extend_from_slice(&blocks));
        self.header.sections[terms as usize].items = items;
        self.add_whole(directory, &entries);
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes[..HEADER_BYTES].copy_from_slice(&self.header.encode());
        self.bytes
    }
}

/// What is known of types: their numbers in byte order by those in the active index; their hashes
/// and numbers of events by the former.
#[derive(Clone, Copy)]
struct TypesOfEvents<'a> {
    ordinals: &'a [u32],
    hashes: &'a [u64],
    counts: &'a [u32],
}

/// Writes dictionaries; gathers postings and the keys of the filter.
struct ListWriter<'a> {
    active: &'a ActiveIndex,
    events: u32,
    keyed: Keyed,
    postings: Vec<u8>,
    hashes: Vec<u64>,
    values: Vec<u32>,
}

impl ListWriter<'_> {
    /// The dictionary of texts, and their hashes in the same order.
    fn terms(
        &mut self,
        table: &TermTable,
        terms: &SortedTerms,
        domain: Domain,
    ) -> (DictionaryWriter, Vec<u64>) {
        let per_block = if domain == Domain::Key { ID_TERMS_PER_BLOCK } else { TERMS_PER_BLOCK };
        let mut writer = DictionaryWriter::new(per_block);
        let mut hashes = Vec::with_capacity(terms.len());
        for (text, id) in terms.iter() {
            self.active.elements(&table.lists, id, self.events, &mut self.values);
            writer.push(text, &mut self.postings, &self.values);
            hashes.push(self.keyed.bytes(domain, text));
        }
        self.hashes.extend_from_slice(&hashes);
        (writer, hashes)
    }

    /// Every pair that occurs goes into the filter; those whose two lists are
    /// both long get a list of their own. A tag's events are grouped by type,
    /// so no more than one tag's pairs are in memory.
    fn pairs(
        &mut self,
        tags: &SortedTerms,
        tag_hashes: &[u64],
        types: TypesOfEvents<'_>,
        mut tag_pairs: Option<SealedTagPairs>,
    ) -> DictionaryWriter {
        let mut writer = DictionaryWriter::new(TERMS_PER_BLOCK);
        let mut typed: Vec<(u32, u32)> = Vec::new();
        for (tag, ((_, id), &tag_hash)) in (0..).zip(tags.iter().zip(tag_hashes)) {
            let lists = &self.active.tag_table().lists;
            self.active.elements(lists, id, self.events, &mut self.values);
            let long = self.values.len() > PAIR_FLOOR as usize;
            typed.clear();
            let ordinal = |rel: u32| types.ordinals[self.active.type_of(rel) as usize];
            typed.extend(self.values.iter().map(|&rel| (ordinal(rel), rel)));
            typed.sort_unstable();
            for group in typed.chunk_by(|a, b| a.0 == b.0) {
                let event_type = group[0].0;
                let type_hash = types.hashes[event_type as usize];
                self.hashes.push(self.keyed.pair(type_hash, tag_hash));
                if long && types.counts[event_type as usize] > PAIR_FLOOR {
                    self.values.clear();
                    self.values.extend(group.iter().map(|&(_, rel)| rel));
                    let key = pair_key(event_type, tag);
                    writer.push(&key, &mut self.postings, &self.values);
                }
            }
            if let Some(pairs) = &mut tag_pairs {
                let rels = typed.iter().map(|&(_, rel)| rel);
                pairs.write(tag, rels, &mut writer, &mut self.postings, |other| {
                    self.hashes.push(self.keyed.pair(tag_hash, tag_hashes[other as usize]));
                });
            }
        }
        if let Some(pairs) = &mut tag_pairs
            && pairs.write_wide(&mut writer, &mut self.postings) == WideEvents::Present
        {
            self.hashes.push(self.keyed.bytes(Domain::Tag, &WIDE_KEY));
        }
        writer
    }

    fn ids(&mut self) -> DictionaryWriter {
        let mut ids: Vec<([u8; 16], u32)> =
            self.active.id_table().entries().filter(|&(_, rel)| rel < self.events).collect();
        ids.sort_unstable();
        let mut writer = DictionaryWriter::new(ID_TERMS_PER_BLOCK);
        for group in ids.chunk_by(|a, b| a.0 == b.0) {
            self.values.clear();
            self.values.extend(group.iter().map(|&(_, rel)| rel));
            writer.push(&group[0].0, &mut self.postings, &self.values);
            self.hashes.push(self.keyed.bytes(Domain::Id, &group[0].0));
        }
        writer
    }
}
