//! The door through which the server and its faces start threads.

use std::thread::JoinHandle;

/// How much nicer a thread with long work is than a thread that serves: about a third of its share,
/// where a core has to be shared.
#[cfg(target_os = "linux")]
const NICER_BY: i32 = 5;

/// Starts a thread.
///
/// # Errors
/// The system gives none.
#[allow(clippy::disallowed_methods)] // the door
pub fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    let thread = std::thread::Builder::new().name(name).spawn(work);
    thread.map_err(|e| format!("cannot start a thread: {e}"))
}

/// What makes a thread that does long work one that those that serve overtake. Not by much: it also
/// holds locks that they wait for, for a moment. Of threads that serve as this one does: a server
/// that was started nicer than `NICER_BY` would otherwise put long work first.
pub(crate) fn yielding() -> impl Fn() + Send + Sync + 'static {
    #[cfg(target_os = "linux")]
    let nicer = rustix::process::getpriority_process(None).map(|serving| serving + NICER_BY);
    move || {
        // Of the thread alone, on Linux, and at most 19; a system that refuses leaves it as it is.
        #[cfg(target_os = "linux")]
        let _ = nicer.map(|nicer| rustix::process::setpriority_process(None, nicer));
    }
}

/// Starts a thread for long work, which threads that serve overtake; so do the threads that it
/// starts.
///
/// # Errors
/// The system gives none.
pub fn spawn_yielding(
    name: String,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    let yield_to_serving = yielding();
    spawn(name, move || {
        yield_to_serving();
        work();
    })
}
