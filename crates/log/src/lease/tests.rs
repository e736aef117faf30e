use super::*;
use crate::fence::FenceRefusal;
use crate::waiters::TooManyWaiters;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake};

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
    let leases = Arc::new(Leases::new(clock.clone(), 7));
    let first = leases.acquire("a", "", 100).unwrap();
    assert_eq!(leases.acquire("a", "", 100), Err(LeaseError::Held { remaining_us: 100 }));
    clock.0.store(60, Ordering::SeqCst);
    assert_eq!(leases.renew("a", "", first.token, 100).unwrap().expires_us, 160);
    clock.0.store(160, Ordering::SeqCst);
    assert_eq!(leases.renew("a", "", first.token, 100), Err(LeaseError::Lost));
    let second = leases.acquire("a", "", 100).unwrap();
    assert!(second.token > first.token);
    let fence = |token| leases.fence(LeaseProof { lease: "a".into(), token });
    assert_eq!(fence(second.token).holds(7), Ok(()));
    assert_eq!(fence(first.token).holds(7), Err(FenceRefusal::LeaseLost));
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

#[test]
fn a_holder_that_asks_again_under_its_name_gets_the_same_token() {
    let clock = Arc::new(Hand::default());
    let leases = Leases::new(clock.clone(), 1);
    let named = |account, chosen| LeaseHolder { account, chosen: Some(chosen) };
    let first = leases.acquire("a", named("ann", "worker-1"), 100).unwrap();
    clock.0.store(60, Ordering::SeqCst);
    let again = leases.acquire("a", named("ann", "worker-1"), 100).unwrap();
    assert_eq!((again.token, again.expires_us), (first.token, 160));
    let shorter = leases.acquire("a", named("ann", "worker-1"), 1).unwrap();
    assert_eq!(shorter, again, "it is never held for less than it was promised");
    let held = Err(LeaseError::Held { remaining_us: 100 });
    assert_eq!(leases.acquire("a", named("ann", "worker-2"), 100), held);
    assert_eq!(leases.acquire("a", named("bob", "worker-1"), 100), held, "of another account");
    assert_eq!(leases.acquire("a", "ann", 100), held, "without a name it is another request");
    clock.0.store(160, Ordering::SeqCst);
    let later = leases.acquire("a", named("ann", "worker-1"), 100).unwrap();
    assert!(later.token > first.token, "what has ended does not come back");
    let unnamed = leases.acquire("b", "", 100).unwrap();
    assert_eq!(leases.acquire("b", "", 100), held);
    assert_eq!(leases.release("b", "", unnamed.token), Ok(()));
}

/// Whether the end of a lease has come, and how often it woke its waiter.
fn wait_for_end<'a>(leases: &'a Leases, lease: &str, token: u64) -> (LeaseEnd<'a>, EndWaiter) {
    let count = Arc::new(WakeCounter::default());
    let mut end = leases.end_of(LeaseProof { lease: lease.into(), token });
    let waiter = EndWaiter { waker: Waker::from(Arc::clone(&count)), count };
    assert!(waiter.poll(&mut end).is_pending());
    (end, waiter)
}

struct EndWaiter {
    waker: Waker,
    count: Arc<WakeCounter>,
}

impl EndWaiter {
    fn poll(&self, end: &mut LeaseEnd<'_>) -> Poll<Result<(), TooManyWaiters>> {
        end.poll_end(&mut Context::from_waker(&self.waker))
    }

    fn woken(&self) -> u64 {
        self.count.0.load(Ordering::SeqCst)
    }
}

#[test]
fn whoever_waits_for_the_end_of_a_lease_is_told_however_it_ends() {
    let clock = Arc::new(Hand::default());
    let leases = Leases::new(clock.clone(), 1);
    let token = leases.acquire("a", "", 100).unwrap().token;
    let other = leases.acquire("b", "", 1_000).unwrap().token;
    let (mut of_other, quiet) = wait_for_end(&leases, "b", other);
    let (mut end, waiter) = wait_for_end(&leases, "a", token);
    leases.renew("a", "", token, 200).unwrap();
    assert_eq!(waiter.woken(), 0, "a renewal is no end");
    leases.renew("a", "", token, 150).unwrap();
    assert_eq!((waiter.woken(), waiter.poll(&mut end)), (1, GO), "it is to end sooner");
    assert!(waiter.poll(&mut end).is_pending());
    leases.release("a", "", token).unwrap();
    assert_eq!((waiter.woken(), waiter.poll(&mut end)), (2, GO), "released");
    drop(end);

    let token = leases.acquire("a", "", 100).unwrap().token;
    let (mut end, waiter) = wait_for_end(&leases, "a", token);
    clock.0.store(100, Ordering::SeqCst);
    assert_eq!((waiter.woken(), waiter.poll(&mut end)), (0, GO), "its time is up");
    let next = leases.acquire("a", "", 100).unwrap().token;
    assert_eq!(waiter.woken(), 1, "it has another holder");
    drop(end);

    let (mut end, waiter) = wait_for_end(&leases, "a", next);
    drop(wait_for_end(&leases, "a", next));
    assert_eq!(quiet.woken(), 0);
    leases.suspend().into_iter().for_each(Waker::wake);
    assert_eq!((waiter.woken(), waiter.poll(&mut end)), (1, GO), "this node leads no more");
    assert_eq!((quiet.woken(), quiet.poll(&mut of_other)), (1, GO));
    drop((end, of_other));
    assert!(lock(&leases.state).ends.is_empty());
    assert_eq!(lock(&leases.state).slots.taken(), 0);
}
