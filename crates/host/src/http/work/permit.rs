//! Permits for long work: in all, and per client.

use crate::limits::{HeldByClient, Payer};
use crate::stats::{RefusalReason, Stats};
use crate::wire::problem::{self, Problem};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits for long work.
pub(super) struct Permits {
    free: Arc<Semaphore>,
    limit: usize,
    stats: Arc<Stats>,
}

/// A permit for long work, held while the work runs or its answer is in memory: never by a future
/// alone, which is dropped when its client leaves.
pub struct Permit {
    _of_all: OwnedSemaphorePermit,
    _of_client: HeldByClient,
}

impl Permits {
    /// At most `limit` at a time.
    pub(super) fn new(limit: usize, stats: &Arc<Stats>) -> Permits {
        Permits { free: Arc::new(Semaphore::new(limit)), limit, stats: Arc::clone(stats) }
    }

    /// A permit, as soon as one is free. For work whose client is limited otherwise.
    pub(super) async fn wait(&self) -> Arc<Permit> {
        let permit = Arc::clone(&self.free).acquire_owned().await;
        let _of_all = permit.expect("permits are never closed");
        Arc::new(Permit { _of_all, _of_client: HeldByClient::default() })
    }

    /// A permit.
    ///
    /// # Errors
    /// 429: this client has reached its limit. 503: the total limit is reached. Both counted; a
    /// retry helps.
    pub(super) fn take(&self, payer: &Payer) -> Result<Arc<Permit>, Box<Problem>> {
        let _of_client = payer.long_work()?;
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| {
            self.stats.refusals.count(RefusalReason::LongRead);
            problem::OVERLOADED
                .because(format!("{} long reads are in progress, the maximum", self.limit))
                .limit(self.limit as u64)
        })?;
        Ok(Arc::new(Permit { _of_all: permit, _of_client }))
    }
}
