//! The door through which the load tester starts threads.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a named thread.
///
/// # Errors
/// The operating system's, when it can give no thread.
#[allow(clippy::disallowed_methods)] // the door
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(body)
}
