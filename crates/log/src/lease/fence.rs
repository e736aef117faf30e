//! A lease as a [`Fence`] of appends.

use super::Leases;
use crate::fence::{Fence, FenceRefusal};
use std::sync::Arc;

/// Proof that a client was granted a lease: its name and the fencing token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseProof {
    /// Name of the lease.
    pub lease: String,
    /// The token.
    pub token: u64,
}

/// An append that is allowed only while a lease is held. A change of the epoch has ended all
/// leases, so it needs no look of its own.
#[derive(Debug)]
struct LeaseFence {
    leases: Arc<Leases>,
    proof: LeaseProof,
}

impl Fence for LeaseFence {
    fn holds(&self, _epoch: u64) -> Result<(), FenceRefusal> {
        let remaining = self.leases.remaining_us(&self.proof);
        remaining.map(drop).map_err(|_| FenceRefusal::LeaseLost)
    }
}

impl Leases {
    /// A fence of appends that are allowed only while the proof's token holds its lease.
    #[must_use]
    pub fn fence(self: &Arc<Self>, proof: LeaseProof) -> Arc<dyn Fence> {
        Arc::new(LeaseFence { leases: Arc::clone(self), proof })
    }
}
