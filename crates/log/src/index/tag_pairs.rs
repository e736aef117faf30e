//! Lists of the events with two common tags, so that two common tags that rarely or never occur
//! together are not intersected event by event.
//!
//! In the active index an event enters the list of a pair if both tags had at least [`COMMON`]
//! events before it. For two tags that have that many now, let `since` be the event after the one
//! with which the later of the two reached that number: from `since` on the list of the pair is
//! complete, and before it one of the two tags has at most `COMMON` events, which bounds plain
//! intersection. Earlier events are not added later, and nothing else is stored. A sealed index is
//! written with full knowledge, so its lists are complete from the first event on
//! ([`SealedTagPairs`]).
//!
//! An event with more than [`MOST`] such tags enters no list of a pair, because the number of pairs
//! grows quadratically. It enters the list of *wide* events, which intersections also use.

use super::IndexError;
use super::file::ReadAt;
use super::hash::Keyed;
use super::lists::{Arena, ListView, Lists};
use super::sealed_list::SealedList;
use super::term_table::PairTable;

/// Number of events from which a tag is common.
pub(super) const COMMON: u32 = 128;
/// Maximum number of common tags of an event that enters lists of pairs: 15 pairs.
const MOST: usize = 6;
/// In the dictionary of pairs, this bit distinguishes a second tag from a type.
const TAG_BIT: u32 = 1 << 31;
/// The number of the list of wide events.
const WIDE: u32 = 0;

/// The data kept for two common tags.
#[derive(Debug)]
pub(super) struct TagPair<L> {
    /// From this event on the list is complete.
    pub(super) since: u32,
    /// The events with both tags; `None` if there are none.
    pub(super) list: Option<L>,
    /// Events with so many common tags that they are in no list of a pair; `None` if there are
    /// none.
    pub(super) wide: Option<L>,
}

/// The lists of the active index.
#[derive(Debug)]
pub(super) struct TagPairs {
    common: u32,
    pairs: PairTable,
    wide: Lists,
}

impl TagPairs {
    /// No lists yet. Tags are common from `common` events on.
    pub(super) fn new(common: u32) -> TagPairs {
        assert!(common > 0, "a tag that has not occurred is not common");
        let wide = Lists::new();
        wide.begin(WIDE, 0);
        TagPairs { common, pairs: PairTable::new(), wide }
    }

    /// The threshold for common tags.
    pub(super) fn common(&self) -> u32 {
        self.common
    }

    /// Adds an event. `common` are its tags that had enough events before it. Only the writer may
    /// call this, before the event is published.
    pub(super) fn push(&self, keyed: &Keyed, arena: &Arena, common: &[u32], rel: u32) {
        if common.len() > MOST {
            self.wide.push(arena, WIDE, rel);
            return;
        }
        for (i, &one) in common.iter().enumerate() {
            for &other in &common[i + 1..] {
                let pair = self.pairs.intern(keyed, one.min(other), one.max(other));
                self.pairs.lists.push(arena, pair, rel);
            }
        }
    }

    /// Takes back the events from `rel` on with these tags, common or not.
    pub(super) fn cut(&self, keyed: &Keyed, arena: &Arena, tags: &[u32], rel: u32) {
        self.wide.cut(arena, WIDE, rel);
        if self.pairs.is_empty() {
            return;
        }
        for (i, &one) in tags.iter().enumerate() {
            for &other in &tags[i + 1..] {
                if let Some(pair) = self.pairs.find(keyed, one.min(other), one.max(other)) {
                    self.pairs.lists.cut(arena, pair, rel);
                }
            }
        }
    }

    /// The list of two tags; `None` if they have never occurred together as common tags.
    pub(super) fn find(&self, keyed: &Keyed, one: u32, other: u32) -> Option<ListView> {
        let pair = self.pairs.find(keyed, one.min(other), one.max(other))?;
        Some(self.pairs.lists.view(pair)).filter(|list| list.count() > 0)
    }

    /// The wide events; `None` if there are none.
    pub(super) fn wide(&self) -> Option<ListView> {
        Some(self.wide.view(WIDE)).filter(|list| list.count() > 0)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.pairs.memory_bytes()
    }
}

/// The key of a pair of tags in a sealed index's dictionary of pairs.
pub(super) fn tag_pair_key(one: u32, other: u32) -> [u8; 8] {
    let (first, second) = (one.min(other), one.max(other) | TAG_BIT);
    (u64::from(first) << 32 | u64::from(second)).to_be_bytes()
}

/// The key of the wide events, which sorts after every pair.
pub(super) const WIDE_KEY: [u8; 8] = [0xff; 8];

/// Set together with the threshold for common tags: the filter contains every pair of common tags
/// and whether there are wide events, so that absent ones need no dictionary access.
pub(super) const IN_FILTER: u32 = 1 << 31;

/// A common tag of an index about to be written.
#[derive(Debug)]
pub(super) struct CommonTag {
    /// Its rank among all tags in byte order.
    pub(super) number: u32,
    /// Its hash in the filter.
    pub(super) hash: u64,
    /// In the postings.
    pub(super) list: SealedList,
}

/// The common tags of each event of an index about to be written.
#[derive(Debug)]
pub(super) struct SealedTagPairs {
    common: Vec<CommonTag>,
    /// Start of each event's tags in `tags`, and the end of the last event's.
    starts: Vec<u32>,
    /// Indexes into `common`, ascending within an event.
    tags: Vec<u32>,
    /// The pairs of the tag being written: the other tag and the event.
    met: Vec<(u32, u32)>,
    values: Vec<u32>,
}

impl SealedTagPairs {
    /// Finds the common tags of every event. `common` are all common tags, in order. `None` if
    /// there are fewer than two.
    pub(super) fn of(
        mut common: Vec<CommonTag>,
        postings: &dyn ReadAt,
        events: u32,
    ) -> Result<Option<SealedTagPairs>, IndexError> {
        if common.len() < 2 {
            return Ok(None);
        }
        let mut values = Vec::new();
        let mut starts = vec![0u32; events as usize + 1];
        for tag in &mut common {
            values.clear();
            tag.list.read_all(postings, events, 0, &mut values)?;
            values.iter().for_each(|&rel| starts[rel as usize + 1] += 1);
        }
        for rel in 0..events as usize {
            starts[rel + 1] += starts[rel];
        }
        let mut tags = vec![0u32; starts[events as usize] as usize];
        // Each start advances to the end of its event's tags, which is the start of the next.
        for (place, tag) in (0..).zip(&mut common) {
            values.clear();
            tag.list.read_all(postings, events, 0, &mut values)?;
            for &rel in &values {
                let end = &mut starts[rel as usize];
                tags[*end as usize] = place;
                *end += 1;
            }
        }
        starts.rotate_right(1);
        starts[0] = 0;
        Ok(Some(SealedTagPairs { common, starts, tags, met: Vec::new(), values }))
    }

    /// The common tags of an event.
    fn tags_of(&self, rel: u32) -> &[u32] {
        &self.tags[self.starts[rel as usize] as usize..self.starts[rel as usize + 1] as usize]
    }

    /// Iterates over the common tags that occur together with a common tag of these events and
    /// follow it in byte order: `met_with` gets the key of the pair, its events and the hash of the
    /// other tag.
    pub(super) fn each_pair(
        &mut self,
        tag: u32,
        rels: &[u32],
        mut met_with: impl FnMut(&[u8], &[u32], u64) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let Ok(place) = self.common.binary_search_by_key(&tag, |common| common.number) else {
            return Ok(());
        };
        let place = place as u32;
        let mut met = std::mem::take(&mut self.met);
        met.clear();
        for &rel in rels {
            let tags = self.tags_of(rel);
            if tags.len() <= MOST {
                met.extend(tags.iter().filter(|&&other| other > place).map(|&other| (other, rel)));
            }
        }
        met.sort_unstable();
        for group in met.chunk_by(|a, b| a.0 == b.0) {
            let other = &self.common[group[0].0 as usize];
            self.values.clear();
            self.values.extend(group.iter().map(|&(_, rel)| rel));
            met_with(&tag_pair_key(tag, other.number), &self.values, other.hash)?;
        }
        self.met = met;
        Ok(())
    }

    /// The wide events, under [`WIDE_KEY`], after all pairs.
    pub(super) fn wide(&self) -> Vec<u32> {
        let events = self.starts.len() as u32 - 1;
        (0..events).filter(|&rel| self.tags_of(rel).len() > MOST).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::active::ActiveWriter;
    use super::super::oracle_tests::with_record;
    use super::super::oracle_tests::{Dice, EXTENT, Model, both, check, events, newest};
    use super::super::{SealedIndex, SegmentExtent, SegmentIndex, sealed_writer::sealed_image};
    use super::*;
    use crate::query::CompiledQuery;
    use crate::work::Work;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use wellspring_types::{Event, Query};

    const EVENTS: u32 = 20_000;

    /// Both forms of the index of a segment in which event `rel` has these tags.
    fn indexes(tags: impl Fn(u32) -> Vec<String>) -> [SegmentIndex; 2] {
        let mut writer = ActiveWriter::new(1);
        for rel in 0..EVENTS {
            let event = Event { tags: tags(rel), ..Event::json("T", &[], "1") };
            with_record(&Model { event, key: None }, |record| writer.push(rel, record));
        }
        let active = Arc::clone(writer.index());
        let sealed = SealedIndex::open(Arc::new(sealed_image(
            &active,
            &[SegmentExtent { base: 1, ..EXTENT }],
            5,
        )))
        .unwrap();
        [SegmentIndex::Active(active), SegmentIndex::Sealed(Arc::new(sealed))]
    }

    /// What is found for two tags, and the steps that the search for the newest took.
    fn two(index: &SegmentIndex, one: &str, other: &str) -> (Option<u32>, u64) {
        let query = CompiledQuery::shared(&Query::item(&[], &[one, other]));
        let mut work = Work::unbounded();
        let found = index.newest(&query, 0..EVENTS, &mut work).unwrap();
        (found.map(|(rel, _)| rel), work.steps())
    }

    #[test]
    fn two_common_tags_that_never_meet_take_few_steps() {
        for index in indexes(|rel| vec![format!("common:{}", rel % 2)]) {
            let (found, steps) = two(&index, "common:0", "common:1");
            assert_eq!(found, None);
            assert!(steps < 4 * u64::from(COMMON), "{steps} steps");
        }
    }

    #[test]
    fn two_common_tags_that_met_once_take_few_steps_wherever_that_was() {
        for met in [3, 100, 1_000, 19_000] {
            let tags = |rel| match rel {
                _ if rel == met => vec!["common:0".to_owned(), "common:1".to_owned()],
                _ => vec![format!("common:{}", rel % 2), format!("unique:{rel}")],
            };
            for index in indexes(tags) {
                let (found, steps) = two(&index, "common:1", "common:0");
                assert_eq!(found, Some(met));
                assert!(steps < 4 * u64::from(COMMON), "{steps} steps");
            }
        }
    }

    #[test]
    fn events_with_many_common_tags_are_found_among_others() {
        let mut dice = Dice(9);
        for round in 0..30 {
            let mut models = events(&mut dice, 60 * round, 3, 9);
            for model in &mut models {
                let more = if dice.below(3) == 0 { 9 } else { dice.below(3) };
                let tags = &mut model.event.tags;
                tags.extend((0..more).map(|n| format!("t:{n}")));
                tags.sort();
                tags.dedup();
            }
            for index in both(&models) {
                for _ in 0..20 {
                    check(&index, &models, &mut dice, 3, 9);
                }
            }
        }
    }

    /// A file that counts what is read of it.
    #[derive(Debug)]
    struct CountedFile {
        bytes: Vec<u8>,
        reads: Arc<AtomicUsize>,
    }

    impl ReadAt for CountedFile {
        fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<()> {
            self.reads.fetch_add(1, Relaxed);
            self.bytes.read_exact_at(buf, offset)
        }

        fn len(&self) -> std::io::Result<u64> {
            ReadAt::len(&self.bytes)
        }
    }

    #[test]
    fn common_tags_are_read_from_a_sealed_index_once() {
        let mut writer = ActiveWriter::new(1);
        for rel in 0..EVENTS {
            let tags = [format!("common:{}", rel % 4), format!("unique:{rel}")];
            let event = Event { tags: tags.into(), ..Event::json("T", &[], "1") };
            with_record(&Model { event, key: None }, |record| writer.push(rel, record));
        }
        let extents = [SegmentExtent { base: 1, ..EXTENT }];
        let reads = Arc::new(AtomicUsize::new(0));
        let bytes = sealed_image(writer.index(), &extents, 5);
        let file = CountedFile { bytes, reads: Arc::clone(&reads) };
        let index = SegmentIndex::Sealed(Arc::new(SealedIndex::open(Arc::new(file)).unwrap()));
        let asked = |one: &str, other: &str| {
            let before = reads.load(Relaxed);
            assert_eq!(two(&index, one, other).0, None);
            reads.load(Relaxed) - before
        };
        assert!(asked("common:0", "common:1") > 1);
        // A block of the filter, if that is not in memory.
        assert!(asked("common:0", "common:1") <= 1);
        asked("common:2", "common:3");
        assert!(asked("common:3", "common:0") <= 1);
        // Tags with one event are not kept, and nothing else changes.
        for rel in (1..200).step_by(4) {
            asked("common:0", &format!("unique:{rel}"));
        }
    }

    #[test]
    fn wide_events_stand_in_one_list() {
        for index in indexes(|rel| {
            let count = if rel % 100 == 0 { 9 } else { 1 };
            (0..count).map(|n| format!("common:{}", (rel / 7 + n) % 9)).collect()
        }) {
            let query = Query::item(&["T"], &["common:3", "common:7"]);
            assert_eq!(newest(&index, &query, 0..EVENTS), Some((EVENTS - 100, 0)));
        }
    }
}
