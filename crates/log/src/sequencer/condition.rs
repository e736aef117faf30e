//! The one definition of an append condition's verdict, over any stretch of the log.
//!
//! A caller first judges everything durable, on its own thread and without a
//! lock; the sequencer then judges only what has been staged since. So an
//! expensive condition costs its own client, and what the sequencer's lock
//! covers is short however long the log is.

use crate::error::ReadError;
use crate::index::{ActiveIndex, ActiveQuery, SegmentIndex};
use crate::query::CompiledQuery;
use crate::read::Stretch;
use crate::segments::Run;
use crate::work::{Stopped, Work};
use std::sync::Arc;
use wellspring_types::{AppendCondition, Clause, Conflict, Position};

/// An append condition made ready to be judged over one stretch after another.
#[derive(Debug)]
pub(crate) struct CompiledCondition {
    clauses: Vec<CompiledClause>,
}

#[derive(Debug)]
struct CompiledClause {
    clause: Clause,
    query: Arc<CompiledQuery>,
    after: Position,
    /// The query in the indexes in memory that were asked, the latest last.
    active: Vec<ActiveQuery>,
}

/// Why a window was not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// It would take more steps than it may.
    Steps,
    /// Part of it stands in a sealed index, that is, in a file.
    Sealed,
}

impl From<Stopped> for TooMuch {
    fn from(_: Stopped) -> TooMuch {
        TooMuch::Steps
    }
}

impl CompiledCondition {
    /// Compiles a condition; looks nothing up.
    pub(crate) fn new(condition: &AppendCondition) -> CompiledCondition {
        let clauses = condition.clauses().map(|(clause, query, after)| CompiledClause {
            clause,
            query: CompiledQuery::shared(query),
            after,
            active: Vec::new(),
        });
        CompiledCondition { clauses: clauses.collect() }
    }

    /// The first clause of the condition that an event in the stretch offends, if any.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Stopped`] if the work ended first.
    pub(crate) fn judge(
        &mut self,
        runs: &[Arc<Run>],
        stretch: Stretch,
        work: &mut Work,
    ) -> Result<Option<Conflict>, ReadError> {
        self.first_offence(stretch, |clause, rest| clause.newest(runs, rest, work))
    }

    /// The same for a short stretch at the end of the log, from memory alone: what may be asked
    /// under a lock.
    ///
    /// # Errors
    /// [`TooMuch`], if it cannot be told so cheaply.
    pub(crate) fn judge_window(
        &mut self,
        runs: &[Arc<Run>],
        stretch: Stretch,
        work: &mut Work,
    ) -> Result<Option<Conflict>, TooMuch> {
        self.first_offence(stretch, |clause, rest| clause.newest_in_window(runs, rest, work))
    }

    fn first_offence<E>(
        &mut self,
        stretch: Stretch,
        mut newest: impl FnMut(&mut CompiledClause, Stretch) -> Result<Option<(Position, usize)>, E>,
    ) -> Result<Option<Conflict>, E> {
        for clause in &mut self.clauses {
            let rest = Stretch { low: stretch.low.max(clause.after), ..stretch };
            if rest.low >= rest.high {
                continue;
            }
            if let Some((position, item)) = newest(clause, rest)? {
                assert!(rest.low < position && position <= rest.high, "it lies in the stretch");
                return Ok(Some(Conflict { position, clause: clause.clause, item }));
            }
        }
        Ok(None)
    }
}

impl CompiledClause {
    /// The newest event of the stretch that matches, and the lowest-numbered item it matches.
    fn newest(
        &mut self,
        runs: &[Arc<Run>],
        stretch: Stretch,
        work: &mut Work,
    ) -> Result<Option<(Position, usize)>, ReadError> {
        if self.query.items().is_empty() {
            return Ok(Some((stretch.high, 0)));
        }
        newest_first(runs, stretch, |run| {
            let range = run.range(stretch.low, stretch.high);
            match run.index() {
                SegmentIndex::Active(index) => {
                    let found = self.active(&index).newest(range, work);
                    found.map_err(ReadError::Stopped)
                }
                SegmentIndex::Sealed(_) => {
                    run.ask(work, |index, work| index.newest(&self.query, range.clone(), work))
                }
            }
        })
    }

    fn newest_in_window(
        &mut self,
        runs: &[Arc<Run>],
        stretch: Stretch,
        work: &mut Work,
    ) -> Result<Option<(Position, usize)>, TooMuch> {
        newest_first(runs, stretch, |run| {
            let range = run.range(stretch.low, stretch.high);
            match run.index() {
                SegmentIndex::Active(index) => Ok(self.active(&index).window(range, work)?),
                SegmentIndex::Sealed(_) => Err(TooMuch::Sealed),
            }
        })
    }

    /// The query in an index in memory.
    fn active(&mut self, index: &Arc<ActiveIndex>) -> &mut ActiveQuery {
        if !self.active.last().is_some_and(|known| known.is_of(index)) {
            match self.active.iter().position(|known| known.is_of(index)) {
                Some(at) => {
                    let known = self.active.remove(at);
                    self.active.push(known);
                }
                None => self.active.push(ActiveQuery::new(index, &self.query)),
            }
        }
        self.active.last_mut().expect("just seen to")
    }
}

/// What `find` says of the newest run of the stretch for which it says anything.
fn newest_first<E>(
    runs: &[Arc<Run>],
    stretch: Stretch,
    mut find: impl FnMut(&Run) -> Result<Option<(u32, usize)>, E>,
) -> Result<Option<(Position, usize)>, E> {
    for run in runs.iter().rev() {
        if run.base() > stretch.high {
            continue;
        }
        if let Some((relative, item)) = find(run)? {
            return Ok(Some((run.base() + u64::from(relative), item)));
        }
        if run.base() <= stretch.low + 1 {
            break;
        }
    }
    Ok(None)
}
