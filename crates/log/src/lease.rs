//! Exclusive leases with fencing tokens. Held in memory: a restart ends every
//! lease, and no token from before it is accepted again, because tokens carry
//! the log's epoch, which only grows.

use std::task::{Context, Poll};

/// A lease that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Fencing token: greater than every token granted before, below 2^53.
    pub token: u64,
    /// When it ends unless renewed, µs on the monotonic clock.
    pub expires_us: u64,
}

/// What an append carries to prove that its client still holds a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// Name of the lease.
    pub lease: String,
    /// Token it was granted with.
    pub token: u64,
}

/// Why a lease was not granted, renewed or released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseError {
    /// Another client holds it for so many more µs. Retry after that.
    Held {
        /// µs until it ends unless renewed.
        remaining_us: u64,
    },
    /// It has expired or was granted anew; the token is worth nothing any more.
    Lost,
    /// More leases than [`Leases::MAX`] exist. Retry later.
    TooMany,
}

/// The leases of one log.
#[derive(Debug)]
pub struct Leases;

impl Leases {
    /// Most leases at a time.
    pub const MAX: usize = 100_000;

    /// Grants the lease if nobody holds it.
    ///
    /// # Errors
    /// [`LeaseError::Held`], [`LeaseError::TooMany`].
    pub fn acquire(&self, name: &str, ttl_us: u64) -> Result<Lease, LeaseError> {
        todo!("{name} {ttl_us}")
    }

    /// Extends a held lease to `ttl_us` from now.
    ///
    /// # Errors
    /// [`LeaseError::Lost`].
    pub fn renew(&self, name: &str, token: u64, ttl_us: u64) -> Result<Lease, LeaseError> {
        todo!("{name} {token} {ttl_us}")
    }

    /// Ends a held lease.
    ///
    /// # Errors
    /// [`LeaseError::Lost`].
    pub fn release(&self, name: &str, token: u64) -> Result<(), LeaseError> {
        todo!("{name} {token}")
    }

    /// Ready when some lease of that name may have become free through a release; the
    /// caller must also retry by itself when the holder's time is up.
    pub fn poll_released(&self, name: &str, context: &mut Context<'_>) -> Poll<()> {
        todo!("{name} {context:?}")
    }
}
