//! The room for bounded work: permits, turns, deadlines, and who pays. Short work runs on the
//! serving thread; potentially long work runs on dedicated threads, so that no request holds a
//! serving thread for more than a fraction of a millisecond (decision 0019).
//!
//! ```text
//! request ── Job ── brief(cost, …)   parse, compile, write out: size-bounded; own queue
//!             └──── run(task)         here for ≤ 1,024 steps, the rest elsewhere: a permit, turns in
//!                                     a queue, a flag that ends it when the client leaves, a deadline
//! ```
//!
//! A job is charged to its payer: the time of a long one is reserved when it is admitted and
//! settled afterwards. Its permit belongs to the work and not to the future that waits for it, so
//! that requests whose clients have gone count until their work has ended.

mod cost;
mod job;
mod permit;
mod queue;
mod watchdog;

pub use cost::{Cost, MAX_SHORT_BODY_BYTES};
pub use job::short_work;
pub use job::{Job, Progress, Task};
pub(crate) use permit::Permit;

use super::config::HttpConfig;
use crate::stats::Stats;
use crate::wire::problem::{self, Problem};
use permit::Permits;
use queue::WorkQueue;
use std::sync::Arc;
use watchdog::Watchdog;
use wellspring_log::Clock;

/// Most pieces of brief work that have begun. Each holds one of the threads that a runtime has
/// beside those for long work (`host/serve`).
const MOST_BRIEF: usize = 32;

/// A queue of work with a bounded number of running pieces.
pub(crate) struct WorkRoom {
    permits: Permits,
    /// For work bounded by its size to tens of ms: it does not queue behind long work.
    brief: WorkQueue,
    /// For work bounded by its deadline only.
    long: WorkQueue,
    /// For searches through a view's fold, which cannot pause: half of the cores stay free.
    views: WorkQueue,
    watchdog: Watchdog,
    clock: Arc<dyn Clock>,
    /// The time limit of a job, in µs of a processor.
    limit_us: u64,
}

impl WorkRoom {
    /// An empty room.
    pub(crate) fn new(
        config: &HttpConfig,
        threads: usize,
        stats: &Arc<Stats>,
        clock: &Arc<dyn Clock>,
    ) -> WorkRoom {
        WorkRoom {
            permits: Permits::new(config.max_long_reads, stats),
            brief: WorkQueue::new(threads, MOST_BRIEF, clock),
            // As many as there are permits.
            long: WorkQueue::new(threads, config.max_long_reads, clock),
            views: WorkQueue::new(threads / 2, config.max_long_reads, clock),
            watchdog: Watchdog::default(),
            clock: Arc::clone(clock),
            limit_us: config.max_fold_ms.saturating_mul(1_000),
        }
    }
}

/// Runs blocking work on a dedicated thread: work that mostly waits for the device or other
/// threads. Computing goes through a [`Job`].
///
/// # Errors
/// 500, logged: the work panicked.
pub async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Box<Problem>> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a blocking task panicked");
        problem::INTERNAL.because("the work failed; see the server's log")
    })
}
