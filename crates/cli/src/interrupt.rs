//! Ctrl-C: either a last message and the exit code that shells expect, or an orderly end.

use crate::exit::{Code, Failure};
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::task::Poll;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, SIGTERM or a closed terminal, for a command that ends by itself.
pub(crate) struct Interrupts {
    came: Receiver<()>,
}

impl Interrupts {
    /// From now on these signals do not end the process.
    ///
    /// # Errors
    /// The system gives no thread or signal handler.
    pub(crate) fn begin() -> Result<Interrupts, Failure> {
        let (tell, came) = mpsc::channel();
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        let on_signal = move || match tell.send(()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        match listen(&kinds, on_signal) {
            Ok(()) => Ok(Interrupts { came }),
            Err(why) => Err(Failure::new(Code::Unavailable, format!("no signal handler: {why}"))),
        }
    }

    /// Whether one has arrived since the last call.
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
pub(crate) fn on_interrupt(last_words: impl FnOnce() + Send + 'static) {
    let mut last_words = Some(last_words);
    let _ = listen(&[SignalKind::terminate(), SignalKind::interrupt()], move || {
        if let Some(last_words) = last_words.take() {
            last_words();
        }
        std::process::exit(Code::Interrupted as i32);
    });
}

/// From now on a write beyond a limit on file sizes (`ulimit -f`) fails like one on a full disk; it
/// would end the process without a word.
pub(crate) fn survive_file_limit() {
    /// `SIGXFSZ`, the same on all of Linux' common architectures.
    const FILE_SIZE_LIMIT: i32 = 25;
    let _ = listen(&[SignalKind::from_raw(FILE_SIZE_LIMIT)], || ControlFlow::Continue(()));
}

/// Calls `on_signal` for every signal of these kinds, on its own thread, until it returns a break.
/// Returns when it listens: what came before would end the process unheard.
///
/// # Errors
/// A phrase: the system gives no thread or signal handler.
#[allow(clippy::disallowed_methods)] // a thread of the shell: it does nothing but wait for a signal
fn listen(
    kinds: &[SignalKind],
    mut on_signal: impl FnMut() -> ControlFlow<()> + Send + 'static,
) -> Result<(), String> {
    let kinds = kinds.to_vec();
    let (tell_begun, begun) = mpsc::channel();
    let wait = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let signals = kinds.iter().map(|&kind| signal(kind)).collect::<Result<Vec<_>, _>>();
            let _ = tell_begun.send(signals.as_ref().map(drop).map_err(ToString::to_string));
            let Ok(mut signals) = signals else { return };
            loop {
                any(&mut signals).await;
                if on_signal().is_break() {
                    return;
                }
            }
        });
    };
    let spawned = std::thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
    spawned.map_err(|error| error.to_string())?;
    begun.recv().unwrap_or_else(|_| Err("no runtime".to_owned()))
}

/// Waits for any of the signals.
async fn any(signals: &mut [Signal]) {
    std::future::poll_fn(|context| {
        let mut ready = false;
        for signal in &mut *signals {
            ready |= signal.poll_recv(context).is_ready();
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
