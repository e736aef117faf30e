//! Projections that only count can be answered from an index's counts instead of a fold over
//! events. The answer is byte-identical, or none is given.

use super::bounds::Bounds;
use super::reducer::{GROUP_OVERHEAD, GroupBy, Reducer, State};
use super::{Projection, Projections};
use std::collections::BTreeMap;
use wellspring_types::Query;

/// Maximum number of query items for counting groups from the index: each item is looked up for
/// each group.
const MAX_GROUPED_ITEMS: usize = 16;

/// How the events of one projection are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping<'a> {
    /// All in one number.
    Together,
    /// By each of their tags that begins with this key and a colon.
    ByTagKey(&'a str),
}

/// The counts needed to answer one projection.
#[derive(Debug, Clone, Copy)]
pub struct CountRequest<'a> {
    /// The events to count; only those after [`Projections::after`].
    pub query: &'a Query,
    /// Whether to count in one number or by tag.
    pub grouping: Grouping<'a>,
}

/// The answer to a [`CountRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountAnswer {
    /// The number of matching events.
    Together(u64),
    /// The number of matching events with each whole tag; omits tags without any.
    ByTag(BTreeMap<String, u64>),
}

/// Counts cannot answer the projections; the events must be folded instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsFold;

impl Projections {
    /// The counts needed instead of a fold, one request for each projection in order; `None` if any
    /// projection needs more than the number of events.
    #[must_use]
    pub fn count_requests(&self) -> Option<Vec<CountRequest<'_>>> {
        self.running.iter().map(Projection::count_request).collect()
    }

    /// Takes the counts instead of folding events.
    ///
    /// # Errors
    /// [`NeedsFold`] if the counts do not determine the answer: a bound would be exceeded, or
    /// adding to a starting value would not be exact. The projections may have changed; start over
    /// with new ones.
    pub fn take_counts(&mut self, counts: Vec<CountAnswer>) -> Result<(), NeedsFold> {
        assert_eq!(counts.len(), self.running.len(), "one answer for each request");
        for (projection, counted) in self.running.iter_mut().zip(counts) {
            let Projection { state, groups, passed_over, .. } = projection;
            let mut bounds = Bounds { memory: &mut self.memory, groups, passed_over };
            match (state, counted) {
                (state @ State::Total { .. }, CountAnswer::Together(count)) => add(state, count)?,
                (State::Groups(states), CountAnswer::ByTag(counts)) => {
                    for (tag, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                        let (_, key) = tag.split_once(':').ok_or(NeedsFold)?;
                        let charged = bounds.charge_group(key.len() + GROUP_OVERHEAD);
                        charged.map_err(|_| NeedsFold)?;
                        let mut state = Reducer::Count.start(None);
                        add(&mut state, count)?;
                        states.insert(key.into(), state);
                    }
                }
                _ => return Err(NeedsFold),
            }
        }
        Ok(())
    }
}

impl Projection {
    fn count_request(&self) -> Option<CountRequest<'_>> {
        let query = &self.definition.query;
        let grouping = match &self.definition.reducer {
            Reducer::Count => Grouping::Together,
            Reducer::Group { by: GroupBy::Tag(key), inner, .. }
                if **inner == Reducer::Count && query.items.len() <= MAX_GROUPED_ITEMS =>
            {
                Grouping::ByTagKey(key)
            }
            _ => return None,
        };
        Some(CountRequest { query, grouping })
    }
}

/// Adds `count` events at once; equal to adding them one by one as long as nothing is rounded.
fn add(state: &mut State, count: u64) -> Result<(), NeedsFold> {
    let State::Total { sum, taken, .. } = state else { return Err(NeedsFold) };
    if count == 0 {
        return Ok(());
    }
    let exact = sum.is_exact() && sum.add(&count.to_string()) && sum.is_exact();
    *taken += count;
    if exact { Ok(()) } else { Err(NeedsFold) }
}
