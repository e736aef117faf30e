//! A query on an active index that is repeated while a request is judged. Its terms are looked up
//! outside of locks, so that under the staging lock only newer events are examined.

use super::IndexError;
use super::active::ActiveIndex;
use super::hash::Domain;
use super::matching::{Newest, clamp, newest};
use super::resolve::Resolution;
use crate::query::CompiledQuery;
use crate::work::{Stopped, Work};
use std::ops::Range;
use std::sync::Arc;

/// The query; see the module's documentation.
#[derive(Debug)]
pub(crate) struct ActiveQuery {
    index: Arc<ActiveIndex>,
    query: Arc<CompiledQuery>,
    resolution: Resolution<u32>,
    /// Number of types and tags in the index when the terms were last looked up, or fewer.
    known: (u32, u32),
}

impl ActiveQuery {
    /// Looks nothing up yet.
    pub(crate) fn new(index: &Arc<ActiveIndex>, query: &Arc<CompiledQuery>) -> ActiveQuery {
        ActiveQuery {
            index: Arc::clone(index),
            query: Arc::clone(query),
            resolution: Resolution::new(query),
            known: (0, 0),
        }
    }

    /// Whether it queries this index.
    pub(crate) fn is_of(&self, index: &Arc<ActiveIndex>) -> bool {
        Arc::ptr_eq(index, &self.index)
    }

    /// The newest matching event in range, and the lowest-numbered item it matches. Looks up all
    /// terms, as [`window`](Self::window) requires.
    ///
    /// # Errors
    /// [`Stopped`], if the work stopped first.
    pub(crate) fn newest(
        &mut self,
        range: Range<u32>,
        work: &mut Work,
    ) -> Result<Option<(u32, usize)>, Stopped> {
        self.look_up(work)?;
        let found = newest(&*self.index, &self.query, &mut self.resolution, range, work);
        found.map_err(only_stops)
    }

    /// The same for a short range at the end, in time that depends only on the query's terms and
    /// the events in range: only items whose terms all have events there are searched.
    ///
    /// # Errors
    /// [`Stopped`], if the work stopped first.
    pub(crate) fn window(
        &mut self,
        range: Range<u32>,
        work: &mut Work,
    ) -> Result<Option<(u32, usize)>, Stopped> {
        let Some(range) = clamp(&*self.index, range) else { return Ok(None) };
        self.look_up(work)?;
        work.step((self.query.type_count() + self.query.tag_count()) as u64)?;
        let index = &self.index;
        let touched =
            self.resolution.touched(range.start, |domain, term| index.newest_of(domain, term));
        if self.query.items().is_empty() {
            return Ok(Some((range.end - 1, 0)));
        }
        let mut best = Newest { range, found: None };
        for item in self.query.items() {
            if best.range.is_empty() {
                break;
            }
            if self.resolution.may_be_touched(&self.query, item, &touched) {
                let found = best.consider(&**index, &self.query, &mut self.resolution, item, work);
                found.map_err(only_stops)?;
            }
        }
        Ok(best.found)
    }

    /// Looks up the unknown terms: all, or those that were absent earlier.
    fn look_up(&mut self, work: &mut Work) -> Result<(), Stopped> {
        let now = self.index.term_counts();
        let before = self.known;
        if now == before {
            return Ok(());
        }
        let index = &*self.index;
        let new_terms = (now.0 - before.0) as usize + (now.1 - before.1) as usize;
        let terms = self.query.type_count() + self.query.tag_count();
        work.step(new_terms.min(terms) as u64)?;
        let text =
            |domain: Domain, id: u32, f: &mut dyn FnMut(&str)| index.with_text(domain, id, f);
        self.resolution.grow(index, &self.query, before, now, text).map_err(only_stops)?;
        self.known = now;
        Ok(())
    }
}

/// An in-memory index has no other fault.
fn only_stops(fault: IndexError) -> Stopped {
    match fault {
        IndexError::Stopped(stopped) => stopped,
        fault => unreachable!("an active index cannot fail: {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::active::ActiveWriter;
    use super::super::oracle_tests::{Dice, events, item, with_record};
    use super::*;
    use wellspring_types::{Query, QueryItem, limits};

    fn compiled(items: Vec<QueryItem>) -> Arc<CompiledQuery> {
        CompiledQuery::shared(&Query { items })
    }

    #[test]
    fn a_window_answers_as_the_definition_does_while_terms_come() {
        let mut dice = Dice(5);
        let models = events(&mut dice, 3_000, 5, 40);
        let mut writer = ActiveWriter::new(1);
        let index = Arc::clone(writer.index());
        let queries: Vec<_> = (0..40)
            .map(|i| compiled((0..i % 4).map(|_| item(&mut dice, &models, 5, 40)).collect()))
            .collect();
        let mut asked: Vec<_> =
            queries.iter().map(|query| ActiveQuery::new(&index, query)).collect();
        let mut pushed = 0u32;
        while (pushed as usize) < models.len() {
            let low = pushed;
            for model in models.iter().skip(pushed as usize).take(1 + dice.below(9) as usize) {
                with_record(model, |record| writer.push(pushed, record));
                pushed += 1;
            }
            for (asked, query) in asked.iter_mut().zip(&queries) {
                let mut fresh = ActiveQuery::new(&index, query);
                let expected = fresh.newest(low..pushed, &mut Work::unbounded()).unwrap();
                let found = asked.window(low..pushed, &mut Work::unbounded()).unwrap();
                assert_eq!(found, expected);
            }
        }
    }

    /// The largest valid queries: many items, and the largest items, with terms that all occur.
    fn largest() -> [Vec<QueryItem>; 2] {
        let item = |types: usize, tags: usize, i: usize| QueryItem {
            types: (0..types).map(|n| format!("T{n}:{}", i % 40)).collect(),
            tags: (0..tags).map(|n| format!("t:{}", (n + i) % 90)).collect(),
        };
        let many: Vec<_> = (0..256).map(|i| item(12, 4, i)).collect();
        let large: Vec<_> = (0..12).map(|i| item(256, 64, i)).collect();
        [many, large]
    }

    #[test]
    fn the_largest_legal_query_takes_a_bounded_number_of_steps_under_the_lock() {
        for items in largest() {
            assert_eq!(Query { items: items.clone() }.check(), Ok(()));
            let mut writer = ActiveWriter::new(1);
            let index = Arc::clone(writer.index());
            // Every term occurs, and one ordinary request is staged afterwards.
            let mut push = |event: wellspring_types::Event| {
                let mut encoded = wellspring_format::record::EncodedEvents::new();
                encoded.push(&event.as_ref()).unwrap();
                let rel = index.len();
                writer.push(rel, &encoded.iter().next().unwrap());
            };
            for item in &items {
                for name in &item.types {
                    let tags: Vec<&str> = item.tags[..3].iter().map(String::as_str).collect();
                    push(wellspring_types::Event::json(name, &tags, "1"));
                }
            }
            let query = compiled(items.clone());
            let mut asked = ActiveQuery::new(&index, &query);
            let mut outside = Work::unbounded();
            let low = index.len();
            asked.newest(0..low, &mut outside).unwrap();
            for n in 0..257 {
                let (name, tag) = (&items[n % 12].types[n % 12], &items[n % 12].tags[3]);
                push(wellspring_types::Event::json(name, &[tag, "new:term"], "1"));
            }
            let mut under_lock = Work::unbounded();
            let found = asked.window(low..low + 257, &mut under_lock).unwrap();
            assert_eq!(found, None);
            let terms = (query.type_count() + query.tag_count()) as u64;
            assert!(terms <= limits::MAX_QUERY_TERMS as u64);
            let most = 2 * terms + 100;
            assert!(under_lock.steps() <= most, "{} of {most}", under_lock.steps());
            assert!(outside.steps() < 100_000, "{} outside", outside.steps());
        }
    }
}
