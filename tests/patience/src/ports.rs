//! Ports for servers that a test kills and starts again.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// The range is below that of the system (from 32,768 on).
const FIRST: u32 = 12_000;
const COUNT: u32 = 20_000;

/// A port of 127.0.0.1 that no other program is given soon. A killed server comes back at its port,
/// and the system, which gives ports of its own range to whoever connects or binds port 0, must not
/// have given it away meanwhile. Ports are taken in turn, from a place that depends on the process,
/// as other programs of tests run beside this one.
///
/// # Panics
/// If none is free.
#[must_use]
pub fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(2_531);
    for _ in 0..COUNT {
        let port = FIRST + begin.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(port).expect("FIRST + COUNT is below 65,536");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} on is free");
}
