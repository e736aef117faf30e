//! SIGHUP: files are checked at once instead of at the next interval.

use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// The interval has passed.
    Due,
    /// A signal asks for it.
    Asked,
}

/// Signals from now on; none where they cannot be handled.
pub(crate) struct Hangups(Option<Signal>);

impl Hangups {
    /// Starts handling the signal, which then no longer ends the process.
    pub(crate) fn watch() -> Hangups {
        let watched = signal(SignalKind::hangup());
        if let Err(error) = &watched {
            tracing::warn!(%error, "cannot handle SIGHUP; files are checked periodically instead");
        }
        Hangups(watched.ok())
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        if let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }

    /// Waits for the next signal, at most this long.
    pub(crate) async fn within(&mut self, rest: Duration) -> WakeReason {
        match tokio::time::timeout(rest, self.next()).await {
            Ok(()) => WakeReason::Asked,
            Err(_) => WakeReason::Due,
        }
    }
}
