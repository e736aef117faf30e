//! SIGHUP: files are looked at at once, not when it is time.

use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// It is time.
    Due,
    /// Somebody asks.
    Asked,
}

/// The signals that come from now on; none, where they cannot be watched.
pub(crate) struct Hangups(Option<Signal>);

impl Hangups {
    /// Watches. The signal no longer ends the process then.
    pub(crate) fn watch() -> Hangups {
        let watched = signal(SignalKind::hangup());
        if let Err(error) = &watched {
            tracing::warn!(%error, "cannot handle SIGHUP; files are checked periodically instead");
        }
        Hangups(watched.ok())
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self) {
        if let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }

    /// Waits for the next, for so long at the most.
    pub(crate) async fn within(&mut self, rest: Duration) -> Woken {
        match tokio::time::timeout(rest, self.next()).await {
            Ok(()) => Woken::Asked,
            Err(_) => Woken::Due,
        }
    }
}
