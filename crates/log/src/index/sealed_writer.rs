//! Writes a sealed index: of the segment that was active until now, of one read anew, or of several
//! that had indexes of their own ([`super::merge`]).

use super::IndexError;
use super::active::ActiveIndex;
use super::column;
use super::contents::Contents;
use super::dictionary::DictionaryWriter;
use super::file::{
    Header, MOST_SEGMENTS, Part, Section, SegmentExtent, VERSION, header_bytes, put_segments,
};
use super::filter::FilterKeys;
use super::hash::{Domain, Keyed};
use super::sealed::{ID_TERMS_PER_BLOCK, PAIR_FLOOR, TERMS_PER_BLOCK, pair_key};
use super::sealed_list::SealedList;
use super::tag_pairs::{CommonTag, IN_FILTER, SealedTagPairs, WIDE_KEY, WideEvents};

/// The file for segments that take no more events, without reading them again.
pub(crate) fn seal(active: &ActiveIndex, segments: &[SegmentExtent], seed: u64) -> Vec<u8> {
    write(active, segments, seed).expect("an index in memory gives every answer")
}

/// The file for the contents of an index, which are those of these segments.
///
/// # Errors
/// [`IndexError`] of the contents.
pub(super) fn write(
    contents: &impl Contents,
    segments: &[SegmentExtent],
    seed: u64,
) -> Result<Vec<u8>, IndexError> {
    let keys = contents.filter_keys_bound().map_or_else(FilterKeys::gathered, FilterKeys::placed);
    write_version(contents, segments, seed, VERSION, keys)
}

/// The same in a version, with a filter of that version.
pub(super) fn write_version(
    contents: &impl Contents,
    segments: &[SegmentExtent],
    seed: u64,
    version: u32,
    filter: FilterKeys,
) -> Result<Vec<u8>, IndexError> {
    let events = contents.events();
    let (first, more) = segments.split_first().expect("a segment");
    assert!(first.base == contents.base() && segments.len() <= MOST_SEGMENTS, "its segments");
    let mut image = Image::new(version, events, *first);
    let mut lists = ListWriter {
        events,
        keyed: Keyed::new(seed),
        postings: Vec::new(),
        filter,
        types: contents.event_types()?,
        type_terms: Vec::new(),
        long_tags: Vec::new(),
    };

    let types = lists.types(contents)?;
    image.add_column(Part::Offsets, 4, |put| contents.offsets(put))?;
    let width = column::type_width(lists.type_terms.len() as u32);
    image.add_column(Part::TypeColumn, width, |put| {
        lists.types.iter().for_each(|&place| put(place));
        Ok(())
    })?;
    image.add_dictionary(Part::Types, Part::TypeDirectory, types);
    let tags = lists.tags(contents)?;
    image.add_dictionary(Part::Tags, Part::TagDirectory, tags);
    let (pairs, common) = lists.pairs(contents.common())?;
    image.add_dictionary(Part::Pairs, Part::PairDirectory, pairs);
    image.header.sections[Part::Pairs as usize].crc = common;
    let ids = lists.terms(contents, Domain::Id)?;
    image.add_dictionary(Part::Ids, Part::IdDirectory, ids);
    let keys = lists.terms(contents, Domain::Key)?;
    image.add_dictionary(Part::Keys, Part::KeyDirectory, keys);
    image.add(Part::Postings, |out| out.append(&mut lists.postings));
    image.add_whole(Part::Filter, &lists.filter.finish(seed));
    if !more.is_empty() {
        let mut bytes = Vec::new();
        put_segments(&mut bytes, more);
        image.add_whole(Part::Segments, &bytes);
    }
    Ok(image.finish())
}

/// The file as it grows.
struct Image {
    bytes: Vec<u8>,
    header: Header,
}

impl Image {
    fn new(version: u32, events: u32, first: SegmentExtent) -> Image {
        let header = Header { version, events, first, sections: Default::default() };
        let mut image = Image { bytes: vec![0; header_bytes(version)], header };
        // The last section may stay empty, and stands at the end then.
        image.header.sections[Part::Segments as usize] = Section::default();
        image
    }

    fn add(&mut self, part: Part, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.note(part, start);
    }

    fn note(&mut self, part: Part, start: usize) {
        let len = (self.bytes.len() - start) as u64;
        self.header.sections[part as usize] =
            Section { offset: start as u64, len, items: 0, crc: 0 };
    }

    fn add_column(
        &mut self,
        part: Part,
        width: usize,
        numbers: impl FnOnce(&mut dyn FnMut(u32)) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let start = self.bytes.len();
        let mut column = column::ColumnWriter::new(&mut self.bytes, width);
        numbers(&mut |number| column.push(number))?;
        column.finish();
        self.note(part, start);
        Ok(())
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
        let end = self.bytes.len() as u64;
        let last = &mut self.header.sections[Part::Segments as usize];
        if last.len == 0 {
            last.offset = end;
        }
        let header = self.header.encode();
        self.bytes[..header.len()].copy_from_slice(&header);
        self.bytes
    }
}

/// A type, by its place among the types.
struct TypeTerm {
    hash: u64,
    events: u32,
}

/// A tag with so many events that lists of pairs are kept of it.
struct LongTag {
    /// Its place among the tags.
    number: u32,
    hash: u64,
    /// In the postings.
    list: SealedList,
}

/// Writes dictionaries; gathers postings and the keys of the filter.
struct ListWriter {
    events: u32,
    keyed: Keyed,
    postings: Vec<u8>,
    filter: FilterKeys,
    /// The type of each event.
    types: Vec<u32>,
    type_terms: Vec<TypeTerm>,
    long_tags: Vec<LongTag>,
}

impl ListWriter {
    fn types(&mut self, contents: &impl Contents) -> Result<DictionaryWriter, IndexError> {
        let mut writer = DictionaryWriter::new(TERMS_PER_BLOCK);
        contents.terms(Domain::Type, &mut |text, rels| {
            writer.push(text, &mut self.postings, rels);
            let hash = self.keyed.bytes(Domain::Type, text);
            self.filter.add(hash);
            self.type_terms.push(TypeTerm { hash, events: rels.len() as u32 });
        })?;
        Ok(writer)
    }

    /// The dictionary of tags. Every pair of a type and a tag that occurs goes into the filter.
    fn tags(&mut self, contents: &impl Contents) -> Result<DictionaryWriter, IndexError> {
        let mut writer = DictionaryWriter::new(TERMS_PER_BLOCK);
        let common = contents.common();
        let mut types_met = Vec::new();
        let mut number = 0;
        contents.terms(Domain::Tag, &mut |text, rels| {
            let at = self.postings.len();
            writer.push(text, &mut self.postings, rels);
            let hash = self.keyed.bytes(Domain::Tag, text);
            self.filter.add(hash);
            if rels.len() > PAIR_FLOOR as usize || rels.len() >= common as usize {
                let list = SealedList::written(at, rels);
                self.long_tags.push(LongTag { number, hash, list });
            }
            number += 1;
            types_met.clear();
            types_met.extend(rels.iter().map(|&rel| self.types[rel as usize]));
            types_met.sort_unstable();
            types_met.dedup();
            for &met in &types_met {
                self.filter.add(self.keyed.pair(self.type_terms[met as usize].hash, hash));
            }
        })?;
        Ok(writer)
    }

    /// The dictionary of pairs: of a type and a tag that both have many events, and of two common
    /// tags; and what its section says of common tags.
    fn pairs(&mut self, common: u32) -> Result<(DictionaryWriter, u32), IndexError> {
        let mut writer = DictionaryWriter::new(TERMS_PER_BLOCK);
        let long_tags = std::mem::take(&mut self.long_tags);
        let mut common_tags = Vec::new();
        for LongTag { number, hash, list } in &long_tags {
            if list.count() >= common {
                common_tags.push(CommonTag { number: *number, hash: *hash, list: list.clone() });
            }
        }
        let mut tag_pairs = SealedTagPairs::of(common_tags, &self.postings, self.events)?;
        let (mut rels, mut typed): (Vec<u32>, Vec<(u32, u32)>) = Default::default();
        for LongTag { number, hash, mut list } in long_tags {
            rels.clear();
            list.read_all(&self.postings, self.events, 0, &mut rels)?;
            typed.clear();
            typed.extend(rels.iter().map(|&rel| (self.types[rel as usize], rel)));
            typed.sort_unstable();
            for group in typed.chunk_by(|a, b| a.0 == b.0) {
                let event_type = group[0].0;
                let of_type = self.type_terms[event_type as usize].events;
                if of_type > PAIR_FLOOR && rels.len() > PAIR_FLOOR as usize {
                    let rels: Vec<u32> = group.iter().map(|&(_, rel)| rel).collect();
                    writer.push(&pair_key(event_type, number), &mut self.postings, &rels);
                }
            }
            if let Some(pairs) = &mut tag_pairs {
                pairs.write(number, &rels, &mut writer, &mut self.postings, |other| {
                    self.filter.add(self.keyed.pair(hash, other));
                });
            }
        }
        let Some(pairs) = &mut tag_pairs else { return Ok((writer, 0)) };
        if pairs.write_wide(&mut writer, &mut self.postings) == WideEvents::Present {
            self.filter.add(self.keyed.bytes(Domain::Tag, &WIDE_KEY));
        }
        Ok((writer, common | IN_FILTER))
    }

    /// The dictionary of event ids or request keys.
    fn terms(
        &mut self,
        contents: &impl Contents,
        domain: Domain,
    ) -> Result<DictionaryWriter, IndexError> {
        let mut writer = DictionaryWriter::new(ID_TERMS_PER_BLOCK);
        contents.terms(domain, &mut |text, rels| {
            writer.push(text, &mut self.postings, rels);
            self.filter.add(self.keyed.bytes(domain, text));
        })?;
        Ok(writer)
    }
}
