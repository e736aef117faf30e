//! The door through which the server and its faces start threads.

use std::thread::JoinHandle;

/// Starts a thread.
///
/// # Errors
/// The system gives none.
#[allow(clippy::disallowed_methods)] // the door
pub fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    let thread = std::thread::Builder::new().name(name).spawn(work);
    thread.map_err(|e| format!("a thread cannot start: {e}"))
}
