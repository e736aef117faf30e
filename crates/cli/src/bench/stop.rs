//! Ctrl-C during a measurement: once to end it and see the report, twice to leave at once.

use crate::exit::Code;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// A flag that Ctrl-C or a polite kill sets. The second signal ends the process with 130.
/// If the system gives no thread or handler, the first one simply ends the process.
#[allow(clippy::disallowed_methods)] // a thread of the shell: it does nothing but wait for signals
pub(super) fn on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let wait = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if flag.swap(true, Ordering::Relaxed) {
                    std::process::exit(Code::Interrupted as i32);
                }
            }
        });
    };
    let _ = std::thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
    stop
}
