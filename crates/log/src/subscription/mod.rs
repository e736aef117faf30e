//! Subscriptions: a read repeated from a cursor; catch-up and live delivery are one path.
//!
//! At the end of the log a subscription registers a tag or type of each item of its query
//! (`interests`). The committer only unparks the notifier, a thread that reads the committed events
//! and wakes the subscriptions they may concern (decision 0015).

mod interests;
#[cfg(test)]
mod interests_tests;

pub(crate) use interests::Interests;

use crate::error::ReadError;
use crate::feed::Feed;
use crate::plants::{Plant, planted};
use crate::query::CompiledQuery;
use crate::read::{Events, ReadOptions, Snapshot};
use crate::segments::Segments;
use crate::threads::Signal;
use crate::waiters::TooManyWaiters;
use crate::work::Work;
use interests::{Interest, Wait, WaitOutcome};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use wellspring_format::record::RecordView;
use wellspring_types::Position;

/// A subscription at least this many events behind the head reads on before it waits.
const READS_ON: u64 = 4_096;

/// Matching events, including future ones. Idle subscriptions cost nothing: only an event that
/// shares a tag or a type with the query wakes one.
#[derive(Debug)]
pub struct Subscription {
    feed: Feed,
    segments: Arc<Segments>,
    query: Arc<CompiledQuery>,
    events: Events,
    interest: Interest,
}

impl Subscription {
    pub(crate) fn new(
        feed: Feed,
        segments: Arc<Segments>,
        query: Arc<CompiledQuery>,
        interest: Interest,
        after: Position,
    ) -> Self {
        let options = ReadOptions { after: Some(after), ..ReadOptions::default() };
        let snapshot = Snapshot::new(&feed, &segments);
        let events = snapshot.read_compiled(Arc::clone(&query), options);
        Subscription { feed, segments, query, events, interest }
    }

    /// The next matching event, waiting up to `timeout` for one; `None` if none arrived or the log
    /// closed.
    ///
    /// # Errors
    /// [`ReadError`]; the subscription keeps its place.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<RecordView<'_>>, ReadError> {
        let mut left = timeout;
        loop {
            if self.events.next()?.is_some() {
                return Ok(Some(self.events.current()));
            }
            let seen = self.position();
            if self.feed.head() <= seen {
                if left.is_zero() || self.feed.is_closed() {
                    return Ok(None);
                }
                left = self.wait(seen, left);
                if self.feed.head() <= self.position() {
                    continue;
                }
            }
            let skipped = u64::from(planted(Plant::SkipsNews) && self.position() % 8 == 7);
            let after = Some(self.position() + skipped);
            let options = ReadOptions { after, ..ReadOptions::default() };
            let snapshot = Snapshot::new(&self.feed, &self.segments);
            let work = self.events.take_work();
            self.events = snapshot.read_compiled(Arc::clone(&self.query), options);
            self.events.bound(work);
        }
    }

    /// Limits the work of subsequent [`next`](Self::next) calls, until set again; they may then
    /// fail with [`ReadError::Stopped`] and continue later.
    pub fn bound(&mut self, work: Work) {
        self.events.bound(work);
    }

    /// Charges steps for processing the event that [`next`](Self::next) has returned.
    pub fn spend(&mut self, steps: u64) {
        self.events.spend(steps);
    }

    /// Sleeps until there may be a matching event; returns the rest of the timeout.
    fn wait(&mut self, seen: Position, timeout: Duration) -> Duration {
        let interest = &mut self.interest;
        let mut refused = false;
        let left = Signal::wait(timeout, |waker| match interest.look(seen, waker, Wait::Thread) {
            Ok(outlook) => outlook == WaitOutcome::LookAgain,
            Err(TooManyWaiters { .. }) => {
                refused = true;
                true
            }
        });
        if refused {
            // Without a notifier, every move of the head wakes this thread.
            self.feed.wait_past(seen, left);
            return Duration::ZERO;
        }
        left
    }

    /// Ready when there may be a matching event for [`next`](Self::next), which must then be called
    /// without a timeout until it returns none; or when the log is closed. Otherwise the task is
    /// woken then. Spurious wake-ups are possible.
    ///
    /// # Errors
    /// [`TooManyWaiters`]. A retry helps once others have stopped waiting.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TooManyWaiters>> {
        let seen = self.position();
        if self.feed.is_closed() || self.feed.head().saturating_sub(seen) > READS_ON {
            return Poll::Ready(Ok(()));
        }
        match self.interest.look(seen, context.waker(), Wait::Task) {
            Ok(WaitOutcome::LookAgain) => Poll::Ready(Ok(())),
            Ok(WaitOutcome::Waiting) => Poll::Pending,
            Err(refused) => Poll::Ready(Err(refused)),
        }
    }

    /// Everything up to this position has been returned or does not match: where to resume after a
    /// restart. It also grows while the subscription waits.
    #[must_use]
    pub fn position(&self) -> Position {
        self.events.settled().max(self.interest.settled())
    }
}
