//! Both forms of the index compared with the definition: `QueryItem::matches` over every event.

use super::sealed_writer::sealed_image;
use super::*;
use crate::work::{Stopped, Work};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use wellspring_format::record::{EncodedEvents, RecordView, RequestKey};
use wellspring_types::{Event, EventId, Query, QueryItem};

/// A small generator: proptest's own would be slow for hundreds of events per case.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Small numbers far more often than large ones.
    fn skewed(&mut self, n: u64) -> u64 {
        let most = self.below(n) + 1;
        self.below(most).min(self.below(n))
    }
}

/// The contents of an event.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) event: Event,
    pub(super) key: Option<String>,
}

pub(super) fn events(dice: &mut Dice, count: usize, types: u64, tags: u64) -> Vec<Model> {
    (0..count)
        .map(|i| {
            let mut own = Vec::new();
            for _ in 0..dice.below(5) {
                let tag = match dice.below(8) {
                    0 => format!("unique:{i}:{}", "é".repeat(dice.below(90) as usize)),
                    _ => format!("t:{}", dice.skewed(tags)),
                };
                if !own.contains(&tag) {
                    own.push(tag);
                }
            }
            let id = (dice.below(3) > 0).then(|| EventId([dice.skewed(40) as u8; 16]));
            let key = (dice.below(4) == 0).then(|| format!("key {}", dice.below(30)));
            let event_type = format!("T{}", dice.skewed(types));
            Model { event: Event { tags: own, id, ..Event::json(&event_type, &[], "1") }, key }
        })
        .collect()
}

pub(super) fn with_record(model: &Model, f: impl FnOnce(&RecordView<'_>)) {
    let mut encoded = EncodedEvents::new();
    encoded.push(&model.event.as_ref()).unwrap();
    if let Some(key) = &model.key {
        encoded.attach_key(&RequestKey { key: key.clone(), digest: [1; 16] });
    }
    f(&encoded.iter().next().unwrap());
}

pub(super) fn offset_of(rel: usize) -> u32 {
    (rel as u32).wrapping_mul(0x0101_0107)
}

/// Threshold for common tags here: low, so that small cases have pairs of tags.
pub(super) const COMMON: u32 = 5;

pub(super) fn active(models: &[Model]) -> Arc<ActiveIndex> {
    active_from(100, models, 0)
}

/// The index of a segment that begins at `base`; its first event is preceded by `skipped` others.
pub(super) fn active_from(base: u64, models: &[Model], skipped: usize) -> Arc<ActiveIndex> {
    filled(ActiveWriter::with_common(base, 77, COMMON), models, skipped)
}

/// As version 1 and the first files of version 2 were written.
fn without_tag_pairs(models: &[Model]) -> Arc<ActiveIndex> {
    filled(ActiveWriter::with_common(100, 77, u32::MAX), models, 0)
}

fn filled(mut writer: ActiveWriter, models: &[Model], skipped: usize) -> Arc<ActiveIndex> {
    for (rel, model) in models.iter().enumerate() {
        with_record(model, |record| writer.push(offset_of(skipped + rel), record));
    }
    writer.index().clone()
}

/// The segment of these indexes.
pub(super) const EXTENT: SegmentExtent = SegmentExtent { base: 100, end: 4711, salt: 0 };

pub(super) fn both(models: &[Model]) -> [SegmentIndex; 2] {
    let active = active(models);
    let image = sealed_image(&active, &[EXTENT], 5);
    let sealed = SealedIndex::open(Arc::new(image)).unwrap();
    [SegmentIndex::Active(active), SegmentIndex::Sealed(Arc::new(sealed))]
}

pub(super) fn item(dice: &mut Dice, models: &[Model], types: u64, tags: u64) -> QueryItem {
    let mut item = QueryItem::default();
    let type_count = [0, 1, 1, 2, 3, 12][dice.below(6) as usize];
    for _ in 0..type_count {
        item.types.push(format!("T{}", dice.below(types + 1)));
    }
    let mut wanted: Vec<String> =
        (0..dice.below(4)).map(|_| format!("t:{}", dice.below(tags + 1))).collect();
    if dice.below(4) == 0 && !models.is_empty() {
        let some = &models[dice.below(models.len() as u64) as usize];
        wanted = some.event.tags.clone();
    }
    wanted.sort();
    wanted.dedup();
    item.tags = wanted;
    item
}

fn range(dice: &mut Dice, len: usize) -> Range<u32> {
    let edge = |dice: &mut Dice| match dice.below(5) {
        0 => 0,
        1 => len as u32,
        2 => len as u32 + dice.below(3) as u32,
        _ => dice.below(len as u64 + 1) as u32,
    };
    edge(dice)..edge(dice)
}

pub(super) fn matching(models: &[Model], query: &Query, range: &Range<u32>) -> Vec<u32> {
    let rels = (0u32..).zip(models).filter(|(rel, model)| {
        let tags = model.event.tags.iter().map(String::as_str);
        range.contains(rel) && query.matching_item(&model.event.event_type, tags).is_some()
    });
    rels.map(|(rel, _)| rel).collect()
}

pub(super) fn drain(
    index: &SegmentIndex,
    query: &Query,
    range: Range<u32>,
    down: bool,
    max: usize,
) -> Vec<u32> {
    let steps = [250, 400, 1000, u64::MAX][(range.start as usize + max) % 4];
    let mut cursor = index.cursor(&CompiledQuery::shared(query), range, down);
    let mut out = Vec::new();
    loop {
        let before = out.len();
        // A few steps at a time, like a reader that serves others in between.
        let mut work = Work::unbounded().with_step_limit(steps);
        let more = loop {
            match cursor.next_chunk(&mut out, max, &mut work) {
                Ok(more) => break more,
                Err(IndexError::Stopped(Stopped::Steps)) => {
                    assert!(work.steps() > steps && out.len() == before);
                    work = Work::unbounded().with_step_limit(steps);
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert!(out.len() - before <= max);
        if !more {
            return out;
        }
        assert!(out.len() > before, "a chunk without progress");
    }
}

pub(super) fn newest(
    index: &SegmentIndex,
    query: &Query,
    range: Range<u32>,
) -> Option<(u32, usize)> {
    index.newest(&CompiledQuery::new(query), range, &mut Work::unbounded()).unwrap()
}

pub(super) fn check_counts(index: &SegmentIndex, models: &[Model], dice: &mut Dice) {
    let end = range(dice, models.len()).end;
    let (mut types, mut tags) = (BTreeMap::new(), BTreeMap::new());
    for model in models.iter().take(end as usize) {
        *types.entry(model.event.event_type.clone()).or_insert(0u64) += 1;
        for tag in &model.event.tags {
            *tags.entry(tag.clone()).or_insert(0u64) += 1;
        }
    }
    assert_eq!(index.types(end).unwrap(), types.into_iter().collect::<Vec<_>>());

    let prefix = ["", "t:", "t:1", "unique:", "u", "x"][dice.below(6) as usize];
    let after =
        [None, Some("t:0"), Some("t:11"), Some("unique:1"), Some("a")][dice.below(5) as usize];
    let limit = [0, 1, 3, 10, usize::MAX][dice.below(5) as usize];
    let wanted: Vec<_> = tags
        .into_iter()
        .filter(|(tag, _)| {
            tag.starts_with(prefix) && after.is_none_or(|after| tag.as_str() > after)
        })
        .take(limit)
        .collect();
    let until = [None, Some("t:2"), Some("u")][dice.below(3) as usize];
    let wanted: Vec<_> = wanted
        .into_iter()
        .filter(|(tag, _)| until.is_none_or(|until| tag.as_str() <= until))
        .collect();
    let page = TermPage { prefix, after, until, limit };
    assert_eq!(index.page(TermKind::Tag, &page, end).unwrap(), wanted);
}

pub(super) fn check_names(index: &SegmentIndex, models: &[Model], dice: &mut Dice) {
    let range = range(dice, models.len());
    let newest = |is_it: &dyn Fn(&Model) -> bool| {
        let found = (0u32..).zip(models).filter(|(rel, model)| range.contains(rel) && is_it(model));
        found.map(|(rel, _)| rel).last()
    };
    let id = EventId([dice.below(42) as u8; 16]);
    assert_eq!(index.find_id(&id.0, range.clone()).unwrap(), newest(&|m| m.event.id == Some(id)));
    let key = format!("key {}", dice.below(32));
    let wanted = newest(&|m| m.key.as_ref() == Some(&key));
    assert_eq!(index.find_key(&key, range.clone()).unwrap(), wanted);
}

pub(super) fn check(
    index: &SegmentIndex,
    models: &[Model],
    dice: &mut Dice,
    types: u64,
    tags: u64,
) {
    let range = range(dice, models.len());
    let item = item(dice, models, types, tags);
    let one = Query { items: vec![item.clone()] };
    let wanted = matching(models, &one, &range);
    assert_eq!(
        newest(index, &one, range.clone()),
        wanted.last().map(|&rel| (rel, 0)),
        "{item:?} {range:?}"
    );
    let query = match dice.below(4) {
        0 => one,
        _ => Query {
            items: (0..dice.below(4)).map(|_| self::item(dice, models, types, tags)).collect(),
        },
    };
    let mut wanted = matching(models, &query, &range);
    let last = wanted.last().map(|&rel| {
        let event = &models[rel as usize].event;
        let tags = event.tags.iter().map(String::as_str);
        (rel, query.matching_item(&event.event_type, tags).unwrap())
    });
    assert_eq!(newest(index, &query, range.clone()), last, "{query:?} {range:?}");
    let max = [1, 2, 7, 100, 10_000][dice.below(5) as usize];
    assert_eq!(drain(index, &query, range.clone(), false, max), wanted, "{query:?} {range:?}");
    wanted.reverse();
    assert_eq!(drain(index, &query, range.clone(), true, max), wanted, "{query:?} {range:?}");
    let mut count = {
        let compiled = || CompiledQuery::shared(&query);
        SegmentCount::begin(index, &query, compiled, range.clone()).unwrap()
    };
    let counted = loop {
        if let Some(counted) = count.step(&mut Work::unbounded()).unwrap() {
            break counted;
        }
    };
    assert_eq!(counted, wanted.len() as u64, "{query:?} {range:?}");
    let mut offsets = Vec::new();
    index.offsets(&wanted, &mut offsets).unwrap();
    let first = index.base() as usize - 100;
    let offset = |rel: u32| offset_of(first + rel as usize);
    assert!(wanted.iter().zip(&offsets).all(|(&rel, &at)| at == offset(rel)));
    assert_eq!(offsets.len(), wanted.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn both_forms_answer_as_the_definition_does(
        seed in any::<u64>(), count in 0usize..500, shape in 0usize..4,
    ) {
        let (types, tags) = [(1, 2), (4, 8), (9, 40), (300, 300)][shape];
        let mut dice = Dice(seed);
        let models = events(&mut dice, count, types, tags);
        for index in both(&models) {
            prop_assert_eq!((index.base(), index.len() as usize), (100, count));
            prop_assert!(index.offset(count as u32).is_err());
            for _ in 0..12 {
                check(&index, &models, &mut dice, types, tags);
                check_names(&index, &models, &mut dice);
            }
            check_counts(&index, &models, &mut dice);
        }
    }
}

#[test]
fn long_lists_answer_as_the_definition_does() {
    let mut dice = Dice(3);
    let models = events(&mut dice, 20_000, 3, 5);
    for index in both(&models) {
        for _ in 0..100 {
            check(&index, &models, &mut dice, 3, 5);
            check_counts(&index, &models, &mut dice);
        }
    }
}

#[test]
fn readers_below_the_watermark_see_a_prefix_while_the_writer_writes() {
    let models = events(&mut Dice(11), 6_000, 5, 30);
    let mut writer = ActiveWriter::with_common(100, 77, COMMON);
    let index = SegmentIndex::Active(writer.index().clone());
    let watermark = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for reader in 0..3u64 {
            let (index, models, watermark) = (&index, &models, &watermark);
            scope.spawn(move || {
                let mut dice = Dice(reader);
                let mut rounds = 0;
                loop {
                    let end = watermark.load(Ordering::Acquire);
                    let visible = &models[..end as usize];
                    let from = dice.below(u64::from(end) + 1) as u32;
                    let item = item(&mut dice, visible, 5, 30);
                    let query = Query { items: vec![item.clone()] };
                    let mut wanted = matching(visible, &query, &(from..end));
                    let last = wanted.last().map(|&rel| (rel, 0));
                    assert_eq!(newest(index, &query, from..end), last);
                    assert_eq!(drain(index, &query, from..end, false, 50), wanted);
                    wanted.reverse();
                    assert_eq!(drain(index, &query, from..end, true, 50), wanted);
                    let id = EventId([dice.below(40) as u8; 16]);
                    let at = visible.iter().rposition(|model| model.event.id == Some(id));
                    assert_eq!(index.find_id(&id.0, 0..end).unwrap(), at.map(|at| at as u32));
                    if rounds % 16 == 0 {
                        let counted = {
                            let page = TermPage { prefix: "t:", limit: 100, ..TermPage::ALL };
                            index.page(TermKind::Tag, &page, end).unwrap()
                        };
                        let carried = visible.iter().flat_map(|model| &model.event.tags);
                        let carried = carried.filter(|tag| tag.starts_with("t:")).count();
                        assert_eq!(counted.iter().map(|(_, n)| *n).sum::<u64>(), carried as u64);
                    }
                    rounds += 1;
                    if end as usize == models.len() && rounds > 200 {
                        break;
                    }
                }
            });
        }
        for (rel, model) in models.iter().enumerate() {
            with_record(model, |record| writer.push(offset_of(rel), record));
            // The journal lags behind the sequencer: some events stay invisible for a while.
            let durable = (rel + 1).saturating_sub(rel % 7) as u32;
            watermark.fetch_max(durable, Ordering::Release);
            if rel % 50 == 0 {
                std::thread::yield_now();
            }
        }
        watermark.store(models.len() as u32, Ordering::Release);
    });
}

/// Without any room, filters are queried block by block and everything loaded is dropped again.
#[test]
fn the_answers_are_the_same_without_a_budget() {
    let mut dice = Dice(17);
    let models = events(&mut dice, 20_000, 9, 4_000);
    let [_, index] = both(&models);
    set_sealed_index_budget_bytes(0);
    for _ in 0..200 {
        check(&index, &models, &mut dice, 9, 4_000);
        check_names(&index, &models, &mut dice);
    }
    assert!(sealed_index_memory_bytes() < 1 << 20, "one part at most stays");
    set_sealed_index_budget_bytes(32 << 20);
}

/// A file of an earlier version answers as the definition does.
fn check_image(image: Vec<u8>, models: &[Model]) {
    let index = SegmentIndex::Sealed(Arc::new(SealedIndex::open(Arc::new(image)).unwrap()));
    let mut dice = Dice(2);
    for _ in 0..300 {
        check(&index, models, &mut dice, 4, 9);
        check_names(&index, models, &mut dice);
        check_counts(&index, models, &mut dice);
    }
}

/// The bytes are those of the first version, and are read unchanged.
#[test]
fn version_1_answers_as_the_definition_does() {
    let models = events(&mut Dice(1), 700, 4, 9);
    let keys = filter::FilterKeys::gathered_for(1);
    let without = without_tag_pairs(&models);
    let file = std::cell::RefCell::new(Vec::new());
    sealed_writer::write_version(&*without, &[EXTENT], 5, 1, keys, &file).unwrap();
    let image = file.into_inner();
    assert_eq!((image.len(), crc32c::crc32c(&image)), (28_221, 2_489_801_977));
    check_image(image, &models);
}

/// The bytes are those of the second version, and are read unchanged.
#[test]
fn version_2_answers_as_the_definition_does() {
    let models = events(&mut Dice(1), 700, 4, 9);
    let image_of = |active: &ActiveIndex| {
        let keys = filter::FilterKeys::gathered(0);
        let file = std::cell::RefCell::new(Vec::new());
        sealed_writer::write_version(active, &[EXTENT], 5, 2, keys, &file).unwrap();
        file.into_inner()
    };
    let image = image_of(&without_tag_pairs(&models));
    assert_eq!((image.len(), crc32c::crc32c(&image)), (28_293, 4_018_854_157));
    let image = image_of(&active(&models));
    check_image(image, &models);
}

/// The bytes of format version 3. If this fails, the format has changed: give it a new version.
#[test]
fn the_format_is_what_it_was() {
    let models = events(&mut Dice(1), 700, 4, 9);
    let image = sealed_image(&active(&models), &[EXTENT], 5);
    assert_eq!((image.len(), crc32c::crc32c(&image)), (29_394, 2_590_248_865));
}
