//! Ctrl-C: say where things stand, then leave with the code that shells expect.

use crate::exit::Code;

/// From now on Ctrl-C (or a polite kill) calls `last_words` and ends the process with 130.
/// If the system gives no thread or signal handler, Ctrl-C simply ends the process.
#[allow(clippy::disallowed_methods)] // a thread of the shell: it does nothing but wait for a signal
pub(crate) fn on_interrupt(last_words: impl FnOnce() + Send + 'static) {
    let wait = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        if runtime.block_on(signal()).is_ok() {
            last_words();
            std::process::exit(Code::Interrupted as i32);
        }
    };
    let _ = std::thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
}

#[cfg(unix)]
async fn signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    std::future::poll_fn(|context| {
        let terminated = terminate.poll_recv(context).is_ready();
        let interrupted = interrupt.poll_recv(context).is_ready();
        if terminated || interrupted {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    Ok(())
}

#[cfg(not(unix))]
async fn signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
