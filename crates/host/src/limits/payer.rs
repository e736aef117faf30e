//! The payer that a request's costs are charged to, wherever it is worked on.

use super::{ConcurrentShare, Key, Limits};
use crate::wire::problem::Problem;
use std::sync::Arc;
use std::time::Duration;

/// Longest time between two checks of a debt, which other requests may increase.
const LOOK: Duration = Duration::from_secs(1);

/// The keys of the quotas that a request counts against: its address and, if the caller is known,
/// its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaKeys {
    pub(super) address: Key,
    pub(super) account: Option<Key>,
}

impl QuotaKeys {
    /// Whether the account is known, and the request taken from its quota.
    pub(crate) fn have_account(&self) -> bool {
        self.account.is_some()
    }
}

/// The payer of a request; none if nothing is limited.
#[derive(Clone, Default)]
pub struct Payer(Option<(Arc<Limits>, QuotaKeys)>);

/// Permission to read; the time is charged.
#[derive(Clone, Default)]
pub struct Reads(Payer);

/// A subscription or long read, counted for its address and account until dropped.
#[derive(Debug, Default)]
#[must_use = "dropping it returns the share to the quota"]
pub struct HeldByClient {
    pub(super) _of_address: Option<ConcurrentShare>,
    pub(super) _of_account: Option<ConcurrentShare>,
}

/// Time that was charged in advance.
#[must_use = "dropping it puts the rest back"]
pub(crate) struct ReservedTime {
    reads: Reads,
    us: u64,
}

/// Memory counted for an address and an account until dropped.
#[derive(Default)]
#[must_use = "dropping it returns the share to the quota"]
pub struct HeldMemory {
    payer: Payer,
    held: [Option<ConcurrentShare>; 2],
    bytes: u64,
}

impl HeldMemory {
    /// Changes the amount.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: the client is at its limit; nothing has changed.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), Box<Problem>> {
        let Some((limits, _)) = &self.payer.0 else { return Ok(()) };
        limits.set_memory(&mut self.held, self.bytes, bytes as u64)?;
        self.bytes = bytes as u64;
        Ok(())
    }
}

impl Drop for ReservedTime {
    fn drop(&mut self) {
        if let Some((limits, quota_keys)) = self.reads.counting() {
            limits.put_back_reads(*quota_keys, self.us);
        }
    }
}

impl Payer {
    /// The payer with these keys.
    pub(crate) fn new(limits: &Arc<Limits>, quota_keys: QuotaKeys) -> Payer {
        Payer(Some((Arc::clone(limits), quota_keys)))
    }

    /// The keys of its quotas.
    pub(crate) fn quota_keys(&self) -> Option<QuotaKeys> {
        self.0.as_ref().map(|(_, quota_keys)| *quota_keys)
    }

    /// Charges bytes of a received body or a sent answer.
    pub fn bytes(&self, bytes: usize) {
        if let Some((limits, quota_keys)) = &self.0
            && bytes > 0
        {
            limits.charge_bytes(*quota_keys, bytes, limits.clock.monotonic_us());
        }
    }

    /// Permission to read.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: earlier reads used too much time.
    pub fn reads(&self) -> Result<Reads, Box<Problem>> {
        if let Some((limits, quota_keys)) = &self.0 {
            limits.admit_read(*quota_keys)?;
        }
        Ok(Reads(self.clone()))
    }

    /// Charges a thread's time as that of a read, in µs.
    pub fn work(&self, took_us: u64) {
        if let Some((limits, quota_keys)) =
            self.0.as_ref().filter(|(limits, _)| limits.counts_reads())
        {
            limits.charge_reads(*quota_keys, took_us, limits.clock.monotonic_us());
        }
    }

    /// A slot for another subscription, released when dropped.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: the client is at its limit.
    pub fn subscribe(&self) -> Result<HeldByClient, Box<Problem>> {
        let Some((limits, quota_keys)) = &self.0 else { return Ok(HeldByClient::default()) };
        limits.subscribe(*quota_keys)
    }

    /// The memory of this payer, none yet.
    pub(crate) fn memory(&self) -> HeldMemory {
        let held = self.0.as_ref().map(|(limits, quota_keys)| limits.no_memory(*quota_keys));
        HeldMemory { payer: self.clone(), held: held.unwrap_or_default(), bytes: 0 }
    }

    /// A slot for another piece of long work, released when dropped.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted: the client is at its limit.
    pub(crate) fn long_work(&self) -> Result<HeldByClient, Box<Problem>> {
        let Some((limits, quota_keys)) = &self.0 else { return Ok(HeldByClient::default()) };
        limits.long_work(*quota_keys)
    }

    /// Blocks while the payer's quota is overdrawn, which throttles long work instead of aborting
    /// it.
    pub async fn solvent(&self) {
        let Some((limits, quota_keys)) = &self.0 else { return };
        while let Some(owed_ns) = limits.debt_ns(*quota_keys) {
            tokio::time::sleep(Duration::from_nanos(owed_ns).min(LOOK)).await;
        }
    }
}

impl Reads {
    /// Runs a piece of the read on this thread.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some((limits, quota_keys)) = self.counting() else { return work() };
        let begun_us = limits.clock.monotonic_us();
        let done = work();
        let now_us = limits.clock.monotonic_us();
        limits.charge_reads(*quota_keys, now_us.saturating_sub(begun_us), now_us);
        done
    }

    /// Charges a thread's time in µs.
    pub(crate) fn charge(&self, us: u64) {
        if let Some((limits, quota_keys)) = self.counting() {
            limits.charge_reads(*quota_keys, us, limits.clock.monotonic_us());
        }
    }

    /// Charges µs in advance. Dropping the result returns what was not used.
    pub(crate) fn reserve(&self, us: u64) -> ReservedTime {
        self.charge(us);
        ReservedTime { reads: self.clone(), us }
    }

    fn counting(&self) -> Option<&(Arc<Limits>, QuotaKeys)> {
        self.0.0.as_ref().filter(|(limits, _)| limits.counts_reads())
    }

    pub(crate) fn payer(&self) -> &Payer {
        &self.0
    }
}
