//! Exclusive leases with fencing tokens. They are held in memory: a restart ends every lease, and
//! no earlier token is accepted again, because tokens contain the log's epoch, which only grows.

use crate::options::Clock;
use crate::plants::{Plant, planted};
use crate::threads::lock;
use crate::waiters::{Line, Slots, Ticket, TooManyWaiters};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// A granted lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Fencing token: greater than every token granted before, below 2^53.
    pub token: u64,
    /// Expiry unless renewed, µs on the monotonic clock.
    pub expires_us: u64,
}

/// Proof in an append that its client still holds a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// Name of the lease.
    pub lease: String,
    /// The token.
    pub token: u64,
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
    /// Lines by lease name. None is empty.
    lines: HashMap<String, Line>,
}

/// A lease and its holder.
#[derive(Debug)]
struct Holding {
    lease: Lease,
    holder: Box<str>,
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

    /// Grants the lease to `holder` (an account, say; empty if there are none) if it is free.
    /// Renewing and releasing it require the token and the same holder.
    ///
    /// # Errors
    /// [`LeaseError::Held`], [`LeaseError::TooMany`], [`LeaseError::NotLeading`].
    pub fn acquire(&self, name: &str, holder: &str, ttl_us: u64) -> Result<Lease, LeaseError> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        if !state.grants {
            return Err(LeaseError::NotLeading);
        }
        if let Some(Holding { lease, .. }) = state.held.get(name)
            && lease.expires_us > now_us
        {
            return Err(LeaseError::Held { remaining_us: lease.expires_us - now_us });
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
        let lease = Lease { token, expires_us: now_us.saturating_add(ttl_us) };
        state.held.insert(name.to_owned(), Holding { lease, holder: holder.into() });
        Ok(lease)
    }

    /// The next token of this epoch, if any is left.
    fn token_after(&self, last_token: u64, end_token: u64) -> Option<u64> {
        let left = end_token.checked_sub(last_token + 2)?;
        let reach = (left / STRIDE_SHARE).max(1);
        Some(last_token + 1 + self.strides.hash_one(last_token) % reach)
    }

    /// Extends a held lease to `ttl_us` from now.
    ///
    /// # Errors
    /// [`LeaseError::Lost`], [`LeaseError::NotLeading`].
    pub fn renew(
        &self,
        name: &str,
        holder: &str,
        token: u64,
        ttl_us: u64,
    ) -> Result<Lease, LeaseError> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        let lost = state.lost();
        let held = state.held.get_mut(name).filter(|held| held.is_of(holder, token, now_us));
        let lease = &mut held.ok_or(lost)?.lease;
        lease.expires_us = now_us.saturating_add(ttl_us);
        Ok(*lease)
    }

    /// Ends a held lease and wakes the first waiter in its line.
    ///
    /// # Errors
    /// [`LeaseError::Lost`], [`LeaseError::NotLeading`].
    pub fn release(&self, name: &str, holder: &str, token: u64) -> Result<(), LeaseError> {
        let now_us = self.clock.monotonic_us();
        let mut state = lock(&self.state);
        let held = state.held.get(name).filter(|held| held.is_of(holder, token, now_us));
        held.ok_or(state.lost())?;
        state.held.remove(name);
        let first = state.first_of(name);
        drop(state);
        first.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// A place in the line for a lease, taken by the first [`poll_turn`](LeaseLine::poll_turn).
    #[must_use]
    pub fn line(&self, name: &str) -> LeaseLine<'_> {
        LeaseLine { leases: self, name: name.to_owned(), place: Place::Outside }
    }

    /// Whether the fence's token holds its lease.
    pub(crate) fn holds(&self, fence: &Fence) -> bool {
        let now_us = self.clock.monotonic_us();
        let state = lock(&self.state);
        let held = state.held.get(&fence.lease);
        held.is_some_and(|held| held.lease.is_held(fence.token, now_us))
    }
}

impl Lease {
    fn is_held(&self, token: u64, now_us: u64) -> bool {
        self.token == token && self.expires_us > now_us
    }
}

impl Holding {
    fn is_of(&self, holder: &str, token: u64, now_us: u64) -> bool {
        self.lease.is_held(token, now_us) && *self.holder == *holder
    }
}

impl State {
    /// The error for a client whose lease is not held.
    fn lost(&self) -> LeaseError {
        if self.grants { LeaseError::Lost } else { LeaseError::NotLeading }
    }

    /// Ends all leases; returns the first waiter of each line.
    fn end_all(&mut self) -> Vec<Waker> {
        self.held.clear();
        self.lines.values().filter_map(|line| self.slots.first(line)).collect()
    }

    fn first_of(&self, name: &str) -> Option<Waker> {
        self.lines.get(name).and_then(|line| self.slots.first(line))
    }
}

/// A waiter's place in the line for a lease.
///
/// Only the first waiter in line is woken: when the lease is released, and when it becomes the
/// first. It must also check when the holder's lease expires. However many others wait, a release,
/// a renewal and an expiry each cost one wake-up.
#[derive(Debug)]
pub struct LeaseLine<'a> {
    leases: &'a Leases,
    name: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Outside,
    Behind(Ticket),
    /// It is the first and has been notified.
    First(Ticket),
}

impl LeaseLine<'_> {
    /// Ready when [`Leases::acquire`] is worth trying: the lease is free, or this waiter has just
    /// become the first and so does not know when the holder's lease expires. Spurious wake-ups are
    /// possible.
    ///
    /// # Errors
    /// [`TooManyWaiters`] if [`Leases::MAX_WAITERS`] are waiting. A retry helps once others have
    /// stopped waiting.
    pub fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TooManyWaiters>> {
        let now_us = self.leases.clock.monotonic_us();
        let mut state = lock(&self.leases.state);
        if state.held.get(&self.name).is_none_or(|held| held.lease.expires_us <= now_us) {
            return Poll::Ready(Ok(()));
        }
        let State { slots, lines, .. } = &mut *state;
        match &self.place {
            Place::Outside => {
                let mut line = lines.get(&self.name).copied().unwrap_or_default();
                match slots.join(&mut line, context.waker()) {
                    Ok(ticket) => self.place = Place::Behind(ticket),
                    Err(refused) => return Poll::Ready(Err(refused)),
                }
                lines.insert(self.name.clone(), line);
            }
            Place::Behind(ticket) | Place::First(ticket) => {
                let line = lines.get_mut(&self.name).expect("it holds this waiter");
                slots.register(line, ticket, context.waker());
            }
        }
        let line = lines.get(&self.name).expect("it holds this waiter");
        self.place = match std::mem::replace(&mut self.place, Place::Outside) {
            Place::Behind(ticket) if line.begins_with(&ticket) => {
                self.place = Place::First(ticket);
                return Poll::Ready(Ok(()));
            }
            place => place,
        };
        Poll::Pending
    }

    /// Whether this waiter has been notified that it is the first, and so must check when the
    /// holder's lease expires.
    #[must_use]
    pub fn is_first(&self) -> bool {
        matches!(self.place, Place::First(_))
    }
}

impl Drop for LeaseLine<'_> {
    fn drop(&mut self) {
        let (Place::Behind(ticket) | Place::First(ticket)) =
            std::mem::replace(&mut self.place, Place::Outside)
        else {
            return;
        };
        let mut state = lock(&self.leases.state);
        let State { slots, lines, .. } = &mut *state;
        let line = lines.get_mut(&self.name).expect("it holds this waiter");
        // Includes a waiter that was woken and gave up before it checked: the next one checks in
        // its place.
        let was_first = line.begins_with(&ticket);
        slots.leave(line, ticket);
        if line.is_empty() {
            lines.remove(&self.name);
        }
        let next = if was_first { state.first_of(&self.name) } else { None };
        drop(state);
        next.into_iter().for_each(Waker::wake);
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
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Wake;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct WakeCounter(AtomicU64);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

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
        let first = leases.acquire("a", "", 100).unwrap();
        assert_eq!(leases.acquire("a", "", 100), Err(LeaseError::Held { remaining_us: 100 }));
        clock.0.store(60, Ordering::SeqCst);
        assert_eq!(leases.renew("a", "", first.token, 100).unwrap().expires_us, 160);
        clock.0.store(160, Ordering::SeqCst);
        assert_eq!(leases.renew("a", "", first.token, 100), Err(LeaseError::Lost));
        let second = leases.acquire("a", "", 100).unwrap();
        assert!(second.token > first.token);
        let fence = |token| Fence { lease: "a".into(), token };
        assert!(leases.holds(&fence(second.token)) && !leases.holds(&fence(first.token)));
        assert_eq!(leases.release("a", "", first.token), Err(LeaseError::Lost));
        assert_eq!(leases.release("a", "", second.token), Ok(()));
        assert!(Leases::new(clock, 8).acquire("a", "", 1).unwrap().token > second.token + 1000);
    }

    #[test]
    fn an_epoch_never_grants_a_token_of_the_next() {
        let clock = Arc::new(Hand::default());
        let leases = Leases::new(clock.clone(), 7);
        lock(&leases.state).last_token = 8 * TOKENS_PER_EPOCH - 2;
        let last = leases.acquire("a", "", 1).unwrap().token;
        assert_eq!(leases.acquire("b", "", 1), Err(LeaseError::TooMany));
        assert!(Leases::new(clock, 8).acquire("a", "", 1).unwrap().token > last);
    }

    fn poll(line: &mut LeaseLine<'_>, waker: &Waker) -> Poll<Result<(), TooManyWaiters>> {
        line.poll_turn(&mut Context::from_waker(waker))
    }

    const GO: Poll<Result<(), TooManyWaiters>> = Poll::Ready(Ok(()));

    #[test]
    fn a_release_wakes_only_the_first_waiter() {
        let leases = Leases::new(Arc::new(Hand::default()), 1);
        let counts: Vec<_> = (0..5_000).map(|_| Arc::new(WakeCounter::default())).collect();
        let wakers: Vec<_> = counts.iter().map(|count| Waker::from(Arc::clone(count))).collect();
        let woken = || counts.iter().map(|count| count.0.load(Ordering::SeqCst)).sum::<u64>();
        let mut line = leases.line("a");
        assert_eq!(poll(&mut line, &wakers[0]), GO, "it is free");
        let lease = leases.acquire("a", "", 100).unwrap();
        let mut lines: Vec<_> = wakers.iter().map(|_| leases.line("a")).collect();
        assert_eq!(poll(&mut lines[0], &wakers[0]), GO, "the first has to know the holder's time");
        assert!(lines[0].is_first());
        for _ in 0..3 {
            let polled = lines.iter_mut().zip(&wakers).map(|(line, waker)| poll(line, waker));
            assert!(polled.into_iter().all(|polled| polled.is_pending()));
        }
        assert_eq!((woken(), lock(&leases.state).slots.taken()), (0, 5_000));
        leases.renew("a", "", lease.token, 200).unwrap();
        leases.release("a", "", lease.token).unwrap();
        assert_eq!((woken(), counts[0].0.load(Ordering::SeqCst)), (1, 1));
        assert_eq!(poll(&mut lines[0], &wakers[0]), GO);
        leases.acquire("a", "", 100).unwrap();
        drop(lines.remove(0));
        assert_eq!((woken(), counts[1].0.load(Ordering::SeqCst)), (2, 1), "it stands first now");
        drop(lines.remove(7));
        assert_eq!(woken(), 2);
        drop(lines);
        assert!(lock(&leases.state).lines.is_empty());
        assert_eq!(lock(&leases.state).slots.taken(), 0);
    }

    #[test]
    fn a_waiter_that_is_woken_and_gives_up_passes_it_on() {
        let leases = Leases::new(Arc::new(Hand::default()), 1);
        let counts = [Arc::new(WakeCounter::default()), Arc::new(WakeCounter::default())];
        let wakers = counts.clone().map(Waker::from);
        let lease = leases.acquire("a", "", 100).unwrap();
        let (mut first, mut second) = (leases.line("a"), leases.line("a"));
        assert_eq!(poll(&mut first, &wakers[0]), GO);
        assert!(
            poll(&mut first, &wakers[0]).is_pending() && poll(&mut second, &wakers[1]).is_pending()
        );
        leases.release("a", "", lease.token).unwrap();
        drop(first);
        assert_eq!(counts[1].0.load(Ordering::SeqCst), 1);
        assert_eq!(poll(&mut second, &wakers[1]), GO);
    }

    #[test]
    fn the_token_alone_is_of_no_use_to_another_holder() {
        let leases = Leases::new(Arc::new(Hand::default()), 1);
        let token = leases.acquire("a", "eve", 100).unwrap().token;
        assert_eq!(leases.renew("a", "olga", token, 100), Err(LeaseError::Lost));
        assert_eq!(leases.release("a", "olga", token), Err(LeaseError::Lost));
        assert_eq!(leases.release("a", "eve", token), Ok(()));
    }

    #[test]
    fn a_token_does_not_tell_the_next_one() {
        let steps = |leases: &Leases| {
            let mut last = leases.acquire("0", "", 1).unwrap().token;
            let steps = (1..200).map(|n| {
                let token = leases.acquire(&n.to_string(), "", 1).unwrap().token;
                token - std::mem::replace(&mut last, token)
            });
            steps.collect::<Vec<u64>>()
        };
        let clock = Arc::new(Hand::default());
        let (one, other) = (Leases::new(clock.clone(), 7), Leases::new(clock, 7));
        let (one, other) = (steps(&one), steps(&other));
        assert!(one.iter().all(|&step| (1..=4_096).contains(&step)));
        assert_ne!(one, other, "they differ from one opening to the next");
        let distinct: std::collections::BTreeSet<_> = one.iter().collect();
        assert!(distinct.len() > 150, "{} steps in 199 grants", distinct.len());
    }
}
