//! Counts events from the indexes, without reading them. The results equal those of a read of the
//! same snapshot; later events are never counted.

use super::position_range::PositionRange;
use super::snapshot::Snapshot;
use crate::error::ReadError;
use crate::index::{IndexError, SegmentCount, TermKind, TermPage};
use crate::query::CompiledQuery;
use crate::segments::Run;
use crate::work::Work;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use wellspring_types::{Position, Query};

/// The result of a step of an [`EventCount`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountStep {
    /// There is more to count.
    More,
    /// The number of matching events.
    Done(u64),
}

/// Counts the events of a snapshot that match a query, in steps.
#[derive(Debug)]
pub struct EventCount {
    snapshot: Snapshot,
    query: Query,
    compiled: Arc<CompiledQuery>,
    /// Exclusive.
    after: Position,
    /// The next run to count in.
    run: usize,
    /// Events counted in the previous runs.
    counted: u64,
    current: Option<SegmentCount>,
}

/// The result of a step of a [`GroupedCount`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupCountStep {
    /// There is more to count.
    More,
    /// The number of matching events by tag; omits tags without any.
    Done(BTreeMap<String, u64>),
    /// A run has too many tags with this prefix to look each of them up, or there are more groups
    /// than requested. Read the events instead.
    TooMany,
}

/// Counts matching events by each tag with a prefix, in steps.
#[derive(Debug)]
pub struct GroupedCount {
    snapshot: Snapshot,
    query: Query,
    prefix: String,
    after: Position,
    most_groups: usize,
    run: usize,
    groups: BTreeMap<String, u64>,
    /// Tags of the current run that are still to be counted; `None` before they are listed.
    tags: Option<Vec<String>>,
    /// The tag being counted.
    current: Option<(String, SegmentCount)>,
}

/// Maximum number of tags of a run that are looked up individually. A look-up takes a few
/// microseconds, reading an event a fraction of one.
const MOST_LOOK_UPS: usize = 1_000;

impl Snapshot {
    /// Counts the matching events after a position, using [`EventCount::step`], which may read
    /// index files.
    #[must_use]
    pub fn count(&self, query: Query, after: Position) -> EventCount {
        // A client may pass any number up to the maximum.
        let after = after.min(self.head());
        let (snapshot, run) = (self.clone(), self.first_after(after));
        let compiled = CompiledQuery::shared(&query);
        EventCount { snapshot, query, compiled, after, run, counted: 0, current: None }
    }

    /// Counts the matching events after a position by each of their tags that begins with `prefix`;
    /// an event with several such tags counts for each. Gives up beyond `most_groups` tags.
    #[must_use]
    pub fn count_by_tag(
        &self,
        query: Query,
        prefix: &str,
        after: Position,
        most_groups: usize,
    ) -> GroupedCount {
        let after = after.min(self.head());
        GroupedCount {
            snapshot: self.clone(),
            query,
            prefix: prefix.to_owned(),
            after,
            most_groups,
            run: self.first_after(after),
            groups: BTreeMap::new(),
            tags: None,
            current: None,
        }
    }

    /// The first run with an event after a position.
    fn first_after(&self, after: Position) -> usize {
        let begun = self.runs().partition_point(|run| run.base() <= after);
        begun.saturating_sub(1)
    }

    /// Checks that nothing after a position was cut off.
    ///
    /// # Errors
    /// [`ReadError::Trimmed`].
    pub fn require_after(&self, after: Position) -> Result<(), ReadError> {
        PositionRange { low: after, high: self.head() }.require(self.runs())
    }

    /// A run and its events after a position; `None` after the last run.
    fn run_range(&self, number: usize, after: Position) -> Option<(Arc<Run>, Range<u32>)> {
        let run = self.runs().get(number).filter(|s| s.base() <= self.head())?;
        let last = match self.runs().get(number + 1) {
            Some(next) => self.head().min(next.base() - 1),
            None => self.head(),
        };
        Some((Arc::clone(run), run.range(after, last)))
    }
}

impl EventCount {
    /// Continues the count: by look-ups in one run, or by a walk over a few thousand entries.
    ///
    /// # Errors
    /// [`ReadError`], also if `work` stops; the count keeps its state for a retry.
    pub fn step(&mut self, work: &mut Work) -> Result<CountStep, ReadError> {
        self.snapshot.require_after(self.after)?;
        let Some((run, range)) = self.snapshot.run_range(self.run, self.after) else {
            return Ok(CountStep::Done(self.counted));
        };
        let step = match &mut self.current {
            Some(current) => current.step(work),
            None => {
                let compiled = || Arc::clone(&self.compiled);
                let begun = SegmentCount::begin(&run.index(), &self.query, compiled, range);
                begun.map(|begun| {
                    self.current = Some(begun);
                    None
                })
            }
        };
        match step {
            Ok(None) => {}
            Ok(Some(counted)) => {
                self.counted += counted;
                self.run += 1;
                self.current = None;
            }
            Err(fault) => {
                if !matches!(fault, IndexError::Stopped(_)) {
                    self.current = None;
                }
                // Counts the run again from its beginning after its index has been rebuilt.
                run.mend_within(fault, work)?;
            }
        }
        Ok(CountStep::More)
    }
}

impl GroupedCount {
    /// Continues the count: the tags of one run, or one of them.
    ///
    /// # Errors
    /// [`ReadError`], also if `work` stops; the count keeps its state for a retry.
    pub fn step(&mut self, work: &mut Work) -> Result<GroupCountStep, ReadError> {
        self.snapshot.require_after(self.after)?;
        let Some((run, range)) = self.snapshot.run_range(self.run, self.after) else {
            return Ok(GroupCountStep::Done(std::mem::take(&mut self.groups)));
        };
        let counted = match &mut self.tags {
            None => return self.look_for_tags(&run, &range, work),
            Some(tags) => match &mut self.current {
                Some((_, current)) => current.step(work),
                None => {
                    let Some(tag) = tags.last() else {
                        self.tags = None;
                        self.run += 1;
                        return Ok(GroupCountStep::More);
                    };
                    let query = narrowed(&self.query, tag);
                    let compiled = || CompiledQuery::shared(&query);
                    let begun = SegmentCount::begin(&run.index(), &query, compiled, range);
                    begun.map(|begun| {
                        self.current = tags.pop().map(|tag| (tag, begun));
                        None
                    })
                }
            },
        };
        match counted {
            Ok(None) => {}
            Ok(Some(counted)) => {
                if let Some((tag, _)) = self.current.take() {
                    return Ok(self.add(tag, counted));
                }
            }
            Err(fault) => {
                let tags = self.tags.as_mut().expect("they are being counted");
                if !matches!(fault, IndexError::Stopped(_)) {
                    tags.extend(self.current.take().map(|(tag, _)| tag));
                }
                // Counts the run again from its beginning after its index has been rebuilt.
                run.mend_within(fault, work)?;
            }
        }
        Ok(GroupCountStep::More)
    }

    fn look_for_tags(
        &mut self,
        run: &Run,
        range: &Range<u32>,
        work: &mut Work,
    ) -> Result<GroupCountStep, ReadError> {
        // The dictionary's counts are the answer if every event from the first on counts.
        let whole = self.query.is_all() && range.start == 0;
        let most = if whole { self.most_groups } else { self.most_groups.min(MOST_LOOK_UPS) };
        let page = TermPage { prefix: &self.prefix, limit: most + 1, ..TermPage::ALL };
        let found = run.ask(work, |index, _| index.page(TermKind::Tag, &page, range.end))?;
        if found.len() > most {
            return Ok(GroupCountStep::TooMany);
        }
        if !whole {
            self.tags = Some(found.into_iter().map(|(tag, _)| tag).collect());
            return Ok(GroupCountStep::More);
        }
        for (tag, counted) in found {
            if self.add(tag, counted) == GroupCountStep::TooMany {
                return Ok(GroupCountStep::TooMany);
            }
        }
        self.run += 1;
        Ok(GroupCountStep::More)
    }

    fn add(&mut self, tag: String, counted: u64) -> GroupCountStep {
        if counted > 0 {
            *self.groups.entry(tag).or_insert(0) += counted;
        }
        if self.groups.len() > self.most_groups {
            return GroupCountStep::TooMany;
        }
        GroupCountStep::More
    }
}

/// The events of a query that also carry a tag.
fn narrowed(query: &Query, tag: &str) -> Query {
    if query.is_all() {
        return Query::item(&[], &[tag]);
    }
    let mut query = query.clone();
    for item in &mut query.items {
        if !item.tags.iter().any(|own| own == tag) {
            item.tags.push(tag.to_owned());
        }
    }
    query
}
