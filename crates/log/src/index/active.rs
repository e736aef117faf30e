//! The index of the segment being written, in memory.
//!
//! One writer appends; readers take no lock. A reader's queries are bounded by an `end` derived
//! from the log's watermark, which is moved (`Release`) after the events were pushed. Everything
//! below `end` is thus visible to it, and anything it sees beyond is cut off by `end`.
//!
//! Lists of (type, tag) pairs are kept only for tags with more than [`FEW`] events: most tags have
//! few, and those are checked against the type column instead. When a tag outgrows `FEW`, the lists
//! of its pairs are filled before the tag's new count is published.

use super::append_vec::AppendVec;
use super::hash::{Domain, Keyed, random_seed};
use super::lists::{Arena, ListView, Lists};
use super::matching::{ColumnBlock, Narrowed, Source};
use super::tag_pairs::{COMMON, TagPair, TagPairs};
use super::term_table::{Beginning, IdTable, PairTable, TermTable};
use super::{IndexError, TermKind, TermPage};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use wellspring_format::record::RecordView;

/// Maximum length of a tag's list without lists of pairs.
const FEW: u32 = 32;

/// The index of the active segment. Any thread can read it through an `Arc`.
#[derive(Debug)]
pub(crate) struct ActiveIndex {
    base: u64,
    pub(super) keyed: Keyed,
    pub(super) len: AtomicU32,
    offsets: AppendVec<AtomicU32>,
    type_column: AppendVec<AtomicU32>,
    pub(super) arena: Arena,
    pub(super) types: TermTable,
    pub(super) tags: TermTable,
    pub(super) pairs: PairTable,
    pub(super) tag_pairs: TagPairs,
    pub(super) ids: IdTable,
    pub(super) keys: TermTable,
}

/// The writer of an [`ActiveIndex`]: it exists once, cannot be cloned, and appending borrows it
/// mutably.
#[derive(Debug)]
pub(crate) struct ActiveWriter {
    pub(super) index: Arc<ActiveIndex>,
    /// Tags of the event being pushed; kept to reuse the allocation.
    own: Vec<u32>,
    /// The common tags among them.
    common: Vec<u32>,
    /// The type of the previous event and its number: events of one type often follow each other.
    last_type: (String, u32),
}

impl ActiveWriter {
    /// An empty index of the segment whose first event has position `base`.
    pub(crate) fn new(base: u64) -> ActiveWriter {
        ActiveWriter::with_seed(base, random_seed())
    }

    /// The same with a fixed hash seed, for reproducible simulations.
    pub(crate) fn with_seed(base: u64, seed: u64) -> ActiveWriter {
        ActiveWriter::with_common(base, seed, COMMON)
    }

    /// The same with a given threshold for common tags.
    pub(super) fn with_common(base: u64, seed: u64, common: u32) -> ActiveWriter {
        let index = ActiveIndex {
            base,
            keyed: Keyed::new(seed),
            len: AtomicU32::new(0),
            offsets: AppendVec::new(),
            type_column: AppendVec::new(),
            arena: Arena::new(),
            types: TermTable::new(Domain::Type),
            tags: TermTable::new(Domain::Tag),
            pairs: PairTable::new(),
            tag_pairs: TagPairs::new(common),
            ids: IdTable::new(),
            keys: TermTable::new(Domain::Key),
        };
        let last_type = (String::new(), 0);
        ActiveWriter { index: Arc::new(index), own: Vec::new(), common: Vec::new(), last_type }
    }

    /// The index for readers.
    pub(crate) fn index(&self) -> &Arc<ActiveIndex> {
        &self.index
    }

    /// Whether the index exceeds its memory limit, so that the next request belongs in another
    /// segment. A request that has begun may still be pushed completely.
    pub(crate) fn is_full(&self, bound_bytes: usize) -> bool {
        self.index.memory_bytes() > bound_bytes
    }

    /// Adds the next event, whose record is at `offset` in its segment.
    pub(crate) fn push(&mut self, offset: u32, record: &RecordView<'_>) {
        let index = &*self.index;
        let rel = index.len.load(Relaxed);
        let (last_type, number) = &mut self.last_type;
        // No type is empty, so the first event never matches.
        if last_type != record.event_type() {
            *number = index.types.intern(&index.keyed, record.event_type());
            record.event_type().clone_into(last_type);
        }
        let event_type = *number;
        index.offsets.set(rel, offset);
        index.type_column.set(rel, event_type);
        index.types.lists.push(&index.arena, event_type, rel);
        self.own.clear();
        self.common.clear();
        for tag in record.tags() {
            let tag = index.tags.intern(&index.keyed, tag);
            // Events with a repeated tag are refused on input; if a record has one anyway, it must
            // not enter a list twice.
            if self.own.contains(&tag) {
                continue;
            }
            self.own.push(tag);
            let count = index.tags.lists.count(tag);
            if count >= index.tag_pairs.common() {
                self.common.push(tag);
            }
            if count == FEW {
                index.make_up_pairs(tag);
            }
            if count >= FEW {
                index.push_pair(event_type, tag, rel);
            }
            index.tags.lists.push(&index.arena, tag, rel);
        }
        index.tag_pairs.push(&index.keyed, &index.arena, &self.common, rel);
        if let Some(id) = record.id() {
            index.ids.push(&index.keyed, &id.0, rel);
        }
        if let Some((key, _, _)) = record.request_key() {
            let key = index.keys.intern(&index.keyed, key);
            index.keys.lists.push(&index.arena, key, rel);
        }
        index.len.store(rel + 1, Release);
    }
}

impl ActiveIndex {
    fn make_up_pairs(&self, tag: u32) {
        let mut earlier = self.tags.lists.view(tag);
        for i in 0..earlier.count() {
            let rel = earlier.get(&self.arena, i);
            let event_type = self.type_column.get(rel);
            // After a cut the tag may outgrow `FEW` a second time (`cut.rs`): the pair's list then
            // already contains the earlier events.
            let pair = self.pairs.intern(&self.keyed, event_type, tag);
            if self.pairs.lists.last(&self.arena, pair).is_none_or(|last| last < rel) {
                self.pairs.lists.push(&self.arena, pair, rel);
            }
        }
    }

    fn push_pair(&self, event_type: u32, tag: u32, rel: u32) {
        let pair = self.pairs.intern(&self.keyed, event_type, tag);
        self.pairs.lists.push(&self.arena, pair, rel);
    }

    /// Position of the segment's first event.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Number of events inserted, regardless of the durable watermark.
    pub(crate) fn len(&self) -> u32 {
        self.len.load(Acquire)
    }

    /// The offset of an event in the segment.
    pub(crate) fn offset(&self, rel: u32) -> Result<u32, IndexError> {
        let len = self.len();
        if rel >= len {
            return Err(IndexError::NoSuchEvent { rel, len });
        }
        Ok(self.offsets.get(rel))
    }

    /// The newest event in range with this id.
    pub(crate) fn find_id(&self, id: &[u8; 16], range: Range<u32>) -> Option<u32> {
        self.ids.find(&self.keyed, id, range)
    }

    /// The newest event in range with this request key.
    pub(crate) fn find_key(&self, key: &str, range: Range<u32>) -> Option<u32> {
        let mut list = self.view(&self.keys.lists, self.keys.find(&self.keyed, key)?)?;
        let rank = list.rank(&self.arena, range.end);
        let newest = list.get(&self.arena, rank.checked_sub(1)?);
        (newest >= range.start).then_some(newest)
    }

    /// The first `limit` terms that begin with a prefix and are greater than `after`, with their
    /// counts below `end`, in byte order. Visits every term of the kind, but reads only seven bytes
    /// of most.
    pub(crate) fn terms(
        &self,
        kind: TermKind,
        page: &TermPage<'_>,
        end: u32,
    ) -> Vec<(String, u64)> {
        let &TermPage { prefix, after, until, limit } = page;
        let table = self.table(kind);
        let beginning = Beginning::new(prefix);
        // Limited to twice the limit, so that memory is bounded by the answer.
        let mut found: Vec<(String, u64)> = Vec::new();
        let mut worst = until.map(str::to_owned);
        let mut buffer = [0; 256];
        if limit == 0 {
            return found;
        }
        for id in (0..table.count()).filter(|&id| table.may_begin(id, beginning)) {
            let text = table.text(id, &mut buffer);
            let wanted = text.starts_with(prefix)
                && after.is_none_or(|after| text > after)
                && worst.as_deref().is_none_or(|worst| text <= worst);
            let count = if wanted { self.count_below(&table.lists, id, end) } else { 0 };
            if count == 0 {
                continue;
            }
            found.push((text.to_owned(), count.into()));
            if found.len() == limit.saturating_mul(2) {
                found.select_nth_unstable(limit - 1);
                found.truncate(limit);
                worst = Some(found[limit - 1].0.clone());
            }
        }
        found.sort_unstable();
        found.truncate(limit);
        found
    }

    fn table(&self, kind: TermKind) -> &TermTable {
        match kind {
            TermKind::Type => &self.types,
            TermKind::Tag => &self.tags,
        }
    }

    /// Number of elements of a list below `end`.
    fn count_below(&self, lists: &Lists, list: u32, end: u32) -> u32 {
        self.view(lists, list).map_or(0, |mut view| view.rank(&self.arena, end))
    }

    /// Number of events in range with a term.
    pub(super) fn count_term(&self, kind: TermKind, term: &str, range: &Range<u32>) -> u32 {
        let table = self.table(kind);
        let id = table.find(&self.keyed, term);
        id.map_or(0, |id| self.count_list(&table.lists, id, range))
    }

    /// Number of events in range with a type and a tag; `None` if that requires a walk.
    pub(super) fn count_pair(
        &self,
        event_type: &str,
        tag: &str,
        range: &Range<u32>,
    ) -> Option<u32> {
        let Some(event_type) = self.types.find(&self.keyed, event_type) else { return Some(0) };
        let Some(tag) = self.tags.find(&self.keyed, tag) else { return Some(0) };
        // The count is read before the pair is looked up, as in `narrow`.
        if self.tags.lists.count(tag) <= FEW {
            return None;
        }
        let pair = self.pairs.find(&self.keyed, event_type, tag);
        Some(pair.map_or(0, |pair| self.count_list(&self.pairs.lists, pair, range)))
    }

    fn count_list(&self, lists: &Lists, list: u32, range: &Range<u32>) -> u32 {
        self.view(lists, list).map_or(0, |mut view| {
            let below = view.rank(&self.arena, range.end);
            below - view.rank(&self.arena, range.start)
        })
    }

    /// Approximate memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.types.memory_bytes()
            + self.tags.memory_bytes()
            + self.keys.memory_bytes()
            + self.pairs.memory_bytes()
            + self.tag_pairs.memory_bytes()
            + self.ids.memory_bytes()
            + self.arena.memory_bytes()
            + self.len() as usize * 8
    }

    /// Number of types and tags.
    pub(super) fn term_counts(&self) -> (u32, u32) {
        (self.types.count(), self.tags.count())
    }

    /// The newest event with a type or tag, published or not.
    pub(super) fn newest_of(&self, domain: Domain, term: u32) -> Option<u32> {
        let table = if domain == Domain::Type { &self.types } else { &self.tags };
        let mut list = self.view(&table.lists, term)?;
        Some(list.get(&self.arena, list.count() - 1))
    }

    /// Passes the text of a type or tag to `f`.
    pub(super) fn with_text(&self, domain: Domain, term: u32, f: &mut dyn FnMut(&str)) {
        let table = if domain == Domain::Type { &self.types } else { &self.tags };
        f(table.text(term, &mut [0; 256]));
    }

    fn view(&self, lists: &Lists, list: u32) -> Option<ListView> {
        // A term of an event that is being pushed may have an empty list.
        Some(lists.view(list)).filter(|view| view.count() > 0)
    }

    pub(super) fn type_table(&self) -> &TermTable {
        &self.types
    }

    pub(super) fn tag_table(&self) -> &TermTable {
        &self.tags
    }

    pub(super) fn tag_pairs(&self) -> &TagPairs {
        &self.tag_pairs
    }

    pub(super) fn key_table(&self) -> &TermTable {
        &self.keys
    }

    pub(super) fn id_table(&self) -> &IdTable {
        &self.ids
    }

    /// All elements of a list below `end`.
    pub(super) fn elements(&self, lists: &Lists, list: u32, end: u32, out: &mut Vec<u32>) {
        lists.read(&self.arena, list, out);
        out.truncate(out.partition_point(|&rel| rel < end));
    }

    /// The number of an event's type, in order of first occurrence.
    pub(super) fn type_of(&self, rel: u32) -> u32 {
        self.type_column.get(rel)
    }
}

impl Source for ActiveIndex {
    type List = ListView;
    type Term = u32;
    const LOAD_STEPS: u64 = 1;
    const TYPES_BY_COLUMN: bool = true;

    fn events(&self) -> u32 {
        self.len()
    }

    fn mark(&self, domain: Domain, text: &str) -> Result<Option<u64>, IndexError> {
        let table = if domain == Domain::Type { &self.types } else { &self.tags };
        Ok(table.find(&self.keyed, text).map(u64::from))
    }

    fn mark_of(&self, term: &u32) -> u64 {
        u64::from(*term)
    }

    fn may_meet(&self, _: u64, _: u64) -> Result<bool, IndexError> {
        Ok(true)
    }

    fn load(&self, _: Domain, _: &str, mark: u64) -> Result<Option<u32>, IndexError> {
        Ok(Some(mark as u32))
    }

    fn type_list(&self, term: &u32) -> Option<ListView> {
        self.view(&self.types.lists, *term)
    }

    fn tag_list(&self, term: &u32) -> Option<ListView> {
        self.view(&self.tags.lists, *term)
    }

    fn narrow(&self, event_type: &u32, tag: &u32) -> Result<Narrowed<ListView>, IndexError> {
        let Some(list) = self.view(&self.tags.lists, *tag) else { return Ok(Narrowed::Empty) };
        if list.count() <= FEW {
            return Ok(Narrowed::NotKept(list));
        }
        // The count was read before the pair is looked up, and pairs are pushed before the count:
        // the pair's list contains everything that the count covers.
        let pair = self.pairs.find(&self.keyed, *event_type, *tag);
        let pair = pair.and_then(|pair| self.view(&self.pairs.lists, pair));
        Ok(pair.map_or(Narrowed::Empty, Narrowed::Pair))
    }

    fn tag_count(&self, tag: &u32) -> u32 {
        self.tags.lists.count(*tag)
    }

    fn tag_pair(&self, one: &u32, other: &u32) -> Result<Option<TagPair<ListView>>, IndexError> {
        let common = self.tag_pairs.common();
        let (Some(mut a), Some(mut b)) = (self.tag_list(one), self.tag_list(other)) else {
            return Ok(None);
        };
        if a.count() < common || b.count() < common {
            return Ok(None);
        }
        let reached = |list: &mut ListView| list.get(&self.arena, common - 1);
        let since = reached(&mut a).max(reached(&mut b)).saturating_add(1);
        // After the lists of the tags: everything a reader may see in those is also in the pair's
        // list.
        let list = self.tag_pairs.find(&self.keyed, *one, *other);
        Ok(Some(TagPair { since, list, wide: self.tag_pairs.wide() }))
    }

    fn number(&self, term: &u32) -> u32 {
        *term
    }

    fn type_at(&self, rel: u32, _: &mut ColumnBlock) -> Result<u32, IndexError> {
        Ok(self.type_column.get(rel))
    }

    fn count(&self, list: &ListView) -> u32 {
        list.count()
    }

    fn rank(&self, list: &mut ListView, bound: u32) -> Result<u32, IndexError> {
        Ok(list.rank(&self.arena, bound))
    }

    fn element(&self, list: &mut ListView, index: u32) -> Result<u32, IndexError> {
        Ok(list.get(&self.arena, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::CompiledQuery;
    use crate::work::Work;
    use wellspring_format::record::EncodedEvents;
    use wellspring_types::{Event, Query};

    #[test]
    fn a_record_with_a_tag_twice_is_counted_once() {
        let mut encoded = EncodedEvents::new();
        encoded.push(&Event::json("T", &["tag:a", "tag:b"], "1").as_ref()).unwrap();
        let mut bytes = encoded.bytes().to_vec();
        let at = bytes.windows(5).position(|text| text == b"tag:b").unwrap();
        bytes[at + 4] = b'a';
        let record = RecordView::parse(&bytes).unwrap();
        let mut writer = ActiveWriter::new(1);
        (0..40).for_each(|offset| writer.push(offset, &record));
        let index = writer.index();
        assert_eq!(index.terms(TermKind::Tag, &TermPage::ALL, 40), [("tag:a".to_owned(), 40)]);
        let query = CompiledQuery::shared(&Query::item(&["T"], &["tag:a"]));
        let index = super::super::SegmentIndex::Active(index.clone());
        let found = index.newest(&query, 0..37, &mut Work::unbounded()).unwrap();
        assert_eq!(found, Some((36, 0)));
    }
}
