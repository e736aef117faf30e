//! Who is charged for a request, wherever it is worked on.

use super::{Held, Key, Limits};
use crate::http::problem::Problem;
use std::sync::Arc;
use std::time::Duration;

/// Longest time without a look whether a debt is gone: others may add to it.
const LOOK: Duration = Duration::from_secs(1);

/// Whose it is: an address' and, if it is known who asks, an account's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Purse {
    pub(super) address: Key,
    pub(super) account: Option<Key>,
}

/// Who pays for a request; nobody, if nothing is limited.
#[derive(Clone, Default)]
pub(crate) struct Payer(Option<(Arc<Limits>, Purse)>);

/// A read that may be made, and is charged for the time it takes.
#[derive(Clone, Default)]
pub(crate) struct Reads(Payer);

/// A subscription that is counted for its address and its account until this is dropped.
#[derive(Debug, Default)]
#[must_use = "what is dropped is given back"]
pub(crate) struct Subscribed {
    pub(super) _of_address: Option<Held>,
    pub(super) _of_account: Option<Held>,
}

impl Payer {
    /// Whoever has this purse.
    pub(crate) fn new(limits: &Arc<Limits>, purse: Purse) -> Payer {
        Payer(Some((Arc::clone(limits), purse)))
    }

    /// Whose it is.
    pub(crate) fn purse(&self) -> Option<Purse> {
        self.0.as_ref().map(|(_, purse)| *purse)
    }

    /// Charges bytes of a body that came or of an answer that goes.
    pub(crate) fn bytes(&self, bytes: usize) {
        if let Some((limits, purse)) = &self.0
            && bytes > 0
        {
            limits.charge_bytes(*purse, bytes, limits.clock.monotonic_us());
        }
    }

    /// Leave to read.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: earlier reads took too much time.
    pub(crate) fn reads(&self) -> Result<Reads, Box<Problem>> {
        if let Some((limits, purse)) = &self.0 {
            limits.admit_read(*purse)?;
        }
        Ok(Reads(self.clone()))
    }

    /// Room for another subscription, kept until what is returned is dropped.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: it has as many as it may.
    pub(crate) fn subscribe(&self) -> Result<Subscribed, Box<Problem>> {
        let Some((limits, purse)) = &self.0 else { return Ok(Subscribed::default()) };
        limits.subscribe(*purse)
    }

    /// Waits until nothing is owed: what goes on for long is slowed down, not cut.
    pub(crate) async fn solvent(&self) {
        let Some((limits, purse)) = &self.0 else { return };
        while let Some(owed_ns) = limits.debt_ns(*purse) {
            tokio::time::sleep(Duration::from_nanos(owed_ns).min(LOOK)).await;
        }
    }
}

impl Reads {
    /// Does a piece of the read on this thread.
    pub(crate) fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some((limits, purse)) = self.0.0.as_ref().filter(|(limits, _)| limits.counts_reads())
        else {
            return work();
        };
        let begun_us = limits.clock.monotonic_us();
        let done = work();
        let now_us = limits.clock.monotonic_us();
        limits.charge_reads(*purse, now_us.saturating_sub(begun_us), now_us);
        done
    }

    /// Who pays for it.
    pub(crate) fn payer(&self) -> &Payer {
        &self.0
    }
}
