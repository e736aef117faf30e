//! The index of one full segment, or of several adjacent ones: an immutable file, read on demand.
//!
//! # The file, format version 3
//!
//! Little endian, no padding. A CRC32C covers everything and is checked on reading, so damage is an
//! error and never a wrong answer. The file is derived: after damage it is rebuilt from the
//! segments.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | `WSINDEX\n` |
//! | 8 | 4 | format version, 3; versions 1 and 2 can be read |
//! | 12 | 4 | number of events |
//! | 16 | 8 | position of the first event |
//! | 24 | 8 | where the last batch of the first segment ends |
//! | 32 | 8 | salt of the first segment; 0 in the first files of version 1 |
//! | 40 | 15·24 | sections: offset u64, length u64, number of terms u32, CRC32C u32 |
//! | 400 | 4 | CRC32C of the bytes before |
//! | 404 | | the sections, in this order, without gaps, to the end of the file |
//!
//! | # | section | contents | CRC |
//! |---|---|---|---|
//! | 0 | offsets | column of u32: where each event begins in its segment | per block |
//! | 1 | type column | column of type numbers: 1 byte each for up to 256 types, 2 for up to 65,536, else 4 | per block |
//! | 2, 3 | types | dictionary, 32 terms per block, and its directory | per block, whole |
//! | 4, 5 | tags | the same | |
//! | 6, 7 | pairs | dictionary of tag number u32 and type number u32, both big endian so that bytes order as numbers; 32 terms per block. Also pairs of tags, see below | see below |
//! | 8, 9 | event ids | dictionary of 16 bytes, 128 per block | |
//! | 10, 11 | request keys | dictionary, 128 terms per block | |
//! | 12 | postings | lists longer than 16 | per list and block |
//! | 13 | filter | over all terms and all pairs that occur | whole, and per block |
//! | 14 | segments | the segments after the first: base, end of the last batch, salt, u64 each | whole |
//!
//! Versions 1 and 2 have no section 14 and a header that is 24 bytes shorter; version 1 has another
//! filter.
//!
//! The number of a type or tag is its index in its dictionary, from 0. Events are numbered from 0
//! through all segments. A pair has a list if its type and its tag each have more than 64 events.
//! If the CRC of section 6 is not zero, it is the threshold for common tags, and the section also
//! has the lists of pairs of common tags (the smaller tag number, then the greater with its highest
//! bit set) and, under eight bytes 0xff, the events with more than six common tags, which are in no
//! such list ([`super::tag_pairs`]). If its highest bit is also set, the filter contains these
//! pairs (the hashes of the two tags, in byte order) and that key (as a tag). "Whole": the CRC32C
//! is in the section table, where it is 0 for the others; the number of terms is 0 for all but 2,
//! 4, 6, 8 and 10. Columns: [`super::column`]; dictionaries: [`super::dictionary`]; lists:
//! [`super::sealed_list`], numbers in them: [`super::varint`]; the filter and its hash:
//! [`super::filter`], [`super::hash`].
//!
//! # What is read and when
//!
//! Opening reads the header. A filter is read as a whole if the budget of [`super::loaded`] has
//! room for it, or once it has been queried often enough for that to pay off; otherwise one block
//! of 64 bytes is read per query. The offsets are read as a whole once as many of their blocks have
//! been read one by one, if the budget has room. A dictionary's directory is read when one of its
//! terms passes the filter. All of these stay in memory until the budget is needed for others.
//! Everything else is one
//! `pread` of at most a few KiB per block, except for the skip table of a long list (12 bytes per
//! 128 elements).

use super::column::{self, EachNumber, SealedColumn};
use super::dictionary::{Dictionary, DictionaryScan};
use super::file::{Header, Part, ReadAt, SegmentExtent};
use super::hash::Domain;
use super::matching::{ColumnBlock, Narrowed, Source};
use super::recent_terms::RecentTerms;
use super::sealed_filter::SealedFilter;
use super::sealed_list::SealedList;
use super::tag_pairs::{IN_FILTER, TagPair, WIDE_KEY, tag_pair_key};
use super::{IndexError, TermKind, TermPage};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Terms per block of the dictionaries of types, tags and pairs.
pub(super) const TERMS_PER_BLOCK: usize = 32;
/// Terms per block of the dictionaries of event ids and request keys, whose entries are small.
pub(super) const ID_TERMS_PER_BLOCK: usize = 128;
/// A pair has a list if type and tag each have more events than this.
pub(super) const PAIR_FLOOR: u32 = 64;

/// The key of a pair in its dictionary.
pub(super) fn pair_key(event_type: u32, tag: u32) -> [u8; 8] {
    (u64::from(tag) << 32 | u64::from(event_type)).to_be_bytes()
}

/// A type or tag of a sealed segment.
#[derive(Debug, Clone)]
pub(super) struct SealedTerm {
    number: u32,
    /// Its hash in the filter.
    hash: u64,
    pub(super) list: SealedList,
}

/// The index file of a sealed segment.
#[derive(Debug)]
pub(crate) struct SealedIndex {
    file: Arc<dyn ReadAt>,
    header: Header,
    types: Dictionary,
    tags: Dictionary,
    pairs: Dictionary,
    ids: Dictionary,
    keys: Dictionary,
    filter: SealedFilter,
    offsets: SealedColumn,
    recent: RecentTerms,
    /// Whether there are no wide events, once it is known.
    has_no_wide: OnceLock<bool>,
}

impl SealedIndex {
    /// Reads only the header.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn open(file: Arc<dyn ReadAt>) -> Result<SealedIndex, IndexError> {
        let header = Header::read(&*file)?;
        let dictionary = |what, per_block, blocks, directory| {
            Dictionary::new(
                what,
                per_block,
                header.section(blocks),
                header.section(directory),
                header.section(Part::Postings),
                header.events,
            )
        };
        Ok(SealedIndex {
            types: dictionary("types", TERMS_PER_BLOCK, Part::Types, Part::TypeDirectory),
            tags: dictionary("tags", TERMS_PER_BLOCK, Part::Tags, Part::TagDirectory),
            pairs: dictionary("pairs", TERMS_PER_BLOCK, Part::Pairs, Part::PairDirectory),
            ids: dictionary("event ids", ID_TERMS_PER_BLOCK, Part::Ids, Part::IdDirectory),
            keys: dictionary("request keys", ID_TERMS_PER_BLOCK, Part::Keys, Part::KeyDirectory),
            filter: SealedFilter::new(header.version, header.section(Part::Filter)),
            offsets: SealedColumn::new(header.section(Part::Offsets), 4, "offsets"),
            recent: RecentTerms::default(),
            has_no_wide: OnceLock::new(),
            file,
            header,
        })
    }

    /// Position of the first event.
    pub(crate) fn base(&self) -> u64 {
        self.header.first.base
    }

    /// Number of events.
    pub(crate) fn len(&self) -> u32 {
        self.header.events
    }

    /// Whether it can be the index of segments the first of which has this salt.
    pub(crate) fn is_of_segment(&self, salt: u64) -> bool {
        self.header.first.salt == 0 || self.header.first.salt == salt
    }

    /// The salt of the first segment.
    pub(crate) fn salt(&self) -> u64 {
        self.header.first.salt
    }

    /// The segments it covers, ascending.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn segments(&self) -> Result<Vec<SegmentExtent>, IndexError> {
        self.header.segments(&*self.file)
    }

    /// Size of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.header.sections.iter().map(|section| section.offset + section.len).max().unwrap_or(0)
    }

    pub(super) fn file(&self) -> &dyn ReadAt {
        &*self.file
    }

    /// The file as the device has it, unless that is no different.
    pub(super) fn file_past_cache(&self) -> Option<Arc<dyn ReadAt>> {
        self.file.past_cache()
    }

    /// All terms of a domain in byte order.
    pub(super) fn scan(&self, domain: Domain) -> Result<DictionaryScan<'_>, IndexError> {
        let dictionary = match domain {
            Domain::Type => &self.types,
            Domain::Tag => &self.tags,
            Domain::Id => &self.ids,
            Domain::Key => &self.keys,
        };
        dictionary.scan(&*self.file)
    }

    /// All pairs of a type and a tag that have a list, and of two common tags.
    pub(super) fn scan_pairs(&self) -> Result<DictionaryScan<'_>, IndexError> {
        self.pairs.scan(&*self.file)
    }

    /// Reads and checks the whole filter, as it is in the file.
    pub(super) fn check_filter(&self) -> Result<(), IndexError> {
        self.filter.check(&*self.file)
    }

    /// Size of a section.
    pub(super) fn section_bytes(&self, part: Part) -> u64 {
        self.header.section(part).len
    }

    /// An upper bound of its filter's number of keys.
    pub(super) fn filter_keys_bound(&self) -> usize {
        self.filter.keys_bound()
    }

    /// The type column contains an invalid type.
    pub(super) fn damaged_type_column(&self) -> IndexError {
        let offset = self.header.section(Part::TypeColumn).offset;
        IndexError::Damaged { what: "type column", offset }
    }

    /// Processes the offsets in their segments of some events, in this order.
    pub(super) fn offsets_of(&self, rels: &[u32], each: impl FnMut(u32)) -> Result<(), IndexError> {
        let len = self.len();
        if let Some(&rel) = rels.iter().find(|&&rel| rel >= len) {
            return Err(IndexError::NoSuchEvent { rel, len });
        }
        self.offsets.get_all(&*self.file, rels.iter().copied(), each)
    }

    /// The offset of each event, in order.
    pub(super) fn each_offset(&self, each: &mut EachNumber<'_>) -> Result<(), IndexError> {
        let section = self.header.section(Part::Offsets);
        column::each(&*self.file, section, 4, self.len(), "offsets", each)
    }

    /// The type of each event, in order.
    pub(super) fn each_type(&self, each: &mut EachNumber<'_>) -> Result<(), IndexError> {
        let section = self.header.section(Part::TypeColumn);
        let width = column::type_width(self.types.terms());
        column::each(&*self.file, section, width, self.len(), "type column", each)
    }

    /// The newest event in range with this id.
    pub(crate) fn find_id(
        &self,
        id: &[u8; 16],
        range: Range<u32>,
    ) -> Result<Option<u32>, IndexError> {
        self.find_newest(&self.ids, Domain::Id, id, range)
    }

    /// The newest event in range with this request key.
    pub(crate) fn find_key(&self, key: &str, range: Range<u32>) -> Result<Option<u32>, IndexError> {
        self.find_newest(&self.keys, Domain::Key, key.as_bytes(), range)
    }

    fn find_newest(
        &self,
        dictionary: &Dictionary,
        domain: Domain,
        term: &[u8],
        range: Range<u32>,
    ) -> Result<Option<u32>, IndexError> {
        let Some(last) = range.end.checked_sub(1) else { return Ok(None) };
        let Some((_, mut list)) = self.look_up(dictionary, domain, term)? else { return Ok(None) };
        Ok(self.seek(&mut list, last, true)?.filter(|rel| range.contains(rel)))
    }

    /// A term's number and list, after querying the filter.
    fn look_up(
        &self,
        dictionary: &Dictionary,
        domain: Domain,
        term: &[u8],
    ) -> Result<Option<(u32, SealedList)>, IndexError> {
        let filter = self.filter.open(&*self.file)?;
        if !filter.may_hold(filter.keyed().bytes(domain, term))? {
            return Ok(None);
        }
        dictionary.find(&*self.file, term)
    }

    /// The first `limit` terms that begin with a prefix and are greater than `after`, with their
    /// counts below `end`.
    pub(crate) fn terms_of(
        &self,
        kind: TermKind,
        page: &TermPage<'_>,
        end: u32,
    ) -> Result<Vec<(String, u64)>, IndexError> {
        let &TermPage { prefix, after, until, limit } = page;
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        let (dictionary, _, part) = self.dictionary(kind);
        let from = after.map_or(prefix, |after| after.max(prefix));
        dictionary.walk(&*self.file, from.as_bytes(), |_, term, mut list| {
            let term = self.text(term, part)?;
            if !term.starts_with(prefix) || until.is_some_and(|until| term > until) {
                return Ok(false);
            }
            if after.is_some_and(|after| term <= after) {
                return Ok(true);
            }
            let count = list.rank(&*self.file, end, self.len())?;
            if count > 0 {
                found.push((term.to_owned(), u64::from(count)));
            }
            Ok(found.len() < limit)
        })?;
        Ok(found)
    }

    fn dictionary(&self, kind: TermKind) -> (&Dictionary, Domain, Part) {
        match kind {
            TermKind::Type => (&self.types, Domain::Type, Part::Types),
            TermKind::Tag => (&self.tags, Domain::Tag, Part::Tags),
        }
    }

    /// Number of events in range with a term.
    pub(super) fn count_term(
        &self,
        kind: TermKind,
        term: &str,
        range: &Range<u32>,
    ) -> Result<u32, IndexError> {
        let (dictionary, domain, _) = self.dictionary(kind);
        // Querying a small dictionary is as fast as the filter, which may have to be loaded.
        let found = if dictionary.is_small() {
            dictionary.find(&*self.file, term.as_bytes())?
        } else {
            self.look_up(dictionary, domain, term.as_bytes())?
        };
        found.map_or(Ok(0), |(_, mut list)| self.count_list(&mut list, range))
    }

    /// Number of events in range with a type and a tag; `None` if that requires a walk.
    pub(super) fn count_pair(
        &self,
        event_type: &str,
        tag: &str,
        range: &Range<u32>,
    ) -> Result<Option<u32>, IndexError> {
        let (event_type, tag) = (event_type.as_bytes(), tag.as_bytes());
        let (types, tags) = (&self.types, &self.tags);
        let Some((event_type, of_type)) = self.look_up(types, Domain::Type, event_type)? else {
            return Ok(Some(0));
        };
        let Some((tag, of_tag)) = self.look_up(tags, Domain::Tag, tag)? else {
            return Ok(Some(0));
        };
        if of_type.count() <= PAIR_FLOOR || of_tag.count() <= PAIR_FLOOR {
            return Ok(None);
        }
        let pair = self.pairs.find(&*self.file, &pair_key(event_type, tag))?;
        pair.map_or(Ok(Some(0)), |(_, mut list)| self.count_list(&mut list, range).map(Some))
    }

    fn count_list(&self, list: &mut SealedList, range: &Range<u32>) -> Result<u32, IndexError> {
        let below = list.rank(&*self.file, range.end, self.len())?;
        Ok(below - list.rank(&*self.file, range.start, self.len())?)
    }

    fn text<'t>(&self, term: &'t [u8], part: Part) -> Result<&'t str, IndexError> {
        let offset = self.header.section(part).offset;
        std::str::from_utf8(term).map_err(|_| IndexError::Damaged { what: "text", offset })
    }

    /// Number of types and tags.
    pub(super) fn terms(&self) -> (u32, u32) {
        (self.types.terms(), self.tags.terms())
    }

    /// Approximate current memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let dictionaries = [&self.types, &self.tags, &self.pairs, &self.ids, &self.keys];
        size_of::<SealedIndex>()
            + self.filter.memory_bytes()
            + self.offsets.memory_bytes()
            + self.recent.memory_bytes()
            + dictionaries.iter().map(|dictionary| dictionary.memory_bytes()).sum::<usize>()
    }
}

impl Source for SealedIndex {
    type List = SealedList;
    type Term = SealedTerm;
    const LOAD_STEPS: u64 = 4;
    const TYPES_BY_COLUMN: bool = false;

    fn events(&self) -> u32 {
        self.len()
    }

    fn mark(&self, domain: Domain, text: &str) -> Result<Option<u64>, IndexError> {
        if let Some(hash) = self.recent.find(domain, text, |term| term.hash) {
            return Ok(Some(hash));
        }
        let filter = self.filter.open(&*self.file)?;
        let hash = filter.keyed().bytes(domain, text.as_bytes());
        Ok(filter.may_hold(hash)?.then_some(hash))
    }

    fn mark_of(&self, term: &SealedTerm) -> u64 {
        term.hash
    }

    fn may_meet(&self, event_type: u64, tag: u64) -> Result<bool, IndexError> {
        let filter = self.filter.open(&*self.file)?;
        filter.may_hold(filter.keyed().pair(event_type, tag))
    }

    fn load(
        &self,
        domain: Domain,
        text: &str,
        hash: u64,
    ) -> Result<Option<SealedTerm>, IndexError> {
        if let Some(term) = self.recent.find(domain, text, SealedTerm::clone) {
            return Ok(Some(term));
        }
        let dictionary = if domain == Domain::Type { &self.types } else { &self.tags };
        let found = dictionary.find(&*self.file, text.as_bytes())?;
        let found = found.map(|(number, list)| SealedTerm { number, hash, list });
        found.iter().for_each(|term| self.recent.keep(domain, text, term));
        Ok(found)
    }

    fn type_list(&self, term: &SealedTerm) -> Option<SealedList> {
        Some(term.list.clone())
    }

    fn tag_list(&self, term: &SealedTerm) -> Option<SealedList> {
        Some(term.list.clone())
    }

    fn narrow(
        &self,
        event_type: &SealedTerm,
        tag: &SealedTerm,
    ) -> Result<Narrowed<SealedList>, IndexError> {
        if event_type.list.count() <= PAIR_FLOOR || tag.list.count() <= PAIR_FLOOR {
            return Ok(Narrowed::NotKept(tag.list.clone()));
        }
        let pair = self.pairs.find(&*self.file, &pair_key(event_type.number, tag.number))?;
        Ok(pair.map_or(Narrowed::Empty, |(_, list)| Narrowed::Pair(list)))
    }

    fn tag_count(&self, tag: &SealedTerm) -> u32 {
        tag.list.count()
    }

    fn tag_pair(
        &self,
        one: &SealedTerm,
        other: &SealedTerm,
    ) -> Result<Option<TagPair<SealedList>>, IndexError> {
        // Zero in a file without pairs of tags.
        let mark = self.header.section(Part::Pairs).crc;
        let common = mark & !IN_FILTER;
        if common == 0 || one.list.count().min(other.list.count()) < common {
            return Ok(None);
        }
        let filter = self.filter.open(&*self.file)?;
        let find = |hash: u64, key: &[u8]| -> Result<Option<SealedList>, IndexError> {
            if mark & IN_FILTER != 0 && !filter.may_hold(hash)? {
                return Ok(None);
            }
            Ok(self.pairs.find(&*self.file, key)?.map(|(_, list)| list))
        };
        // Numbers are in byte order, as the writer used them.
        let (first, second) = if one.number < other.number { (one, other) } else { (other, one) };
        let keyed = filter.keyed();
        let list =
            find(keyed.pair(first.hash, second.hash), &tag_pair_key(one.number, other.number))?;
        if self.has_no_wide.get() == Some(&true) {
            return Ok(Some(TagPair { since: 0, list, wide: None }));
        }
        let wide = find(keyed.bytes(Domain::Tag, &WIDE_KEY), &WIDE_KEY)?;
        let _ = self.has_no_wide.set(wide.is_none());
        Ok(Some(TagPair { since: 0, list, wide }))
    }

    fn number(&self, term: &SealedTerm) -> u32 {
        term.number
    }

    fn type_at(&self, rel: u32, block: &mut ColumnBlock) -> Result<u32, IndexError> {
        let section = self.header.section(Part::TypeColumn);
        let width = column::type_width(self.types.terms());
        column::get(&*self.file, section, width, rel, block, "type column")
    }

    fn count(&self, list: &SealedList) -> u32 {
        list.count()
    }

    fn rank(&self, list: &mut SealedList, bound: u32) -> Result<u32, IndexError> {
        list.rank(&*self.file, bound, self.len())
    }

    fn element(&self, list: &mut SealedList, index: u32) -> Result<u32, IndexError> {
        list.get(&*self.file, index, self.len())
    }
}
