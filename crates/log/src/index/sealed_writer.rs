//! Writes a sealed index: of the previously active segment, of one that was read again, or of
//! several with their own indexes ([`super::merge`]).

use super::IndexError;
use super::active::ActiveIndex;
use super::column::{self, ColumnWriter};
use super::contents::{Contents, EventTypes};
use super::dictionary::DictionaryWriter;
use super::file::{MOST_SEGMENTS, Part, SegmentExtent, VERSION, WriteAt, put_segments};
use super::filter::FilterKeys;
use super::hash::{Domain, Keyed};
use super::image::Image;
use super::sealed::{ID_TERMS_PER_BLOCK, PAIR_FLOOR, TERMS_PER_BLOCK, pair_key};
use super::sealed_list::SealedList;
use super::tag_pairs::{CommonTag, IN_FILTER, SealedTagPairs, WIDE_KEY};

/// Writes the file for full segments without reading them again.
///
/// # Errors
/// [`IndexError::Io`].
pub(crate) fn seal(
    active: &ActiveIndex,
    segments: &[SegmentExtent],
    seed: u64,
    file: &dyn WriteAt,
) -> Result<(), IndexError> {
    write(active, segments, seed, file)
}

/// Writes the file for the contents of an index over these segments.
///
/// # Errors
/// [`IndexError`], of the contents or of writing.
pub(super) fn write(
    contents: &impl Contents,
    segments: &[SegmentExtent],
    seed: u64,
    file: &dyn WriteAt,
) -> Result<(), IndexError> {
    let keys = match contents.filter_keys_bound() {
        Some(bound) => FilterKeys::placed(bound),
        None => FilterKeys::gathered(contents.filter_keys_hint()),
    };
    write_version(contents, segments, seed, VERSION, keys, file)
}

/// The same in a given version, with that version's filter.
pub(super) fn write_version(
    contents: &impl Contents,
    segments: &[SegmentExtent],
    seed: u64,
    version: u32,
    filter: FilterKeys,
    file: &dyn WriteAt,
) -> Result<(), IndexError> {
    let (first, more) = segments.split_first().expect("a segment");
    assert!(first.base == contents.base() && segments.len() <= MOST_SEGMENTS, "its segments");
    let types = contents.event_types()?;
    let mut lists = ListWriter {
        image: Image::new(file, version, contents.events(), *first),
        events: contents.events(),
        keyed: Keyed::new(seed),
        postings: Vec::new(),
        filter,
        type_terms: Vec::with_capacity(types.count() as usize),
        types,
        long_tags: Vec::new(),
    };
    lists.columns(contents)?;
    lists.types(contents)?;
    lists.tags(contents)?;
    lists.pairs(contents)?;
    lists.terms(contents, Domain::Id, (Part::Ids, Part::IdDirectory))?;
    lists.terms(contents, Domain::Key, (Part::Keys, Part::KeyDirectory))?;
    let ListWriter { mut image, postings, mut filter, .. } = lists;
    image.put(&postings)?;
    image.end_section(Part::Postings, 0, 0);
    drop(postings);
    image.put_whole(Part::Filter, &filter.finish(seed))?;
    let mut bytes = Vec::new();
    put_segments(&mut bytes, more);
    image.put_whole(Part::Segments, &bytes)?;
    image.finish()
}

/// A type, by its rank among the types.
struct TypeTerm {
    hash: u64,
    events: u32,
}

/// A tag with enough events for lists of pairs.
struct LongTag {
    /// Its rank among the tags.
    number: u32,
    hash: u64,
    /// In the postings.
    list: SealedList,
}

/// Writes columns and dictionaries; collects postings and the keys of the filter.
struct ListWriter<'f> {
    image: Image<'f>,
    events: u32,
    keyed: Keyed,
    postings: Vec<u8>,
    filter: FilterKeys,
    types: EventTypes,
    type_terms: Vec<TypeTerm>,
    long_tags: Vec<LongTag>,
}

impl ListWriter<'_> {
    fn columns(&mut self, contents: &impl Contents) -> Result<(), IndexError> {
        let image = &mut self.image;
        let mut offsets = ColumnWriter::new(4);
        contents.offsets(&mut |offset| offsets.push(offset, image))?;
        offsets.finish(image)?;
        image.end_section(Part::Offsets, 0, 0);
        let mut column = ColumnWriter::new(column::type_width(self.types.count()));
        (0..self.events).try_for_each(|rel| column.push(self.types.get(rel), image))?;
        column.finish(image)?;
        image.end_section(Part::TypeColumn, 0, 0);
        Ok(())
    }

    fn types(&mut self, contents: &impl Contents) -> Result<(), IndexError> {
        let mut writer = DictionaryWriter::new(TERMS_PER_BLOCK);
        contents.terms(Domain::Type, &mut |text, rels| {
            let hash = self.keyed.bytes(Domain::Type, text);
            self.filter.add(hash);
            self.type_terms.push(TypeTerm { hash, events: rels.len() as u32 });
            writer.push(text, rels, &mut self.postings, &mut self.image)
        })?;
        writer.finish((Part::Types, Part::TypeDirectory), 0, &mut self.image)
    }

    /// Writes the dictionary of tags. Every pair of a type and a tag that occurs is added to the
    /// filter.
    fn tags(&mut self, contents: &impl Contents) -> Result<(), IndexError> {
        let mut writer = DictionaryWriter::new(TERMS_PER_BLOCK);
        let common = contents.common();
        let mut types_met = Vec::new();
        let mut number = 0;
        contents.terms(Domain::Tag, &mut |text, rels| {
            let at = self.postings.len();
            writer.push(text, rels, &mut self.postings, &mut self.image)?;
            let hash = self.keyed.bytes(Domain::Tag, text);
            self.filter.add(hash);
            if rels.len() > PAIR_FLOOR as usize || rels.len() >= common as usize {
                let list = SealedList::written(at, rels);
                self.long_tags.push(LongTag { number, hash, list });
            }
            number += 1;
            types_met.clear();
            types_met.extend(rels.iter().map(|&rel| self.types.get(rel)));
            types_met.dedup();
            if types_met.len() > 1 {
                types_met.sort_unstable();
                types_met.dedup();
            }
            for &met in &types_met {
                self.filter.add(self.keyed.pair(self.type_terms[met as usize].hash, hash));
            }
            Ok(())
        })?;
        writer.finish((Part::Tags, Part::TagDirectory), 0, &mut self.image)
    }

    /// Writes the dictionary of pairs: of a type and a tag that both have many events, and of two
    /// common tags. Its entry in the section table contains the threshold for common tags.
    fn pairs(&mut self, contents: &impl Contents) -> Result<(), IndexError> {
        let common = contents.common();
        let mut writer = DictionaryWriter::new(TERMS_PER_BLOCK);
        let long_tags = std::mem::take(&mut self.long_tags);
        let common_tags = long_tags.iter().filter(|tag| tag.list.count() >= common);
        let common_tags = common_tags.map(|tag| CommonTag {
            number: tag.number,
            hash: tag.hash,
            list: tag.list.clone(),
        });
        let mut tag_pairs = SealedTagPairs::of(common_tags.collect(), &self.postings, self.events)?;
        let (mut rels, mut typed): (Vec<u32>, Vec<(u32, u32)>) = Default::default();
        for LongTag { number, hash, mut list } in long_tags {
            contents.step(list.count() as usize)?;
            rels.clear();
            list.read_all(&self.postings, self.events, 0, &mut rels)?;
            if rels.len() > PAIR_FLOOR as usize {
                typed.clear();
                typed.extend(rels.iter().map(|&rel| (self.types.get(rel), rel)));
                self.type_pairs(number, &mut typed, &mut writer)?;
            }
            if let Some(pairs) = &mut tag_pairs {
                pairs.each_pair(number, &rels, |key, rels, other| {
                    self.filter.add(self.keyed.pair(hash, other));
                    writer.push(key, rels, &mut self.postings, &mut self.image)
                })?;
            }
        }
        let wide = tag_pairs.as_ref().map_or_else(Vec::new, SealedTagPairs::wide);
        if !wide.is_empty() {
            writer.push(&WIDE_KEY, &wide, &mut self.postings, &mut self.image)?;
            self.filter.add(self.keyed.bytes(Domain::Tag, &WIDE_KEY));
        }
        let says = if tag_pairs.is_some() { common | IN_FILTER } else { 0 };
        writer.finish((Part::Pairs, Part::PairDirectory), says, &mut self.image)
    }

    /// The pairs of a tag with types: `typed` are the type and number of each of its events.
    fn type_pairs(
        &mut self,
        tag: u32,
        typed: &mut [(u32, u32)],
        writer: &mut DictionaryWriter,
    ) -> Result<(), IndexError> {
        typed.sort_unstable();
        for group in typed.chunk_by(|a, b| a.0 == b.0) {
            let event_type = group[0].0;
            if self.type_terms[event_type as usize].events > PAIR_FLOOR {
                let rels: Vec<u32> = group.iter().map(|&(_, rel)| rel).collect();
                let key = pair_key(event_type, tag);
                writer.push(&key, &rels, &mut self.postings, &mut self.image)?;
            }
        }
        Ok(())
    }

    /// Writes the dictionary of event ids or request keys.
    fn terms(
        &mut self,
        contents: &impl Contents,
        domain: Domain,
        parts: (Part, Part),
    ) -> Result<(), IndexError> {
        let mut writer = DictionaryWriter::new(ID_TERMS_PER_BLOCK);
        contents.terms(domain, &mut |text, rels| {
            self.filter.add(self.keyed.bytes(domain, text));
            writer.push(text, rels, &mut self.postings, &mut self.image)
        })?;
        writer.finish(parts, 0, &mut self.image)
    }
}

/// The same in memory.
#[cfg(test)]
pub(super) fn sealed_image(active: &ActiveIndex, segments: &[SegmentExtent], seed: u64) -> Vec<u8> {
    let file = std::cell::RefCell::new(Vec::new());
    seal(active, segments, seed, &file).expect("a file in memory takes everything");
    file.into_inner()
}
