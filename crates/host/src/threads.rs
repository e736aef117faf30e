//! The door through which the server and its faces start threads.

use crate::setup::SetupError;
use std::thread::JoinHandle;

/// How much nicer a thread with long work is than a serving thread: it gets about a third of the
/// share where they compete for a core.
#[cfg(target_os = "linux")]
const NICER_BY: i32 = 5;

/// Starts a thread.
///
/// # Errors
/// The system provides none.
#[allow(clippy::disallowed_methods)] // the door
pub fn spawn(
    name: String,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, SetupError> {
    let thread = std::thread::Builder::new().name(name).spawn(work);
    thread.map_err(|e| SetupError::new(format!("cannot start a thread: {e}")))
}

/// Lowers the priority of a thread with long work below that of serving threads. Not by much: it
/// also briefly holds locks that they wait for. Relative to the current thread: a server started
/// nicer than `NICER_BY` would otherwise put long work first.
pub(crate) fn yielding() -> impl Fn() + Send + Sync + 'static {
    #[cfg(target_os = "linux")]
    let nicer = rustix::process::getpriority_process(None).map(|serving| serving + NICER_BY);
    move || {
        // Only this thread, on Linux, and at most 19; a system that refuses leaves it as it is.
        #[cfg(target_os = "linux")]
        let _ = nicer.map(|nicer| rustix::process::setpriority_process(None, nicer));
    }
}

/// Lowers the priority of the current thread in the same way, and of the threads that it starts
/// from now on: for a tool that may run beside the server.
pub fn yield_to_serving() {
    yielding()();
}

/// Starts a thread for long work, with a lower priority than serving threads; threads that it
/// starts inherit that.
///
/// # Errors
/// The system provides none.
pub fn spawn_yielding(
    name: String,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, SetupError> {
    let yield_to_serving = yielding();
    spawn(name, move || {
        yield_to_serving();
        work();
    })
}
