//! Folding a whole read into a small result, limited in time.

use super::read::ReadyQuery;
use std::borrow::Borrow;
use wellspring_host::http::work::{Job, Progress, Task};
use wellspring_host::wire::problem::Problem;
use wellspring_log::{Events, ReadError, ReadOptions, RecordView, Snapshot, Work};
use wellspring_types::{Position, Query};

/// The result that events are folded into.
pub(crate) trait Folding: Send + 'static {
    /// Folds the next event. Returns the steps of work: about one for each query item compared with
    /// the event.
    fn fold(&mut self, event: &RecordView<'_>) -> u64;

    /// Whether further events can change nothing.
    fn is_done(&self) -> bool {
        false
    }
}

/// Folds all events of a snapshot that match after a position.
///
/// # Errors
/// Those of [`Job::run`]: over its time, a problem instead of a partial answer.
pub(crate) async fn fold<F: Folding>(
    job: &mut Job,
    snapshot: &Snapshot,
    query: impl Borrow<Query> + Send + 'static,
    after: Option<Position>,
    into: F,
) -> Result<F, Box<Problem>> {
    let ReadyQuery { query, cost } = ReadyQuery::compile(job, query).await?;
    let events = snapshot.read_compiled(query, ReadOptions { after, ..ReadOptions::default() });
    let folded = job.run(cost, Fold { events, into }).await?;
    Ok(folded.into)
}

/// A fold in progress.
struct Fold<F> {
    events: Events,
    into: F,
}

impl<F: Folding> Task for Fold<F> {
    fn proceed(&mut self, work: Work) -> Result<Progress, Box<Problem>> {
        self.events.bound(work);
        while !self.into.is_done() {
            let steps = match self.events.next() {
                Ok(Some(event)) => self.into.fold(&event),
                Ok(None) => break,
                Err(ReadError::Stopped(_)) => return Ok(Progress::More),
                Err(error) => return Err(error.into()),
            };
            self.events.spend(steps);
        }
        Ok(Progress::Done)
    }
}
