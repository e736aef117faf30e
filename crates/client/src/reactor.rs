//! Waiting for a connection on the thread that calls.

use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::timeout;

/// Drives the connections of one client while that waits for them. It has no thread of its own.
#[derive(Debug)]
pub(crate) struct Reactor(Option<Runtime>);

impl Reactor {
    /// One that drives nothing yet.
    ///
    /// # Errors
    /// The system's: it has no file descriptors left.
    pub(crate) fn new() -> io::Result<Reactor> {
        Ok(Reactor(Some(Builder::new_current_thread().enable_io().enable_time().build()?)))
    }

    /// Waits for a future on this thread, which must not be one that serves another runtime.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.0.as_ref().expect("taken only when this is dropped").block_on(future)
    }

    /// Waits at most so long; `None` if that was not enough.
    pub(crate) fn within<F: Future>(&self, most: Duration, future: F) -> Option<F::Output> {
        // In here, so that the timer finds its runtime.
        self.wait(async { timeout(most, future).await.ok() })
    }

    /// Lets connections process what happened to them while no caller waited.
    pub(crate) fn catch_up(&self) {
        self.wait(async {
            // The first lets the system tell, the second lets the connections act on it.
            yield_now().await;
            yield_now().await;
        });
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        // Waiting for a look-up of a name is not allowed everywhere, and of no use here.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
