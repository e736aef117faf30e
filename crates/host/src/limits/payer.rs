//! Who is charged for a request, wherever it is worked on.

use super::{ConcurrentShare, Key, Limits};
use crate::wire::problem::Problem;
use std::sync::Arc;
use std::time::Duration;

/// Longest time without a look whether a debt is gone: others may add to it.
const LOOK: Duration = Duration::from_secs(1);

/// Whose it is: an address' and, if it is known who asks, an account's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purse {
    pub(super) address: Key,
    pub(super) account: Option<Key>,
}

/// Who pays for a request; nobody, if nothing is limited.
#[derive(Clone, Default)]
pub struct Payer(Option<(Arc<Limits>, Purse)>);

/// A read that may be made, and is charged for the time it takes.
#[derive(Clone, Default)]
pub struct Reads(Payer);

/// A subscription or a long read that is counted for its address and its account until this is
/// dropped.
#[derive(Debug, Default)]
#[must_use = "what is dropped is given back"]
pub struct HeldByClient {
    pub(super) _of_address: Option<ConcurrentShare>,
    pub(super) _of_account: Option<ConcurrentShare>,
}

/// Time that was charged before it is taken.
#[must_use = "what is dropped is put back"]
pub(crate) struct ReservedTime {
    reads: Reads,
    us: u64,
}

/// Memory that is counted for an address and an account until this is dropped.
#[derive(Default)]
#[must_use = "what is dropped is given back"]
pub struct HeldMemory {
    payer: Payer,
    held: [Option<ConcurrentShare>; 2],
    bytes: u64,
}

impl HeldMemory {
    /// Makes it so many bytes.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: the client has as much as it may; nothing has changed.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), Box<Problem>> {
        let Some((limits, _)) = &self.payer.0 else { return Ok(()) };
        limits.set_memory(&mut self.held, self.bytes, bytes as u64)?;
        self.bytes = bytes as u64;
        Ok(())
    }
}

impl Drop for ReservedTime {
    fn drop(&mut self) {
        if let Some((limits, purse)) = self.reads.counting() {
            limits.put_back_reads(*purse, self.us);
        }
    }
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
    pub fn reads(&self) -> Result<Reads, Box<Problem>> {
        if let Some((limits, purse)) = &self.0 {
            limits.admit_read(*purse)?;
        }
        Ok(Reads(self.clone()))
    }

    /// Charges time of a thread that was spent like a read's, in µs.
    pub fn work(&self, took_us: u64) {
        if let Some((limits, purse)) = self.0.as_ref().filter(|(limits, _)| limits.counts_reads()) {
            limits.charge_reads(*purse, took_us, limits.clock.monotonic_us());
        }
    }

    /// Room for another subscription, kept until what is returned is dropped.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: it has as many as it may.
    pub fn subscribe(&self) -> Result<HeldByClient, Box<Problem>> {
        let Some((limits, purse)) = &self.0 else { return Ok(HeldByClient::default()) };
        limits.subscribe(*purse)
    }

    /// Memory of this payer, none yet.
    pub(crate) fn memory(&self) -> HeldMemory {
        let held = self.0.as_ref().map(|(limits, purse)| limits.no_memory(*purse));
        HeldMemory { payer: self.clone(), held: held.unwrap_or_default(), bytes: 0 }
    }

    /// Room for another piece of long work, kept until what is returned is dropped.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: it has as much under way as it may.
    pub(crate) fn long_work(&self) -> Result<HeldByClient, Box<Problem>> {
        let Some((limits, purse)) = &self.0 else { return Ok(HeldByClient::default()) };
        limits.long_work(*purse)
    }

    /// Waits until nothing is owed: what goes on for long is slowed down, not cut.
    pub async fn solvent(&self) {
        let Some((limits, purse)) = &self.0 else { return };
        while let Some(owed_ns) = limits.debt_ns(*purse) {
            tokio::time::sleep(Duration::from_nanos(owed_ns).min(LOOK)).await;
        }
    }
}

impl Reads {
    /// Does a piece of the read on this thread.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some((limits, purse)) = self.counting() else { return work() };
        let begun_us = limits.clock.monotonic_us();
        let done = work();
        let now_us = limits.clock.monotonic_us();
        limits.charge_reads(*purse, now_us.saturating_sub(begun_us), now_us);
        done
    }

    /// Charges µs of a thread's time.
    pub(crate) fn charge(&self, us: u64) {
        if let Some((limits, purse)) = self.counting() {
            limits.charge_reads(*purse, us, limits.clock.monotonic_us());
        }
    }

    /// Charges µs before they are taken. Dropping what is returned puts them back; what was taken
    /// by then has been charged.
    pub(crate) fn reserve(&self, us: u64) -> ReservedTime {
        self.charge(us);
        ReservedTime { reads: self.clone(), us }
    }

    fn counting(&self) -> Option<&(Arc<Limits>, Purse)> {
        self.0.0.as_ref().filter(|(limits, _)| limits.counts_reads())
    }

    /// Who pays for it.
    pub(crate) fn payer(&self) -> &Payer {
        &self.0
    }
}
