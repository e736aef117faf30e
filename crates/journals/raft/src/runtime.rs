//! A runtime that is turned by hand: it polls what is ready, one task after the other, in the order
//! in which they became ready. In production a task of tokio's turns it; a test can turn it by a
//! seed. It has no threads, and its time is that of a [`Clock`].
//!
//! What runs in it finds it through a variable of the thread that turns it, because the library
//! spawns tasks and asks for the time without a handle. A thread may turn several runtimes, one
//! after the other.

use openraft::{AsyncRuntime, Instant as _, OptionalSend};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::sync::oneshot;
use wellspring_log::Clock;

thread_local! {
    /// The runtime that this thread turns.
    static TURNED: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The runtime of one node.
#[derive(Clone)]
pub(crate) struct HandRuntime(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct State {
    /// In the order in which they became ready.
    ready: VecDeque<Arc<Task>>,
    /// Wakers by the time at which they are due, and a number that tells equal ones apart.
    timers: BTreeMap<(u64, u64), Waker>,
    /// All tasks that are not done, by number.
    tasks: BTreeMap<u64, Arc<Task>>,
    /// Of the last timer or task.
    last_number: u64,
    /// Nothing is polled or spawned any more.
    has_ended: bool,
    /// Whoever is woken when something is ready.
    sleeper: Option<Waker>,
}

/// The work that was done between two turns of a runtime, when no task was ready.
pub(crate) enum BetweenTurns {
    /// Some, which may have made a task ready.
    Worked,
    /// None.
    Idle,
    /// None, and the runtime is not turned again.
    Ended,
}

struct Task {
    number: u64,
    /// `None` while it is polled, and once it is done.
    future: Mutex<Option<BoxedTask>>,
    /// Whether it is in the queue.
    is_queued: AtomicBool,
    runtime: Weak<Shared>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if self.is_queued.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(runtime) = self.runtime.upgrade() {
            let mut state = runtime.state();
            if !state.has_ended {
                state.ready.push_back(self);
                let sleeper = state.sleeper.take();
                drop(state);
                if let Some(sleeper) = sleeper {
                    sleeper.wake();
                }
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandRuntime {
    /// A runtime with nothing to do.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> HandRuntime {
        HandRuntime(Arc::new(Shared { state: Mutex::default(), clock }))
    }

    /// Adds a task.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.0.state();
        if state.has_ended {
            return;
        }
        state.last_number += 1;
        let number = state.last_number;
        let task = Arc::new(Task {
            number,
            future: Mutex::new(Some(Box::pin(future))),
            is_queued: AtomicBool::new(false),
            runtime: Arc::downgrade(&self.0),
        });
        state.tasks.insert(number, Arc::clone(&task));
        drop(state);
        task.wake();
    }

    /// Polls until nothing is ready. Returns when the next timer is due, in µs of the clock.
    pub(crate) fn turn(&self) -> Option<u64> {
        let before = TURNED.replace(Some(Arc::clone(&self.0)));
        let due = loop {
            let now_us = self.0.clock.monotonic_us();
            let (task, due) = {
                let mut state = self.0.state();
                let first =
                    |state: &State| state.timers.first_key_value().map(|((due, _), _)| *due);
                if first(&state).is_some_and(|due| due <= now_us) {
                    let later = state.timers.split_off(&(now_us + 1, 0));
                    let fired = std::mem::replace(&mut state.timers, later);
                    drop(state);
                    fired.into_values().for_each(Waker::wake);
                    state = self.0.state();
                }
                let due = first(&state);
                (state.ready.pop_front(), due)
            };
            match task {
                Some(task) => self.poll(&task),
                None => break due,
            }
        };
        TURNED.set(before);
        due
    }

    /// Turns it until `between` says that it ends, which is called whenever nothing is ready. In a
    /// task of tokio's, with a clock that goes like tokio's; other tasks of the thread take turns
    /// with it.
    pub(crate) async fn serve(&self, mut between: impl FnMut() -> BetweenTurns) {
        let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
        let mut timer_due_us = None;
        let serving = poll_fn(|context| {
            loop {
                let due_us = self.turn();
                match between() {
                    BetweenTurns::Ended => return Poll::Ready(()),
                    BetweenTurns::Worked => {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    BetweenTurns::Idle => {}
                }
                if timer_due_us != due_us {
                    let left = due_us.map(|due| due.saturating_sub(self.0.clock.monotonic_us()));
                    let left = Duration::from_micros(left.unwrap_or(u64::from(u32::MAX)));
                    timer.as_mut().reset(tokio::time::Instant::now() + left);
                    timer_due_us = due_us;
                }
                if timer.as_mut().poll(context).is_ready() {
                    timer_due_us = None;
                } else if self.sleeps(context.waker()) {
                    return Poll::Pending;
                }
            }
        });
        // What the tasks wait for counts as tokio's: one task of it would soon get nothing more.
        tokio::task::unconstrained(serving).await;
    }

    /// Has someone woken when something is ready, unless something is.
    fn sleeps(&self, sleeper: &Waker) -> bool {
        let mut state = self.0.state();
        let sleeps = state.ready.is_empty() && !state.has_ended;
        if sleeps {
            state.sleeper = Some(sleeper.clone());
        }
        sleeps
    }

    fn poll(&self, task: &Arc<Task>) {
        task.is_queued.store(false, Ordering::Release);
        let Some(mut future) = task.take() else { return };
        let waker = Waker::from(Arc::clone(task));
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *task.future.lock().unwrap_or_else(PoisonError::into_inner) = Some(future);
        } else {
            self.0.state().tasks.remove(&task.number);
        }
    }

    /// Drops all tasks. Whoever waits for one is told that it is gone. A task that waits for
    /// another one would keep itself alive for ever.
    pub(crate) fn end(&self) {
        let tasks = {
            let mut state = self.0.state();
            state.has_ended = true;
            state.ready.clear();
            std::mem::take(&mut state.tasks)
        };
        let before = TURNED.replace(Some(Arc::clone(&self.0)));
        tasks.into_values().for_each(|task| drop(task.take()));
        TURNED.set(before);
    }
}

impl Task {
    fn take(&self) -> Option<BoxedTask> {
        self.future.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The runtime of this thread.
fn turned() -> Arc<Shared> {
    let turned = TURNED.with_borrow(Clone::clone);
    turned.expect("the library runs only where its runtime is turned")
}

/// A time of the clock, µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandInstant(u64);

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl openraft::Instant for HandInstant {
    fn now() -> HandInstant {
        HandInstant(turned().clock.monotonic_us())
    }
}

impl Add<Duration> for HandInstant {
    type Output = HandInstant;
    fn add(self, duration: Duration) -> HandInstant {
        HandInstant(self.0.saturating_add(micros(duration)))
    }
}

impl AddAssign<Duration> for HandInstant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for HandInstant {
    type Output = HandInstant;
    fn sub(self, duration: Duration) -> HandInstant {
        HandInstant(self.0.saturating_sub(micros(duration)))
    }
}

impl Sub for HandInstant {
    type Output = Duration;
    fn sub(self, earlier: HandInstant) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl SubAssign<Duration> for HandInstant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// Ends at a time.
pub(crate) struct HandSleep {
    deadline: HandInstant,
    /// Its timer, once it was polled.
    timer: Option<(Arc<Shared>, (u64, u64))>,
}

impl HandSleep {
    fn new(deadline: HandInstant) -> HandSleep {
        HandSleep { deadline, timer: None }
    }
}

impl Future for HandSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if HandInstant::now() >= self.deadline {
            return Poll::Ready(());
        }
        let runtime = turned();
        let mut state = runtime.state();
        let key = match &self.timer {
            Some((_, key)) => *key,
            None => {
                state.last_number += 1;
                (self.deadline.0, state.last_number)
            }
        };
        state.timers.insert(key, context.waker().clone());
        drop(state);
        self.timer = Some((runtime, key));
        Poll::Pending
    }
}

impl Drop for HandSleep {
    fn drop(&mut self) {
        if let Some((runtime, key)) = self.timer.take() {
            let waker = runtime.state().timers.remove(&key);
            drop(waker);
        }
    }
}

/// A future and the time it may take.
pub(crate) struct HandTimeout<T> {
    future: Pin<Box<T>>,
    sleep: HandSleep,
}

/// It took longer.
#[derive(Debug)]
pub(crate) struct TookTooLong;

impl fmt::Display for TookTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer in time")
    }
}

impl<T: Future> Future for HandTimeout<T> {
    type Output = Result<T::Output, TookTooLong>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(done) = self.future.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        Pin::new(&mut self.sleep).poll(context).map(|()| Err(TookTooLong))
    }
}

/// The result of a task of the library.
pub(crate) struct HandJoin<T>(oneshot::Receiver<T>);

/// A task has ended without a result: it panicked, or the runtime has ended.
#[derive(Debug)]
pub(crate) struct TaskGone;

impl fmt::Display for TaskGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task has ended without a result")
    }
}

impl<T> Future for HandJoin<T> {
    type Output = Result<T, TaskGone>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(|_| TaskGone)
    }
}

/// The library's door to the runtime of the thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnedRuntime;

impl AsyncRuntime for TurnedRuntime {
    type JoinError = TaskGone;
    type JoinHandle<T: OptionalSend + 'static> = HandJoin<T>;
    type Sleep = HandSleep;
    type Instant = HandInstant;
    type TimeoutError = TookTooLong;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = HandTimeout<T>;
    type ThreadLocalRng = rand::rngs::ThreadRng;
    type OneshotSender<T: OptionalSend> = openraft::async_runtime::TokioOneShotSender<T>;
    type OneshotReceiverError = oneshot::error::RecvError;
    type OneshotReceiver<T: OptionalSend> = oneshot::Receiver<T>;

    fn spawn<T>(future: T) -> HandJoin<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        let (done, result) = oneshot::channel();
        HandRuntime(turned()).spawn(async move {
            // Nobody may wait for it.
            let _ = done.send(future.await);
        });
        HandJoin(result)
    }

    fn sleep(duration: Duration) -> HandSleep {
        HandSleep::new(HandInstant::now() + duration)
    }

    fn sleep_until(deadline: HandInstant) -> HandSleep {
        HandSleep::new(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(
        duration: Duration,
        future: F,
    ) -> HandTimeout<F> {
        HandTimeout { future: Box::pin(future), sleep: TurnedRuntime::sleep(duration) }
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: HandInstant,
        future: F,
    ) -> HandTimeout<F> {
        HandTimeout { future: Box::pin(future), sleep: HandSleep::new(deadline) }
    }

    fn is_panic(_: &TaskGone) -> bool {
        true
    }

    fn thread_rng() -> rand::rngs::ThreadRng {
        rand::thread_rng()
    }

    fn oneshot<T>() -> (Self::OneshotSender<T>, oneshot::Receiver<T>)
    where
        T: OptionalSend,
    {
        let (sender, receiver) = oneshot::channel();
        (openraft::async_runtime::TokioOneShotSender(sender), receiver)
    }
}

/// Waits.
pub(crate) async fn pause(duration: Duration) {
    let _ = within(duration, std::future::pending::<()>()).await;
}

/// A future and the time it may take, in the runtime of this thread.
pub(crate) fn within<F: Future + Send>(duration: Duration, future: F) -> HandTimeout<F> {
    TurnedRuntime::timeout(duration, future)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[derive(Default)]
    struct ManualClock(AtomicU64);

    impl Clock for ManualClock {
        fn wall_us(&self) -> u64 {
            self.monotonic_us()
        }

        fn monotonic_us(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn tasks_run_in_the_order_in_which_they_became_ready_and_timers_when_due() {
        let clock = Arc::new(ManualClock::default());
        let runtime = HandRuntime::new(Arc::clone(&clock) as _);
        let told = Arc::new(Mutex::new(Vec::new()));
        for name in ["a", "b"] {
            let told = Arc::clone(&told);
            runtime.spawn(async move {
                told.lock().unwrap().push(name);
                TurnedRuntime::sleep(Duration::from_micros(if name == "a" { 20 } else { 10 }))
                    .await;
                told.lock().unwrap().push(name);
                let late = TurnedRuntime::sleep(Duration::from_micros(50));
                let timed = TurnedRuntime::timeout(Duration::from_micros(5), late);
                assert!(timed.await.is_err());
                let joined = TurnedRuntime::spawn(async move { name });
                let joined = joined.await.unwrap();
                told.lock().unwrap().push(joined);
            });
        }
        assert_eq!(runtime.turn(), Some(10));
        assert_eq!(*told.lock().unwrap(), ["a", "b"]);
        clock.0.store(10, Ordering::Relaxed);
        assert_eq!(runtime.turn(), Some(15));
        clock.0.store(30, Ordering::Relaxed);
        assert_eq!(runtime.turn(), Some(35), "of a");
        assert_eq!(*told.lock().unwrap(), ["a", "b", "b", "a", "b"]);
        clock.0.store(35, Ordering::Relaxed);
        assert_eq!(runtime.turn(), None, "timers of what is done are gone");
        assert_eq!(told.lock().unwrap().len(), 6);
    }

    #[test]
    fn an_end_tells_who_waits() {
        let runtime = HandRuntime::new(Arc::new(ManualClock::default()));
        let (sender, mut receiver) = oneshot::channel::<()>();
        runtime.spawn(async move {
            TurnedRuntime::sleep(Duration::from_secs(1)).await;
            let _ = sender.send(());
        });
        runtime.turn();
        assert!(receiver.try_recv().is_err_and(|e| e == oneshot::error::TryRecvError::Empty));
        runtime.end();
        assert!(receiver.try_recv().is_err_and(|e| e == oneshot::error::TryRecvError::Closed));
    }
}
