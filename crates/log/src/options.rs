//! How a log is opened, and the door through which time enters it.

use std::sync::Arc;
use std::time::Duration;

/// When an append counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Every batch is followed by a barrier (`fdatasync`) before it is acknowledged.
    Always,
    /// A barrier at most this long after a write. Appends are acknowledged when
    /// written; a power loss may take up to this much of what was acknowledged
    /// (a killed process takes nothing).
    Interval(Duration),
}

/// Where time comes from. The only clock the log knows.
pub trait Clock: Send + std::marker::Sync + 'static {
    /// Wall-clock time in µs since 1970 UTC. May step backwards; the log does not.
    fn wall_us(&self) -> u64;
    /// Time in µs from an arbitrary origin that never goes back.
    fn monotonic_us(&self) -> u64;
}

/// The system's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // the door for time
    fn wall_us(&self) -> u64 {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_micros() as u64)
    }

    #[allow(clippy::disallowed_methods)] // the door for time
    fn monotonic_us(&self) -> u64 {
        use std::sync::OnceLock;
        use std::time::Instant;
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        ORIGIN.get_or_init(Instant::now).elapsed().as_micros() as u64
    }
}

/// Who does what a log does by itself: commits, indexes of full segments, answers to late retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Driver {
    /// Threads of the log's own.
    #[default]
    Threads,
    /// The caller, by [`Log::turn`](crate::Log::turn), on its own thread. What is drawn at random
    /// and has an effect comes from the seed, so that the same turns with the same arrivals have
    /// the same outcome: what a simulation needs. Only a simulation should use it.
    Turns {
        /// What is drawn at random comes from it.
        seed: u64,
    },
}

/// How a log is opened. `Options::default()` is right for production.
#[derive(Clone)]
pub struct Options {
    /// When an append counts as durable.
    pub sync: Sync,
    /// Largest segment file in bytes, 64 KiB to 2 GiB; a single request larger than this gets a
    /// segment of its own.
    pub segment_bytes: u32,
    /// Most bytes that may be staged and not yet durable; over it appends are refused as
    /// overloaded.
    pub staged_bytes: usize,
    /// Memory in bytes that the index of the segment being written may take before the next segment
    /// begins, at least 1 MiB: the bound on what opening must read and rebuild. It may be exceeded
    /// by the index entries of one request.
    pub active_index_bytes: usize,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who does what the log does by itself.
    pub driver: Driver,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sync: Sync::Always,
            segment_bytes: 256 << 20,
            staged_bytes: 64 << 20,
            active_index_bytes: 8 << 20,
            clock: Arc::new(SystemClock),
            driver: Driver::Threads,
        }
    }
}
