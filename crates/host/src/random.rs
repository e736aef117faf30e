//! The door through which randomness enters the server.

use std::fs::File;
use std::io::{self, Read};

/// Random bytes of the operating system's, good enough for keys.
///
/// # Errors
/// The system's: there is no `/dev/urandom`.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
