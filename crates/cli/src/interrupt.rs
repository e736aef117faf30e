//! Ctrl-C: either a last message and the exit code that shells expect, or an orderly end.

use crate::exit::{Code, Failure};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::task::Poll;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, SIGTERM or a closed terminal, for a command that ends by itself.
pub(crate) struct Interrupts {
    came: Receiver<()>,
}

impl Interrupts {
    /// From now on none of them ends the process.
    ///
    /// # Errors
    /// The system gives no thread or signal handler.
    #[allow(clippy::disallowed_methods)] // this thread only waits for a signal
    pub(crate) fn begin() -> Result<Interrupts, Failure> {
        let failed =
            |what: &str| Failure::new(Code::Unavailable, format!("no signal handler: {what}"));
        let (tell, came) = mpsc::channel();
        let (tell_begun, begun) = mpsc::channel();
        let wait = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let mut signals = match Signals::begin(&[
                    SignalKind::terminate(),
                    SignalKind::interrupt(),
                    SignalKind::hangup(),
                ]) {
                    Ok(signals) => signals,
                    Err(error) => return drop(tell_begun.send(Err(error.to_string()))),
                };
                let _ = tell_begun.send(Ok(()));
                loop {
                    signals.next().await;
                    if tell.send(()).is_err() {
                        return;
                    }
                }
            });
        };
        let spawned = std::thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
        spawned.map_err(|error| failed(&error.to_string()))?;
        match begun.recv() {
            Ok(Ok(())) => Ok(Interrupts { came }),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(failed("no runtime")),
        }
    }

    /// Whether one has come since the last look.
    pub(crate) fn came(&self) -> bool {
        self.came_within(Duration::ZERO)
    }

    /// Whether one comes within this time; waits that long if none does.
    pub(crate) fn came_within(&self, time: Duration) -> bool {
        // Without its thread nothing could end this any more.
        !matches!(self.came.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }
}

/// From now on Ctrl-C (or SIGTERM) calls `last_words` and ends the process with 130.
/// If the system gives no thread or signal handler, Ctrl-C simply ends the process.
#[allow(clippy::disallowed_methods)] // this thread only waits for a signal
pub(crate) fn on_interrupt(last_words: impl FnOnce() + Send + 'static) {
    let (tell_begun, begun) = mpsc::channel::<()>();
    let wait = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            if let Ok(mut signals) =
                Signals::begin(&[SignalKind::terminate(), SignalKind::interrupt()])
            {
                drop(tell_begun);
                signals.next().await;
                last_words();
                std::process::exit(Code::Interrupted as i32);
            }
        });
    };
    let _ = std::thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
    // Its end of the channel is dropped once it listens, or fails to: a signal before that would
    // end the process without the last words.
    let _ = begun.recv();
}

/// Signals that are waited for.
struct Signals(Vec<Signal>);

impl Signals {
    fn begin(kinds: &[SignalKind]) -> std::io::Result<Signals> {
        kinds.iter().map(|&kind| signal(kind)).collect::<Result<_, _>>().map(Signals)
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let mut ready = false;
            for signal in &mut self.0 {
                ready |= signal.poll_recv(context).is_ready();
            }
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
