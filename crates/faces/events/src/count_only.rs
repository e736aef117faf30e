//! Projections that only count, answered from the indexes: no event is read. Limited in time like a
//! fold; what counting cannot answer exactly is left to the fold.

use crate::view::{CountAnswer, CountRequest, Grouping, MAX_GROUPS, Projections};
use std::sync::Arc;
use wellspring_host::http::work::{Cost, Job, Progress, Task};
use wellspring_host::wire::problem::{Problem, of_fault};
use wellspring_log::{
    CountStep, EventCount, GroupCountStep, GroupedCount, ReadError, Snapshot, Work,
};
use wellspring_types::{Position, Query};

/// The answer of projections that only count, after a position; `None` if they must be folded.
pub(super) async fn count(
    job: &mut Job,
    snapshot: &Snapshot,
    after: Position,
    projections: &Arc<Projections>,
    cost: Cost,
) -> Result<Option<Vec<u8>>, Box<Problem>> {
    let (snapshot, head) = (snapshot.clone(), snapshot.head());
    if cost == Cost::Expensive {
        job.admit()?;
    }
    let counted = Arc::clone(projections);
    let begin = move || CountTask::new(&snapshot, after, &counted);
    let Some(counting) = job.brief(cost, begin).await? else { return Ok(None) };
    let counting = job.run(cost, counting).await?;
    if counting.needs_fold {
        return Ok(None);
    }
    let projections = Arc::clone(projections);
    let answer = move || {
        let mut answered = Projections::clone(&projections);
        answered.take_counts(counting.done).ok()?;
        Some(answered.finish(head).map_err(|fault| of_fault(&fault, b"")))
    };
    job.brief(cost, answer).await?.transpose()
}

/// The result of a step of one projection.
enum Step {
    More,
    Done(CountAnswer),
    NeedsFold,
}

/// One projection being counted.
enum Count {
    Together(EventCount),
    ByTag(GroupedCount),
}

/// All projections of a request, counted one after the other.
struct CountTask {
    /// The last one is in progress.
    rest: Vec<Count>,
    done: Vec<CountAnswer>,
    /// One of them cannot be answered by counting.
    needs_fold: bool,
}

impl CountTask {
    /// `None` if the projections need more than the number of events.
    fn new(snapshot: &Snapshot, after: Position, projections: &Projections) -> Option<CountTask> {
        let requests = projections.count_requests()?;
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
        let rest = requests.iter().rev().map(begin).collect();
        Some(CountTask { rest, done: Vec::new(), needs_fold: false })
    }
}

impl Task for CountTask {
    fn proceed(&mut self, mut work: Work) -> Result<Progress, Box<Problem>> {
        while let Some(count) = self.rest.last_mut() {
            let counted = match count {
                Count::Together(count) => count.step(&mut work).map(|step| match step {
                    CountStep::More => Step::More,
                    CountStep::Done(counted) => Step::Done(CountAnswer::Together(counted)),
                }),
                Count::ByTag(count) => count.step(&mut work).map(|step| match step {
                    GroupCountStep::More => Step::More,
                    GroupCountStep::Done(groups) => Step::Done(CountAnswer::ByTag(groups)),
                    GroupCountStep::TooMany => Step::NeedsFold,
                }),
            };
            match counted {
                Ok(Step::More) => {}
                Ok(Step::Done(counted)) => {
                    self.done.push(counted);
                    self.rest.pop();
                }
                Ok(Step::NeedsFold) => {
                    self.needs_fold = true;
                    return Ok(Progress::Done);
                }
                Err(ReadError::Stopped(_)) => return Ok(Progress::More),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Progress::Done)
    }
}
