//! The door through which randomness enters the server.

use ring::rand::{SecureRandom as _, SystemRandom};
use std::io;

/// Random bytes of the operating system's, good enough for keys.
///
/// # Errors
/// The system has none.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(bytes)
}
