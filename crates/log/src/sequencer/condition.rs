//! Evaluates append conditions over any range of the log.
//!
//! A caller first judges everything durable, on its own thread and without a lock; the sequencer
//! then judges only what has been staged since. An expensive condition thus costs its own client,
//! and the sequencer's lock is held briefly however long the log is.

use crate::error::ReadError;
use crate::index::{ActiveIndex, ActiveQuery, SegmentIndex};
use crate::plants::{Plant, planted};
use crate::query::CompiledQuery;
use crate::read::PositionRange;
use crate::segments::Run;
use crate::work::{Stopped, Work};
use std::sync::Arc;
use wellspring_types::{AppendCondition, Clause, Conflict, Position, Query};

/// An append condition that is judged over one range after another.
#[derive(Debug)]
pub(crate) struct JudgedCondition<'c> {
    clauses: Vec<JudgedClause<'c>>,
}

#[derive(Debug)]
struct JudgedClause<'c> {
    clause: Clause,
    query: &'c Query,
    /// The compiled query, once a range contained any event: a condition without later events costs
    /// nothing.
    compiled: Option<Arc<CompiledQuery>>,
    after: Position,
    /// The query in the in-memory indexes used so far, the latest last.
    active: Vec<ActiveQuery>,
}

/// Why a window was not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// It would take too many steps, or the condition would have to be compiled.
    Steps,
    /// Part of it is in a sealed index, that is, in a file.
    Sealed,
}

impl From<Stopped> for TooMuch {
    fn from(_: Stopped) -> TooMuch {
        TooMuch::Steps
    }
}

impl<'c> JudgedCondition<'c> {
    /// Does not compile anything yet.
    pub(crate) fn new(condition: &'c AppendCondition) -> JudgedCondition<'c> {
        let clauses = condition.clauses().map(|(clause, query, after)| JudgedClause {
            clause,
            query,
            compiled: None,
            after,
            active: Vec::new(),
        });
        JudgedCondition { clauses: clauses.collect() }
    }

    /// The first clause of the condition that an event in the range violates, if any.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Stopped`] if the work stopped first.
    pub(crate) fn judge(
        &mut self,
        runs: &[Arc<Run>],
        positions: PositionRange,
        work: &mut Work,
    ) -> Result<Option<Conflict>, ReadError> {
        self.first_offence(positions, |clause, rest| clause.newest(runs, rest, work))
    }

    /// The same for a short range at the end of the log, from memory alone, so that it can run
    /// under a lock.
    ///
    /// # Errors
    /// [`TooMuch`], if that is not cheap enough.
    pub(crate) fn judge_window(
        &mut self,
        runs: &[Arc<Run>],
        positions: PositionRange,
        work: &mut Work,
    ) -> Result<Option<Conflict>, TooMuch> {
        self.first_offence(positions, |clause, rest| clause.newest_in_window(runs, rest, work))
    }

    fn first_offence<E>(
        &mut self,
        positions: PositionRange,
        mut newest: impl FnMut(
            &mut JudgedClause<'c>,
            PositionRange,
        ) -> Result<Option<(Position, usize)>, E>,
    ) -> Result<Option<Conflict>, E> {
        for clause in &mut self.clauses {
            let rest = PositionRange { low: positions.low.max(clause.after), ..positions };
            if rest.low >= rest.high {
                continue;
            }
            if let Some((position, item)) = newest(clause, rest)? {
                assert!(rest.low < position && position <= rest.high, "it lies in the range");
                return Ok(Some(Conflict { position, clause: clause.clause, item }));
            }
        }
        Ok(None)
    }
}

impl JudgedClause<'_> {
    /// The newest matching event of the range, and the lowest-numbered item it matches.
    fn newest(
        &mut self,
        runs: &[Arc<Run>],
        positions: PositionRange,
        work: &mut Work,
    ) -> Result<Option<(Position, usize)>, ReadError> {
        if self.compiled.is_none() {
            self.compiled = Some(CompiledQuery::shared(self.query));
            work.pause();
        }
        let (Some(query), active) = (&self.compiled, &mut self.active) else {
            unreachable!("just compiled")
        };
        if query.items().is_empty() {
            return Ok(Some((positions.high, 0)));
        }
        let newest = newest_first(runs, positions, |run| {
            let range = run.range(positions.low, positions.high);
            match run.index() {
                SegmentIndex::Active(index) => {
                    let found = in_active(active, query, &index).newest(range, work);
                    found.map_err(ReadError::Stopped)
                }
                SegmentIndex::Sealed(_) => {
                    run.ask(work, |index, work| index.newest(query, range.clone(), work))
                }
            }
        })?;
        let is_known = newest.is_some() || planted(Plant::JudgesTheRest);
        if is_known { Ok(newest) } else { positions.require(runs).map(|()| None) }
    }

    fn newest_in_window(
        &mut self,
        runs: &[Arc<Run>],
        positions: PositionRange,
        work: &mut Work,
    ) -> Result<Option<(Position, usize)>, TooMuch> {
        // Compiling the largest query takes long and must not happen under a lock.
        let (Some(query), active) = (&self.compiled, &mut self.active) else {
            return Err(TooMuch::Steps);
        };
        newest_first(runs, positions, |run| {
            let range = run.range(positions.low, positions.high);
            match run.index() {
                SegmentIndex::Active(index) => {
                    Ok(in_active(active, query, &index).window(range, work)?)
                }
                SegmentIndex::Sealed(_) => Err(TooMuch::Sealed),
            }
        })
    }
}

/// The query in an in-memory index: a known one, or a new one.
fn in_active<'a>(
    active: &'a mut Vec<ActiveQuery>,
    query: &Arc<CompiledQuery>,
    index: &Arc<ActiveIndex>,
) -> &'a mut ActiveQuery {
    if !active.last().is_some_and(|known| known.is_of(index)) {
        match active.iter().position(|known| known.is_of(index)) {
            Some(at) => {
                let known = active.remove(at);
                active.push(known);
            }
            None => active.push(ActiveQuery::new(index, query)),
        }
    }
    active.last_mut().expect("just seen to")
}

/// The result of `find` for the newest run of the range that has one.
fn newest_first<E>(
    runs: &[Arc<Run>],
    positions: PositionRange,
    mut find: impl FnMut(&Run) -> Result<Option<(u32, usize)>, E>,
) -> Result<Option<(Position, usize)>, E> {
    for run in runs.iter().rev() {
        if run.base() > positions.high {
            continue;
        }
        if let Some((relative, item)) = find(run)? {
            return Ok(Some((run.base() + u64::from(relative), item)));
        }
        if run.base() <= positions.low + 1 {
            break;
        }
    }
    Ok(None)
}
