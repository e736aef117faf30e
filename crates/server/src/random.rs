//! The door through which chance enters the server: for what nobody may guess.

use std::fs::File;
use std::io::{self, Read};

/// Fills `bytes` with what the operating system's generator gives.
///
/// # Errors
/// The system's, if it has no generator.
pub(crate) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(bytes)
}
