//! Projections that only count, answered from the indexes of the log: no event is read. Bounded in
//! time like a fold; what counting cannot answer exactly is left to the fold.

use super::elsewhere::{Price, at_price, elsewhere, long_read};
use super::fold::{SHORT_US, SLICE_US, too_costly};
use super::problem::Problem;
use super::{Request, Shell};
use std::sync::Arc;
use wellspring_log::{
    Clock, CountStep, EventCount, GroupCountStep, GroupedCount, ReadError, Snapshot, Work,
};
use wellspring_types::{Position, Query};
use wellspring_views::project::{CountRequest, Counted, Grouping, MAX_GROUPS, Projections};

/// The answer of projections that only count, and the position that it reflects; `None` if they
/// have to be folded.
pub(super) async fn count(
    shell: &Arc<Shell>,
    request: &Request,
    projections: &Arc<Projections>,
    price: Price,
) -> Result<Option<(String, Position)>, Box<Problem>> {
    let reads = request.payer.reads()?;
    let snapshot = request.log()?.snapshot();
    let head = snapshot.head();
    let clock = Arc::clone(&shell.clock);
    let started_us = clock.monotonic_us();
    let mut permit = match price {
        Price::Short => None,
        Price::Dear => Some(long_read(shell)?),
    };
    let (counted, charged) = (Arc::clone(projections), reads.clone());
    let begin = move || charged.timed(|| Counting::new(&snapshot, &counted));
    let Some(mut counting) = at_price(price, begin).await? else { return Ok(None) };
    let mut progress = match price {
        Price::Short => reads.timed(|| counting.slice(&clock, SHORT_US))?,
        Price::Dear => Progress::More,
    };
    if progress == Progress::More && permit.is_none() {
        permit = Some(long_read(shell)?);
    }
    while progress == Progress::More {
        let (clock, reads) = (Arc::clone(&shell.clock), reads.clone());
        let sliced;
        (counting, sliced) = elsewhere(move || {
            let sliced = reads.timed(|| counting.slice(&clock, SLICE_US));
            (counting, sliced)
        })
        .await?;
        progress = sliced?;
        let limit_ms = shell.config.max_fold_ms;
        let over = shell.clock.monotonic_us() - started_us > limit_ms * 1000;
        if over && progress == Progress::More {
            return Err(too_costly(limit_ms));
        }
    }
    drop(permit);
    if progress == Progress::NeedsFold {
        return Ok(None);
    }
    let projections = Arc::clone(projections);
    let answer = move || {
        let mut answered = Projections::clone(&projections);
        answered.take_counts(counting.done).ok()?;
        Some(answered.finish(head).map_err(super::project::of_error))
    };
    let answer = at_price(price, answer).await?.transpose()?;
    Ok(answer.map(|answer| (answer, head)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    More,
    Done,
    NeedsFold,
}

/// What a step of one projection came to.
enum Step {
    More,
    Done(Counted),
    NeedsFold,
}

/// One projection being counted.
enum Count {
    Together(EventCount),
    ByTag(GroupedCount),
}

/// All projections of a request, counted one after the other.
struct Counting {
    /// The last is under way.
    rest: Vec<Count>,
    done: Vec<Counted>,
}

impl Counting {
    /// `None` if the projections look at more than the number of events.
    fn new(snapshot: &Snapshot, projections: &Projections) -> Option<Counting> {
        let requests = projections.count_requests()?;
        let after = projections.after().unwrap_or(0);
        let begin = |request: &CountRequest<'_>| {
            let query: Query = request.query.clone();
            match request.grouping {
                Grouping::Together => Count::Together(snapshot.count(query, after)),
                Grouping::ByTagKey(key) => {
                    let prefix = format!("{key}:");
                    Count::ByTag(snapshot.count_by_tag(query, &prefix, after, MAX_GROUPS))
                }
            }
        };
        Some(Counting { rest: requests.iter().rev().map(begin).collect(), done: Vec::new() })
    }

    /// Counts for about `us`, and at least one step.
    fn slice(&mut self, clock: &Arc<dyn Clock>, us: u64) -> Result<Progress, ReadError> {
        let deadline_us = clock.monotonic_us() + us;
        // Within a step: a walk that finds nothing must end as well, and goes on where it was.
        let mut work = Work::unbounded().with_deadline(Arc::clone(clock), deadline_us);
        while let Some(count) = self.rest.last_mut() {
            let counted = match count {
                Count::Together(count) => count.step(&mut work).map(|step| match step {
                    CountStep::More => Step::More,
                    CountStep::Done(counted) => Step::Done(Counted::Together(counted)),
                }),
                Count::ByTag(count) => count.step(&mut work).map(|step| match step {
                    GroupCountStep::More => Step::More,
                    GroupCountStep::Done(groups) => Step::Done(Counted::ByTag(groups)),
                    GroupCountStep::TooMany => Step::NeedsFold,
                }),
            };
            match counted {
                Ok(Step::More) => {}
                Ok(Step::Done(counted)) => {
                    self.done.push(counted);
                    self.rest.pop();
                }
                Ok(Step::NeedsFold) => return Ok(Progress::NeedsFold),
                Err(ReadError::Stopped(_)) => break,
                Err(error) => return Err(error),
            }
            if clock.monotonic_us() > deadline_us {
                break;
            }
        }
        Ok(if self.rest.is_empty() { Progress::Done } else { Progress::More })
    }
}
