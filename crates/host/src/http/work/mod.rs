//! The room for bounded work. What is short is done by the thread that serves; what may be long is
//! done elsewhere, on threads kept for it, so that a serving thread is held for a fraction of a
//! millisecond whatever a request asks for.
//!
//! ```text
//! request ── Job ── brief(price, …)   parse, compile, write out: size-bounded; own lane
//!             └──── run(task)         here for ≤ 1,024 steps, the rest elsewhere: a permit, turns in
//!                                     a lane, a flag that ends it when the client leaves, a deadline
//! ```
//!
//! A job is charged to its payer: what a long one takes is reserved when it is admitted and settled
//! by what it took. Its permit belongs to the work and not to the future that waits for it, so that
//! requests whose clients have gone count until their work has ended.

mod job;
mod lane;
mod permit;
mod price;

pub use job::short_work;
pub use job::{Job, Progress, Task};
pub(crate) use permit::Permit;
pub use price::Price;

use super::config::HttpConfig;
use crate::stats::Stats;
use crate::wire::problem::{self, Problem};
use lane::Lane;
use permit::Permits;
use std::sync::Arc;
use wellspring_log::Clock;

/// See the module.
pub(crate) struct WorkRoom {
    permits: Permits,
    /// For work whose size bounds it, to tens of ms: it does not wait behind long work.
    brief: Lane,
    /// For work that only its deadline bounds.
    long: Lane,
    /// For searches through what a view has folded, which cannot pause: half of the cores are left.
    views: Lane,
    clock: Arc<dyn Clock>,
    /// What a job may take, in µs.
    limit_us: u64,
}

impl WorkRoom {
    /// An empty one.
    pub(crate) fn new(
        config: &HttpConfig,
        threads: usize,
        stats: &Arc<Stats>,
        clock: &Arc<dyn Clock>,
    ) -> WorkRoom {
        WorkRoom {
            permits: Permits::new(config.max_long_reads, stats),
            brief: Lane::new(threads, clock),
            long: Lane::new(threads, clock),
            views: Lane::new(threads / 2, clock),
            clock: Arc::clone(clock),
            limit_us: config.max_fold_ms.saturating_mul(1_000),
        }
    }
}

/// Does blocking work on a thread kept for it: what waits for the device or for other threads more
/// than it computes. What computes goes through a [`Job`].
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
