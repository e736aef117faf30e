//! Projections that only count can be answered from the counts of an index instead of a fold over
//! events. The answer is the same to the byte, or it is not given.

use super::bounds::Bounds;
use super::reducer::{GROUP_OVERHEAD, GroupBy, Reducer, State};
use super::{Projection, Projections};
use std::collections::BTreeMap;
use wellspring_types::Query;

/// Most items of a query whose groups are counted one by one: each is looked up for each group.
const MAX_GROUPED_ITEMS: usize = 16;

/// How the events of one projection are to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping<'a> {
    /// All together.
    Together,
    /// By each tag of theirs that begins with this key and a colon.
    ByTagKey(&'a str),
}

/// What must be counted to answer one projection.
#[derive(Debug, Clone, Copy)]
pub struct CountRequest<'a> {
    /// Which events, those after [`Projections::after`].
    pub query: &'a Query,
    /// In one number or in several.
    pub grouping: Grouping<'a>,
}

/// The answer to a [`CountRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// The number of matching events.
    Together(u64),
    /// The number of matching events that carry each tag; the whole tag, no tag with zero.
    ByTag(BTreeMap<String, u64>),
}

/// The projections could not be answered from counts: fold the events instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsFold;

impl Projections {
    /// What to count instead of folding, one request for each projection in their order; `None`
    /// if any of them looks at more than the number of events.
    #[must_use]
    pub fn count_requests(&self) -> Option<Vec<CountRequest<'_>>> {
        self.running.iter().map(Projection::count_request).collect()
    }

    /// Takes what was counted instead of folding any event.
    ///
    /// # Errors
    /// [`NeedsFold`] if the counts do not determine the answer: a bound would be passed, or a
    /// starting value is not added to exactly. The projections may have changed; begin anew.
    pub fn take_counts(&mut self, counts: Vec<Counted>) -> Result<(), NeedsFold> {
        assert_eq!(counts.len(), self.running.len(), "one answer for each request");
        for (Projection { state, groups, .. }, counted) in self.running.iter_mut().zip(counts) {
            let mut bounds = Bounds { memory: &mut self.memory, groups };
            match (state, counted) {
                (state @ State::Total { .. }, Counted::Together(count)) => add(state, count)?,
                (State::Groups(states), Counted::ByTag(counts)) => {
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
            Reducer::Group { by: GroupBy::Tag(key), inner }
                if **inner == Reducer::Count && query.items.len() <= MAX_GROUPED_ITEMS =>
            {
                Grouping::ByTagKey(key)
            }
            _ => return None,
        };
        Some(CountRequest { query, grouping })
    }
}

/// Adds `count` events at once, which is what adding them one by one comes to as long as nothing
/// is rounded.
fn add(state: &mut State, count: u64) -> Result<(), NeedsFold> {
    let State::Total { sum, taken } = state else { return Err(NeedsFold) };
    if count == 0 {
        return Ok(());
    }
    let exact = sum.is_exact() && sum.add(&count.to_string()) && sum.is_exact();
    *taken += count;
    if exact { Ok(()) } else { Err(NeedsFold) }
}
