//! Merges the sealed indexes of adjacent segments without reading the segments: their dictionaries
//! are merged term by term. A query over the whole log then uses one index instead of several.

use super::IndexError;
use super::contents::{Contents, EachTerm, EventTypes};
use super::dictionary::DictionaryScan;
use super::file::WriteAt;
use super::hash::Domain;
use super::sealed::SealedIndex;
use super::sealed_writer::write;
use super::tag_pairs::COMMON;
use crate::work::Stopped;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Terms, postings or events between two checks of the stop flag: some tenths of a millisecond,
/// because closing a log waits for this low-priority thread.
const STEPS_PER_LOOK: usize = 1 << 12;

/// Writes the file of one index for the segments of these indexes, which are adjacent and
/// ascending.
///
/// # Errors
/// [`IndexError`], with the number of the index that was read last, which is the damaged one if any
/// is; [`IndexError::Stopped`] if `stop` was set.
pub(crate) fn merge(
    indexes: &[Arc<SealedIndex>],
    seed: u64,
    stop: &AtomicBool,
    file: &dyn WriteAt,
) -> Result<(), (usize, IndexError)> {
    write_merged(indexes, 0, seed, stop, COMMON, file)
}

/// Writes the file of an index for the segments of another one from the position `first` on, where
/// one of them begins.
///
/// # Errors
/// [`IndexError`].
pub(crate) fn without_beginning(
    index: &Arc<SealedIndex>,
    first: u64,
    seed: u64,
    file: &dyn WriteAt,
) -> Result<(), IndexError> {
    let left_out = u32::try_from(first - index.base()).expect("a position of these segments");
    let never = AtomicBool::new(false);
    let indexes = std::slice::from_ref(index);
    write_merged(indexes, left_out, seed, &never, COMMON, file).map_err(|(_, error)| error)
}

fn write_merged(
    indexes: &[Arc<SealedIndex>],
    left_out: u32,
    seed: u64,
    stop: &AtomicBool,
    common: u32,
    file: &dyn WriteAt,
) -> Result<(), (usize, IndexError)> {
    let (last_read, steps) = (Cell::new(0), Cell::new(0));
    let merged = AdjacentIndexes { indexes, left_out, stop, common, last_read, steps };
    let mut segments = Vec::new();
    for (place, index) in indexes.iter().enumerate() {
        segments.extend(index.segments().map_err(|error| (place, error))?);
    }
    segments.retain(|segment| segment.base >= merged.base());
    write(&merged, &segments, seed, file).map_err(|error| (merged.last_read.get(), error))
}

/// The indexes to merge.
struct AdjacentIndexes<'i> {
    indexes: &'i [Arc<SealedIndex>],
    /// Number of events at the beginning of the first that are left out.
    left_out: u32,
    stop: &'i AtomicBool,
    common: u32,
    /// The one read last.
    last_read: Cell<usize>,
    /// Steps since the last check of the flag.
    steps: Cell<usize>,
}

impl AdjacentIndexes<'_> {
    /// Number of events before those of an index, with those that are left out.
    fn shift(&self, place: usize) -> u32 {
        let shift = self.indexes[place].base() - self.indexes[0].base();
        u32::try_from(shift).expect("the events of adjacent segments are counted by a u32")
    }

    /// Queries each index in turn.
    fn of_each<'i, T>(
        &'i self,
        mut ask: impl FnMut(usize, &'i SealedIndex) -> Result<T, IndexError>,
    ) -> Result<Vec<T>, IndexError> {
        let numbered = self.indexes.iter().enumerate();
        numbered
            .map(|(place, index)| {
                self.last_read.set(place);
                ask(place, index)
            })
            .collect()
    }

    fn merged_terms(&self, domain: Domain) -> Result<MergedTerms<'_>, IndexError> {
        let scans = self.of_each(|_, index| {
            let mut scan = index.scan(domain)?;
            let has_term = scan.next(index.file())?.is_some();
            Ok((scan, has_term))
        })?;
        Ok(MergedTerms { of: self, scans, have: Vec::new() })
    }
}

/// Iterates over the distinct terms of all indexes in byte order.
struct MergedTerms<'i> {
    of: &'i AdjacentIndexes<'i>,
    /// Each with whether it has a current term, false at its end.
    scans: Vec<(DictionaryScan<'i>, bool)>,
    /// The indexes that have the current term.
    have: Vec<usize>,
}

impl MergedTerms<'_> {
    /// Advances to the next distinct term. False at the end.
    fn advance(&mut self) -> Result<bool, IndexError> {
        for &place in &self.have {
            self.of.last_read.set(place);
            let (scan, has_term) = &mut self.scans[place];
            *has_term = scan.next(self.of.indexes[place].file())?.is_some();
        }
        self.have.clear();
        for (place, (scan, has_term)) in self.scans.iter().enumerate() {
            if !has_term {
                continue;
            }
            let least = self.have.first().map(|&first| self.scans[first].0.term());
            match least.map(|least| scan.term().cmp(least)) {
                None => self.have.push(place),
                Some(std::cmp::Ordering::Equal) => self.have.push(place),
                Some(std::cmp::Ordering::Less) => {
                    self.have.clear();
                    self.have.push(place);
                }
                Some(std::cmp::Ordering::Greater) => {}
            }
        }
        self.of.step(1)?;
        Ok(!self.have.is_empty())
    }

    fn term(&self) -> &[u8] {
        self.scans[self.have[0]].0.term()
    }

    /// The events that have the current term.
    fn read_rels(&mut self, out: &mut Vec<u32>) -> Result<(), IndexError> {
        out.clear();
        for &place in &self.have {
            self.of.last_read.set(place);
            let index = &self.of.indexes[place];
            let list = self.scans[place].0.list();
            self.of.step(list.count() as usize)?;
            list.read_all(index.file(), index.len(), self.of.shift(place), out)?;
        }
        let left_out = self.of.left_out;
        if left_out > 0 {
            out.drain(..out.partition_point(|&rel| rel < left_out));
            out.iter_mut().for_each(|rel| *rel -= left_out);
        }
        Ok(())
    }
}

impl Contents for AdjacentIndexes<'_> {
    fn step(&self, steps: usize) -> Result<(), IndexError> {
        self.steps.set(self.steps.get() + steps);
        if self.steps.get() < STEPS_PER_LOOK {
            return Ok(());
        }
        self.steps.set(0);
        if self.stop.load(Relaxed) { Err(Stopped::Cancelled.into()) } else { Ok(()) }
    }

    fn base(&self) -> u64 {
        self.indexes[0].base() + u64::from(self.left_out)
    }

    fn events(&self) -> u32 {
        let last = self.indexes.len() - 1;
        self.shift(last) + self.indexes[last].len() - self.left_out
    }

    fn common(&self) -> u32 {
        self.common
    }

    fn filter_keys_bound(&self) -> Option<usize> {
        Some(self.indexes.iter().map(|index| index.filter_keys_bound()).sum())
    }

    fn offsets(
        &self,
        each: &mut dyn FnMut(u32) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let mut seen = 0;
        self.of_each(|_, index| {
            index.each_offset(&mut |offset| {
                self.step(1)?;
                seen += 1;
                if seen > self.left_out { each(offset) } else { Ok(()) }
            })
        })?;
        Ok(())
    }

    fn event_types(&self) -> Result<EventTypes, IndexError> {
        // Maps an index's type number to the rank among all types.
        let mut places: Vec<Vec<u32>> = vec![Vec::new(); self.indexes.len()];
        let mut types = self.merged_terms(Domain::Type)?;
        let mut place = 0;
        let mut rels = Vec::new();
        while types.advance()? {
            if self.left_out > 0 {
                types.read_rels(&mut rels)?;
            }
            if self.left_out > 0 && rels.is_empty() {
                // None of its events stays; its number is asked for no more.
                types.have.iter().for_each(|&index| places[index].push(u32::MAX));
                continue;
            }
            types.have.iter().for_each(|&index| places[index].push(place));
            place += 1;
        }
        let mut all = EventTypes::new(place, self.events());
        let mut seen = 0;
        self.of_each(|at, index| {
            index.each_type(&mut |number| {
                self.step(1)?;
                seen += 1;
                if seen > self.left_out {
                    let place = places[at].get(number as usize);
                    all.push(*place.ok_or_else(|| index.damaged_type_column())?);
                }
                Ok(())
            })
        })?;
        Ok(all)
    }

    fn terms(&self, domain: Domain, each: &mut EachTerm<'_>) -> Result<(), IndexError> {
        let mut terms = self.merged_terms(domain)?;
        let mut rels = Vec::new();
        while terms.advance()? {
            terms.read_rels(&mut rels)?;
            if !rels.is_empty() {
                each(terms.term(), &rels)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::SegmentIndex;
    use super::super::file::SegmentExtent;
    use super::super::filter::FilterKeys;
    use super::super::oracle_tests::{
        COMMON, Dice, active_from, check, check_counts, check_names, events,
    };
    use super::super::sealed_writer::{sealed_image, write_version};
    use super::*;
    use proptest::prelude::*;

    fn merged(indexes: &[Arc<SealedIndex>], seed: u64) -> Vec<u8> {
        let file = std::cell::RefCell::new(Vec::new());
        write_merged(indexes, 0, seed, &NEVER, COMMON, &file).map_err(|(_, e)| e).unwrap();
        file.into_inner()
    }

    fn opened(image: Vec<u8>) -> Arc<SealedIndex> {
        Arc::new(SealedIndex::open(Arc::new(image)).unwrap())
    }

    static NEVER: AtomicBool = AtomicBool::new(false);

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

        #[test]
        fn a_merged_index_answers_as_the_definition_does(
            seed in any::<u64>(), count in 2usize..600, parts in 1usize..9, shape in 0usize..4,
        ) {
            let (types, tags) = [(1, 2), (4, 8), (9, 40), (300, 300)][shape];
            let mut dice = Dice(seed);
            let models = events(&mut dice, count, types, tags);
            let mut cuts: Vec<usize> = (1..parts).map(|_| 1 + dice.below(count as u64 - 1) as usize).collect();
            cuts.extend([0, count]);
            cuts.sort_unstable();
            cuts.dedup();
            let mut segments = Vec::new();
            let indexes: Vec<Arc<SealedIndex>> = cuts.windows(2).zip(1..).map(|(cut, number)| {
                let extent = SegmentExtent { base: 100 + cut[0] as u64, end: number, salt: number };
                segments.push(extent);
                let part = active_from(extent.base, &models[cut[0]..cut[1]], cut[0]);
                opened(sealed_image(&part, &[extent], number))
            }).collect();
            // In two steps, so that a merged index is merged again.
            let (some, rest) = indexes.split_at(indexes.len().div_ceil(2));
            let some = merged(some, 9);
            let all: Vec<_> = [opened(some)].into_iter().chain(rest.iter().cloned()).collect();
            let merged = opened(merged(&all, 10));
            prop_assert_eq!(merged.segments().unwrap(), segments.clone());
            for (place, &cut) in cuts[1..cuts.len() - 1].iter().enumerate() {
                let file = std::cell::RefCell::new(Vec::new());
                without_beginning(&merged, 100 + cut as u64, 11, &file).unwrap();
                let rest = opened(file.into_inner());
                prop_assert_eq!(rest.segments().unwrap(), segments[place + 1..].to_vec());
                let index = SegmentIndex::Sealed(rest);
                for _ in 0..4 {
                    check(&index, &models[cut..], &mut dice, types, tags);
                    check_names(&index, &models[cut..], &mut dice);
                }
                check_counts(&index, &models[cut..], &mut dice);
            }
            let index = SegmentIndex::Sealed(merged);
            prop_assert_eq!((index.base(), index.len() as usize), (100, count));
            for _ in 0..12 {
                check(&index, &models, &mut dice, types, tags);
                check_names(&index, &models, &mut dice);
            }
            check_counts(&index, &models, &mut dice);
        }
    }

    #[test]
    fn indexes_of_every_version_are_merged() {
        let models = events(&mut Dice(5), 3_000, 5, 30);
        let parts =
            [(1, 0..1_000), (2, 1_000..2_000), (3, 2_000..3_000)].map(|(version, range)| {
                let base = 100 + range.start as u64;
                let part = active_from(base, &models[range.clone()], range.start);
                let extent = SegmentExtent { base, end: 1, salt: 0 };
                let keys = FilterKeys::gathered_for(version);
                let file = std::cell::RefCell::new(Vec::new());
                write_version(&*part, &[extent], 3, version, keys, &file).unwrap();
                opened(file.into_inner())
            });
        let index = SegmentIndex::Sealed(opened(merged(&parts, 10)));
        let mut dice = Dice(6);
        for _ in 0..200 {
            check(&index, &models, &mut dice, 5, 30);
            check_names(&index, &models, &mut dice);
        }
    }

    #[test]
    fn a_merge_of_few_terms_ends_when_it_is_told() {
        let mut models = events(&mut Dice(5), 6_000, 5, 30);
        for model in &mut models {
            (model.event.id, model.key) = (None, None);
            model.event.tags.retain(|tag| tag.starts_with("t:"));
        }
        let indexes = [0, 3_000].map(|from| {
            let extent = SegmentExtent { base: 100 + from as u64, end: 1, salt: 1 };
            let part = active_from(extent.base, &models[from..from + 3_000], from);
            opened(sealed_image(&part, &[extent], 3))
        });
        let file = std::cell::RefCell::new(Vec::new());
        let stopped = merge(&indexes, 1, &AtomicBool::new(true), &file);
        assert!(matches!(stopped, Err((_, IndexError::Stopped(_)))));
        assert!(merge(&indexes, 1, &NEVER, &file).is_ok());
    }

    #[test]
    fn a_merge_ends_when_it_is_told_and_names_the_index_that_is_damaged() {
        let models = events(&mut Dice(5), 9_000, 5, 30);
        let extents = [0, 3_000, 6_000].map(|at| SegmentExtent { base: 100 + at, end: 1, salt: 1 });
        let images = extents.map(|extent| {
            let from = (extent.base - 100) as usize;
            sealed_image(&active_from(extent.base, &models[from..from + 3_000], from), &[extent], 3)
        });
        let file = std::cell::RefCell::new(Vec::new());
        let sound = images.clone().map(opened);
        let stopped = merge(&sound, 1, &AtomicBool::new(true), &file);
        assert!(matches!(stopped, Err((_, IndexError::Stopped(_)))));
        let mut damaged = images.clone();
        let middle = damaged[1].len() / 3;
        damaged[1][middle..].fill(7);
        let (place, error) = merge(&damaged.map(opened), 1, &NEVER, &file).unwrap_err();
        assert!(matches!(error, IndexError::Damaged { .. }) && place == 1, "{place} {error}");
    }
}
