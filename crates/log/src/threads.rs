//! The only place where the log starts threads, and how they sleep and lock.

use crate::options::{Clock, SystemClock};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Starts a named thread.
#[allow(clippy::disallowed_methods)] // the only place for threads
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Locks a mutex of this crate, even if a thread panicked while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The state behind the log's mutexes is consistent between statements that can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets other threads waiting for this core run first.
pub(crate) fn give_way() {
    std::thread::yield_now();
}

/// Starts a named thread with the lowest priority, where the system supports that.
pub(crate) fn spawn_idle(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    spawn(name, move || {
        // For this thread alone: Linux has a priority for each. It does not matter if this fails.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, 19);
        body();
    })
}

/// The current time in µs, for threads that measure or wait; it never influences an event.
pub(crate) fn now_us() -> u64 {
    SystemClock.monotonic_us()
}

/// A thread that sleeps until it is woken through a [`Waker`], like all waiters of this crate.
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
    /// One for each thread, created when it first waits.
    static OWN: (Arc<Signal>, Waker) = {
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        (signal, waker)
    };
}

impl Signal {
    /// Sleeps until `is_ready` returns true, at most for `timeout`. `is_ready` registers the given
    /// waker, then checks its condition; it is called again after every wake-up. Returns the rest
    /// of the timeout.
    pub(crate) fn wait(timeout: Duration, mut is_ready: impl FnMut(&Waker) -> bool) -> Duration {
        let timeout_us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        let deadline_us = now_us().saturating_add(timeout_us);
        OWN.with(|(signal, waker)| {
            loop {
                // Reset before registering, so that no later wake-up is missed.
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
