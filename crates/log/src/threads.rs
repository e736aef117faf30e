//! The door through which the log starts threads.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a named thread.
#[allow(clippy::disallowed_methods)] // the door
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(body)
}
