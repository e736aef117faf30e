//! Removes discarded events: the newest events of an active index are taken back, in time
//! proportional to their terms, while readers continue without a lock.
//!
//! Lists ascend, so a cut removes the end of each list that contains one of its events. Why readers
//! are unaffected:
//!
//! - A reader queries below `end`, which it derived from the durable watermark, and a cut removes
//!   only events above it. In every list the elements below `end` keep their index and their cell.
//! - Later pushes overwrite the cells above, always with numbers at or above the cut. A reader that
//!   holds the list's former head may find old and new numbers mixed there, all at or above `end`:
//!   a search for a bound up to `end` ends in the same place.
//! - A chunk emptied by a cut is never reused. Another list could put numbers below `end` into it
//!   ([`ActiveWriter::push`] fills in the pairs of earlier events), and a reader with the former
//!   head would find them. The space is lost until the segment is sealed; it counts as memory of
//!   the index, so a segment that was cut too often ends early.
//! - A tag's count may shrink to [`FEW`](super::active::FEW) or below while a reader already relies
//!   on its lists of pairs. They stay and are cut like any list, so below `end` they are complete.
//!   When the tag outgrows `FEW` again, only the missing elements are added.
//! - Likewise a tag's count may shrink below the threshold for common tags: the lists of its pairs
//!   are cut as well, and their rule refers to earlier events, which do not change.
//! - Whether a list is empty, or a text has a list at all, may change during a read, but not for
//!   events below `end`.
//! - The judge also reads staged events, without a lock and beyond the watermark. Its result during
//!   a cut is arbitrary, but void: the setback count has changed when the judge takes the staging
//!   lock (`sequencer/stage.rs`). It remains safe: chunk headers are written once, every number in
//!   a cell has been an event's, and a search in a list that is not ascending still terminates.

use super::active::ActiveWriter;
use std::sync::atomic::Ordering::{Relaxed, Release};
use wellspring_format::record::RecordView;

impl ActiveWriter {
    /// Takes back the events from `rel` on. `dropped` are their records, in any order; their
    /// positions and times are ignored.
    pub(crate) fn cut<'r>(&mut self, rel: u32, dropped: impl Iterator<Item = RecordView<'r>>) {
        let index = &*self.index;
        let events = index.len.load(Relaxed);
        assert!(rel <= events, "a cut at event {rel} of {events}");
        index.len.store(rel, Release);
        let mut records = 0;
        let mut tags = Vec::new();
        for record in dropped {
            records += 1;
            let event_type = index.types.find(&index.keyed, record.event_type());
            let event_type = event_type.expect("the type of an event that was pushed");
            index.types.lists.cut(&index.arena, event_type, rel);
            tags.clear();
            for tag in record.tags() {
                let tag = index.tags.find(&index.keyed, tag);
                let tag = tag.expect("a tag of an event that was pushed");
                index.tags.lists.cut(&index.arena, tag, rel);
                if let Some(pair) = index.pairs.find(&index.keyed, event_type, tag) {
                    index.pairs.lists.cut(&index.arena, pair, rel);
                }
                tags.push(tag);
            }
            index.tag_pairs.cut(&index.keyed, &index.arena, &tags, rel);
            if let Some(id) = record.id() {
                index.ids.blank(&index.keyed, &id.0, rel);
            }
            if let Some((key, _, _)) = record.request_key()
                && let Some(key) = index.keys.find(&index.keyed, key)
            {
                index.keys.lists.cut(&index.arena, key, rel);
            }
        }
        assert_eq!(events - rel, records, "a cut is given the records of the events it takes back");
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle_tests::{
        COMMON, Dice, EXTENT, Model, check, check_counts, check_names, drain, events, item,
        matching, newest, offset_of, with_record,
    };
    use super::super::{SealedIndex, SegmentIndex, sealed_writer::sealed_image};
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use wellspring_format::record::{EncodedEvents, RequestKey};
    use wellspring_types::Query;

    fn encoded(model: &Model) -> EncodedEvents {
        let mut encoded = EncodedEvents::new();
        encoded.push(&model.event.as_ref()).unwrap();
        if let Some(key) = &model.key {
            encoded.attach_key(&RequestKey { key: key.clone(), digest: [1; 16] });
        }
        encoded
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
        /// Whatever has been pushed and taken back, the index answers as if only the remaining
        /// events had ever been pushed, in memory and sealed.
        #[test]
        fn an_index_that_was_cut_answers_like_a_fresh_one(
            seed in any::<u64>(),
            steps in prop::collection::vec((0u32..120, 0u32..150), 1..8),
        ) {
            let mut dice = Dice(seed);
            let (types, tags) = (1 + dice.below(5), 1 + dice.below(6));
            let mut writer = ActiveWriter::with_common(100, 77, COMMON);
            let mut live: Vec<Model> = Vec::new();
            for (push, cut) in steps {
                for model in events(&mut dice, push as usize, types, tags) {
                    let offset = offset_of(live.len());
                    with_record(&model, |record| writer.push(offset, record));
                    live.push(model);
                }
                let rel = live.len().saturating_sub(cut as usize);
                let dropped: Vec<_> = live.drain(rel..).map(|model| encoded(&model)).collect();
                writer.cut(rel as u32, dropped.iter().flat_map(EncodedEvents::iter));
            }
            let active = writer.index().clone();
            let image = sealed_image(&active, &[EXTENT], 5);
            let sealed = SealedIndex::open(Arc::new(image)).unwrap();
            for index in [SegmentIndex::Active(active), SegmentIndex::Sealed(Arc::new(sealed))] {
                for _ in 0..6 {
                    check(&index, &live, &mut dice, types, tags);
                    check_names(&index, &live, &mut dice);
                }
                check_counts(&index, &live, &mut dice);
            }
        }
    }

    /// Tags and pairs repeatedly cross `FEW` in both directions here.
    #[test]
    fn readers_below_the_watermark_do_not_notice_cuts() {
        let models = events(&mut Dice(5), 3_000, 3, 8);
        let mut writer = ActiveWriter::with_common(100, 77, COMMON);
        let index = SegmentIndex::Active(writer.index().clone());
        let (watermark, done) = (AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for reader in 0..2u64 {
                let (index, models, watermark, done) = (&index, &models, &watermark, &done);
                scope.spawn(move || {
                    let mut dice = Dice(reader);
                    while !done.load(Ordering::Acquire) {
                        let end = watermark.load(Ordering::Acquire);
                        let visible = &models[..end as usize];
                        let item = item(&mut dice, visible, 3, 8);
                        let query = Query { items: vec![item] };
                        let wanted = matching(visible, &query, &(0..end));
                        let last = wanted.last().map(|&rel| (rel, 0));
                        assert_eq!(newest(index, &query, 0..end), last);
                        assert_eq!(drain(index, &query, 0..end, false, 50), wanted);
                        // Beyond the watermark the result is arbitrary, but the search must end.
                        let _ = newest(index, &query, 0..end + 300);
                    }
                });
            }
            let mut dice = Dice(77);
            let mut durable = 0;
            while durable < models.len() {
                // Events that are staged and taken back differ from those finally stored at their
                // positions.
                let count = dice.below(200) as usize;
                let other = events(&mut dice, count, 3, 8);
                for (i, model) in other.iter().enumerate() {
                    with_record(model, |r| writer.push(offset_of(durable + i), r));
                }
                let records: Vec<_> = other.iter().map(encoded).collect();
                writer.cut(durable as u32, records.iter().flat_map(EncodedEvents::iter));
                let next = (durable + 1 + dice.below(60) as usize).min(models.len());
                for (rel, model) in models.iter().enumerate().take(next).skip(durable) {
                    with_record(model, |r| writer.push(offset_of(rel), r));
                }
                durable = next;
                watermark.store(durable as u32, Ordering::Release);
                std::thread::yield_now();
            }
            done.store(true, Ordering::Release);
        });
    }
}
