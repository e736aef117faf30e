//! Exclusive leases with fencing tokens. Held in memory: a restart ends every
//! lease, and no token from before it is accepted again, because tokens carry
//! the log's epoch, which only grows.

use crate::options::Clock;
use crate::segments::lock;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

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

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaseError::Held { remaining_us } => {
                write!(f, "held by another client for {} ms more", remaining_us.div_ceil(1000))
            }
            LeaseError::Lost => write!(f, "expired or granted to another client since"),
            LeaseError::TooMany => write!(f, "{} leases are held; no more fit", Leases::MAX),
        }
    }
}

impl std::error::Error for LeaseError {}

/// The leases of one log.
pub struct Leases {
    clock: Arc<dyn Clock>,
    /// The first token that belongs to the next epoch.
    end_token: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<String, Lease>,
    last_token: u64,
    waiting: Vec<(String, Waker)>,
}

/// Tokens granted in one epoch before they would run into the next one's.
const TOKENS_PER_EPOCH: u64 = 1 << 32;
/// Waiting tasks kept; over it all are woken, so that those given up are forgotten.
const WAITING: usize = 4096;

impl Leases {
    /// Most leases at a time.
    pub const MAX: usize = 100_000;

    pub(crate) fn new(clock: Arc<dyn Clock>, epoch: u64) -> Leases {
        let state = State { last_token: epoch * TOKENS_PER_EPOCH, ..State::default() };
        Leases { clock, end_token: (epoch + 1) * TOKENS_PER_EPOCH, state: Mutex::new(state) }
    }

    /// Grants the lease if nobody holds it.
    ///
    /// # Errors
    /// [`LeaseError::Held`], [`LeaseError::TooMany`].
    pub fn acquire(&self, name: &str, ttl_us: u64) -> Result<Lease, LeaseError> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        if let Some(lease) = state.held.get(name)
            && lease.expires_us > now_us
        {
            return Err(LeaseError::Held { remaining_us: lease.expires_us - now_us });
        }
        if state.held.len() >= Leases::MAX && !state.held.contains_key(name) {
            state.held.retain(|_, lease| lease.expires_us > now_us);
            if state.held.len() >= Leases::MAX {
                return Err(LeaseError::TooMany);
            }
        }
        if state.last_token + 1 >= self.end_token {
            return Err(LeaseError::TooMany);
        }
        state.last_token += 1;
        let expires_us = now_us.saturating_add(ttl_us);
        let lease = Lease { token: state.last_token, expires_us };
        state.held.insert(name.to_owned(), lease);
        Ok(lease)
    }

    /// Extends a held lease to `ttl_us` from now.
    ///
    /// # Errors
    /// [`LeaseError::Lost`].
    pub fn renew(&self, name: &str, token: u64, ttl_us: u64) -> Result<Lease, LeaseError> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        let lease = state.held.get_mut(name).filter(|lease| lease.is_held(token, now_us));
        let lease = lease.ok_or(LeaseError::Lost)?;
        lease.expires_us = now_us.saturating_add(ttl_us);
        Ok(*lease)
    }

    /// Ends a held lease.
    ///
    /// # Errors
    /// [`LeaseError::Lost`].
    pub fn release(&self, name: &str, token: u64) -> Result<(), LeaseError> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        state
            .held
            .get(name)
            .filter(|lease| lease.is_held(token, now_us))
            .ok_or(LeaseError::Lost)?;
        state.held.remove(name);
        let mut woken = Vec::new();
        state.waiting.retain(|(waiting_for, waker)| {
            let released = waiting_for == name;
            if released {
                woken.push(waker.clone());
            }
            !released
        });
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Ready if the lease is free now; otherwise the task is woken at its next
    /// release. The caller must also try again by itself when the holder's time
    /// is up. Spurious wake-ups are possible.
    pub fn poll_released(&self, name: &str, context: &mut Context<'_>) -> Poll<()> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        if state.held.get(name).is_none_or(|lease| lease.expires_us <= now_us) {
            return Poll::Ready(());
        }
        let known = |(waiting_for, waker): &(String, Waker)| {
            waiting_for == name && waker.will_wake(context.waker())
        };
        if !state.waiting.iter().any(known) {
            if state.waiting.len() >= WAITING {
                state.waiting.drain(..).for_each(|(_, waker)| waker.wake());
            }
            state.waiting.push((name.to_owned(), context.waker().clone()));
        }
        Poll::Pending
    }

    /// Whether the fence's lease is held with the fence's token.
    pub(crate) fn holds(&self, fence: &Fence) -> bool {
        let now_us = self.clock.monotonic_us();
        let state = lock(&self.state);
        state.held.get(&fence.lease).is_some_and(|lease| lease.is_held(fence.token, now_us))
    }
}

impl Lease {
    fn is_held(&self, token: u64, now_us: u64) -> bool {
        self.token == token && self.expires_us > now_us
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Wake;

    /// A waker that is equal to its clones, which the standard no-op one need not be.
    struct Idle;

    impl Wake for Idle {
        fn wake(self: Arc<Self>) {}
    }
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn wall_us(&self) -> u64 {
            self.monotonic_us()
        }
        fn monotonic_us(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn one_holder_at_a_time_and_tokens_only_grow() {
        let clock = Arc::new(Hand::default());
        let leases = Leases::new(clock.clone(), 7);
        let first = leases.acquire("a", 100).unwrap();
        assert_eq!(leases.acquire("a", 100), Err(LeaseError::Held { remaining_us: 100 }));
        clock.0.store(60, Ordering::SeqCst);
        assert_eq!(leases.renew("a", first.token, 100).unwrap().expires_us, 160);
        clock.0.store(160, Ordering::SeqCst);
        assert_eq!(leases.renew("a", first.token, 100), Err(LeaseError::Lost));
        let second = leases.acquire("a", 100).unwrap();
        assert!(second.token > first.token);
        let fence = |token| Fence { lease: "a".into(), token };
        assert!(leases.holds(&fence(second.token)) && !leases.holds(&fence(first.token)));
        assert_eq!(leases.release("a", first.token), Err(LeaseError::Lost));
        assert_eq!(leases.release("a", second.token), Ok(()));
        assert!(Leases::new(clock, 8).acquire("a", 1).unwrap().token > second.token + 1000);
    }

    #[test]
    fn an_epoch_never_grants_a_token_of_the_next() {
        let clock = Arc::new(Hand::default());
        let leases = Leases::new(clock.clone(), 7);
        lock(&leases.state).last_token = 8 * TOKENS_PER_EPOCH - 2;
        let last = leases.acquire("a", 1).unwrap().token;
        assert_eq!(leases.acquire("b", 1), Err(LeaseError::TooMany));
        assert!(Leases::new(clock, 8).acquire("a", 1).unwrap().token > last);
    }

    #[test]
    fn a_release_wakes_who_waits_for_that_lease() {
        let leases = Leases::new(Arc::new(Hand::default()), 1);
        let waker = Waker::from(Arc::new(Idle));
        let mut context = Context::from_waker(&waker);
        assert!(leases.poll_released("a", &mut context).is_ready());
        let lease = leases.acquire("a", 100).unwrap();
        assert!(leases.poll_released("a", &mut context).is_pending());
        assert!(leases.poll_released("a", &mut context).is_pending());
        assert_eq!(lock(&leases.state).waiting.len(), 1);
        leases.release("a", lease.token).unwrap();
        assert!(lock(&leases.state).waiting.is_empty());
    }
}
