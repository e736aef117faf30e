//! Exclusive leases with fencing tokens. They are held in memory: a restart ends every lease, and
//! no earlier token is accepted again, because tokens contain the log's epoch, which only grows.

mod end;
mod fence;
mod line;

pub use end::LeaseEnd;
pub use fence::LeaseProof;
pub use line::LeaseLine;

use crate::options::Clock;
use crate::plants::{Plant, planted};
use crate::threads::lock;
use crate::waiters::{Line, Slots, Wakers};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// A granted lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Fencing token: greater than every token granted before, below 2^53.
    pub token: u64,
    /// Expiry unless renewed, µs on the monotonic clock.
    pub expires_us: u64,
}

/// Who asks for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseHolder<'a> {
    /// An account, say; empty if there are none. Renewing and releasing require the same.
    pub account: &'a str,
    /// A name that the client has chosen. Asking again under it is no other request: it gets the
    /// lease that the first one was granted, whose answer may have been lost.
    pub chosen: Option<&'a str>,
}

impl<'a> From<&'a str> for LeaseHolder<'a> {
    /// Without a name of its own choice.
    fn from(account: &'a str) -> LeaseHolder<'a> {
        LeaseHolder { account, chosen: None }
    }
}

/// Why a lease was not granted, renewed or released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseError {
    /// Another client holds it. Retry after its remaining time.
    Held {
        /// µs until it expires unless renewed.
        remaining_us: u64,
    },
    /// It has expired or was granted to another client; the token is invalid.
    Lost,
    /// [`Leases::MAX`] leases exist. Retry later.
    TooMany,
    /// This node does not lead the log, and only the leader grants leases.
    NotLeading,
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaseError::Held { remaining_us } => {
                write!(f, "held by another client for {} ms more", remaining_us.div_ceil(1000))
            }
            LeaseError::Lost => write!(f, "expired or granted to another client since"),
            LeaseError::NotLeading => write!(f, "this node does not lead the log"),
            LeaseError::TooMany => write!(f, "the limit of {} leases is reached", Leases::MAX),
        }
    }
}

impl std::error::Error for LeaseError {}

/// The leases of one log.
pub struct Leases {
    clock: Arc<dyn Clock>,
    /// Randomly keyed, so that the distance between tokens is unpredictable.
    strides: RandomState,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: HashMap<String, Holding>,
    last_token: u64,
    /// The first token of the next epoch.
    end_token: u64,
    /// Whether this node leads the log and so grants leases.
    grants: bool,
    slots: Slots,
    /// Lines by lease name of those who wait for it. None is empty.
    lines: HashMap<String, Line>,
    /// Lines by lease name of those who wait for its end. None is empty.
    ends: HashMap<String, Line>,
}

/// A lease and its holder.
#[derive(Debug)]
struct Holding {
    lease: Lease,
    account: Box<str>,
    chosen: Option<Box<str>>,
}

/// Number of tokens in an epoch.
const TOKENS_PER_EPOCH: u64 = 1 << 32;
/// The next token is chosen at random within this fraction of the remaining ones. The first token
/// of an epoch is thus one of 4,096, and 18 million can be granted: each grant uses half a fraction
/// on average, so after 2^21 × ln 2^12 grants 2^20 tokens are left, which are granted one by one.
const STRIDE_SHARE: u64 = 1 << 20;

impl Leases {
    /// Maximum number of leases.
    pub const MAX: usize = 100_000;
    /// Maximum number of tasks waiting for leases.
    pub const MAX_WAITERS: usize = 1 << 16;

    pub(crate) fn new(clock: Arc<dyn Clock>, epoch: u64) -> Leases {
        let state = State {
            held: HashMap::new(),
            last_token: epoch * TOKENS_PER_EPOCH,
            end_token: (epoch + 1) * TOKENS_PER_EPOCH,
            grants: true,
            slots: Slots::bounded(Leases::MAX_WAITERS),
            lines: HashMap::new(),
            ends: HashMap::new(),
        };
        Leases { clock, strides: RandomState::new(), state: Mutex::new(state) }
    }

    /// Starts granting leases in an epoch greater than all before, and ends those held. Returns the
    /// wakers to call.
    #[must_use]
    pub(crate) fn begin_epoch(&self, epoch: u64) -> Vec<Waker> {
        let mut state = lock(&self.state);
        let last_token = epoch * TOKENS_PER_EPOCH;
        assert!(last_token >= state.end_token, "epochs only grow");
        if planted(Plant::OldTokens) {
            state.grants = true;
            return Vec::new();
        }
        state.last_token = last_token;
        state.end_token = last_token + TOKENS_PER_EPOCH;
        state.grants = true;
        state.end_all()
    }

    /// Ends all leases and grants none until the next epoch, because another node may. Returns the
    /// wakers to call.
    #[must_use]
    pub(crate) fn suspend(&self) -> Vec<Waker> {
        let mut state = lock(&self.state);
        state.grants = false;
        state.end_all()
    }

    /// Grants the lease if it is free, or if the same holder has it under a name of its own choice:
    /// then with the same token, and for at least this time. Renewing and releasing it require the
    /// token and the same account.
    ///
    /// # Errors
    /// [`LeaseError::Held`], [`LeaseError::TooMany`], [`LeaseError::NotLeading`].
    pub fn acquire<'a>(
        &self,
        name: &str,
        holder: impl Into<LeaseHolder<'a>>,
        ttl_us: u64,
    ) -> Result<Lease, LeaseError> {
        let holder = holder.into();
        let now_us = self.clock.monotonic_us();
        let expires_us = now_us.saturating_add(ttl_us);
        let mut state = lock(&self.state);
        if !state.grants {
            return Err(LeaseError::NotLeading);
        }
        if let Some(held) = state.held.get_mut(name)
            && held.lease.expires_us > now_us
        {
            let lease = &mut held.lease;
            if holder.chosen.is_none()
                || (holder.account, holder.chosen) != (&*held.account, held.chosen.as_deref())
            {
                return Err(LeaseError::Held { remaining_us: lease.expires_us - now_us });
            }
            lease.expires_us = lease.expires_us.max(expires_us);
            return Ok(*lease);
        }
        if state.held.len() >= Leases::MAX && !state.held.contains_key(name) {
            state.held.retain(|_, held| held.lease.expires_us > now_us);
            if state.held.len() >= Leases::MAX {
                return Err(LeaseError::TooMany);
            }
        }
        let next = self.token_after(state.last_token, state.end_token);
        let token = next.ok_or(LeaseError::TooMany)?;
        assert!(token > state.last_token && token < state.end_token, "tokens grow in their epoch");
        state.last_token = token;
        let lease = Lease { token, expires_us };
        let (account, chosen) = (holder.account.into(), holder.chosen.map(Into::into));
        state.held.insert(name.to_owned(), Holding { lease, account, chosen });
        let mut ended = state.rouse_ends(name);
        drop(state);
        ended.wake();
        Ok(lease)
    }

    /// The next token of this epoch, if any is left.
    fn token_after(&self, last_token: u64, end_token: u64) -> Option<u64> {
        let left = end_token.checked_sub(last_token + 2)?;
        let reach = (left / STRIDE_SHARE).max(1);
        Some(last_token + 1 + self.strides.hash_one(last_token) % reach)
    }

    /// Holds a lease for `ttl_us` from now.
    ///
    /// # Errors
    /// [`LeaseError::Lost`], [`LeaseError::NotLeading`].
    pub fn renew(
        &self,
        name: &str,
        account: &str,
        token: u64,
        ttl_us: u64,
    ) -> Result<Lease, LeaseError> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        let lost = state.lost();
        let held = state.held.get_mut(name).filter(|held| held.is_of(account, token, now_us));
        let lease = &mut held.ok_or(lost)?.lease;
        let before_us = lease.expires_us;
        lease.expires_us = now_us.saturating_add(ttl_us);
        let lease = *lease;
        if lease.expires_us < before_us {
            let mut nearer = state.rouse_ends(name);
            drop(state);
            nearer.wake();
        }
        Ok(lease)
    }

    /// Ends a held lease; wakes the first waiter in its line, and all who wait for its end.
    ///
    /// # Errors
    /// [`LeaseError::Lost`], [`LeaseError::NotLeading`].
    pub fn release(&self, name: &str, account: &str, token: u64) -> Result<(), LeaseError> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        let held = state.held.get(name).filter(|held| held.is_of(account, token, now_us));
        held.ok_or(state.lost())?;
        state.held.remove(name);
        let (first, mut ended) = (state.first_of(name), state.rouse_ends(name));
        drop(state);
        first.into_iter().for_each(Waker::wake);
        ended.wake();
        Ok(())
    }

    /// A place in the line for a lease, taken by the first [`poll_turn`](LeaseLine::poll_turn).
    #[must_use]
    pub fn line(&self, name: &str) -> LeaseLine<'_> {
        LeaseLine::of(self, name)
    }

    /// The end of the lease that a proof names, to be waited for.
    #[must_use]
    pub fn end_of(&self, proof: LeaseProof) -> LeaseEnd<'_> {
        LeaseEnd::of(self, proof)
    }

    /// µs until the proof's lease expires unless renewed.
    ///
    /// # Errors
    /// [`LeaseError::Lost`] if the proof's token does not hold it, [`LeaseError::NotLeading`].
    pub fn remaining_us(&self, proof: &LeaseProof) -> Result<u64, LeaseError> {
        let now_us = self.clock.monotonic_us();
        let state = lock(&self.state);
        state.remaining_us(proof, now_us).ok_or(state.lost())
    }
}

impl Lease {
    fn is_held(&self, token: u64, now_us: u64) -> bool {
        self.token == token && self.expires_us > now_us
    }
}

impl Holding {
    fn is_of(&self, account: &str, token: u64, now_us: u64) -> bool {
        self.lease.is_held(token, now_us) && *self.account == *account
    }
}

impl State {
    /// The error for a client whose lease is not held.
    fn lost(&self) -> LeaseError {
        if self.grants { LeaseError::Lost } else { LeaseError::NotLeading }
    }

    /// Ends all leases; returns the first waiter of each line, and all who wait for an end.
    fn end_all(&mut self) -> Vec<Waker> {
        self.held.clear();
        let mut ended = Wakers::unbounded();
        for (_, mut line) in self.ends.drain() {
            self.slots.rouse(&mut line, 0, &mut ended);
        }
        let firsts = self.lines.values().filter_map(|line| self.slots.first(line));
        firsts.chain(ended.into_vec()).collect()
    }

    fn remaining_us(&self, proof: &LeaseProof, now_us: u64) -> Option<u64> {
        let held = self.held.get(&proof.lease)?;
        held.lease.is_held(proof.token, now_us).then(|| held.lease.expires_us - now_us)
    }

    /// All who wait for the end of a lease, which has come, or come nearer. They are as many as
    /// subscriptions at most.
    fn rouse_ends(&mut self, name: &str) -> Wakers {
        let mut wakers = Wakers::unbounded();
        if let Some(mut line) = self.ends.remove(name) {
            self.slots.rouse(&mut line, 0, &mut wakers);
        }
        wakers
    }

    fn first_of(&self, name: &str) -> Option<Waker> {
        self.lines.get(name).and_then(|line| self.slots.first(line))
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
