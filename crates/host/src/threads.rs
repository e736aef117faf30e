//! The door through which the server starts threads.

use std::thread::JoinHandle;

/// Starts a thread.
///
/// # Errors
/// The system gives none.
#[allow(clippy::disallowed_methods)] // the door
pub(crate) fn spawn(
    name: String,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    let thread = std::thread::Builder::new().name(name).spawn(work);
    thread.map_err(|e| format!("a thread cannot start: {e}"))
}
