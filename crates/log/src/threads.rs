//! The door through which the log starts threads, and how they sleep and lock.

use crate::options::{Clock, SystemClock};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Starts a named thread.
#[allow(clippy::disallowed_methods)] // the door
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Takes a mutex of this crate, whether or not a thread panicked while it held it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the log's mutexes guard is consistent between statements that can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets another thread that waits for this core run first.
pub(crate) fn give_way() {
    std::thread::yield_now();
}

/// Starts a named thread that gives way to every other of the process where the system can be told
/// so.
pub(crate) fn spawn_idle(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    spawn(name, move || {
        // Of this thread alone: Linux has a priority for each. Whether it is taken is no matter.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, 19);
        body();
    })
}

/// A moment, in µs, for threads that measure or wait: none of what it decides is in any event.
pub(crate) fn now_us() -> u64 {
    SystemClock.monotonic_us()
}

/// A thread that sleeps until it is woken, as the waiters of this crate wake: through a [`Waker`].
#[derive(Debug, Default)]
pub(crate) struct Signal {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *lock(&self.woken) = true;
        self.changed.notify_one();
    }
}

thread_local! {
    /// One for each thread, made when it first waits.
    static OWN: (Arc<Signal>, Waker) = {
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        (signal, waker)
    };
}

impl Signal {
    /// Sleeps until `is_ready`, which registers the waker that it is given and then looks, says so;
    /// at most for `timeout`. It is asked again at every wake-up. Tells what is left of the
    /// timeout.
    pub(crate) fn wait(timeout: Duration, mut is_ready: impl FnMut(&Waker) -> bool) -> Duration {
        let timeout_us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        let deadline_us = now_us().saturating_add(timeout_us);
        OWN.with(|(signal, waker)| {
            loop {
                // Before registering: what wakes from now on is not missed.
                *lock(&signal.woken) = false;
                let ready = is_ready(waker);
                let left = Duration::from_micros(deadline_us.saturating_sub(now_us()));
                if ready || left.is_zero() {
                    return left;
                }
                let asleep = lock(&signal.woken);
                let waited = signal.changed.wait_timeout_while(asleep, left, |woken| !*woken);
                drop(waited);
            }
        })
    }
}
