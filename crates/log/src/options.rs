//! Options for opening a log, and the interface to clocks.

use crate::head_gate::HeadGate;
use std::sync::Arc;
use std::time::Duration;

/// When an append counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Every batch is acknowledged after a barrier (`fdatasync`).
    Always,
    /// A barrier follows within this time of a write. Appends are acknowledged once written; a
    /// power loss can take up to this much time of acknowledged appends (a killed process loses
    /// nothing).
    Interval(Duration),
}

/// The log's only source of time.
pub trait Clock: Send + std::marker::Sync + 'static {
    /// Wall-clock time in µs since 1970 UTC. May go backwards; the log's time does not.
    fn wall_us(&self) -> u64;
    /// Monotonic time in µs from an arbitrary origin.
    fn monotonic_us(&self) -> u64;
    /// Processor time that the calling thread has used, in µs from an arbitrary origin; monotonic
    /// time where the system does not tell.
    fn thread_us(&self) -> u64 {
        self.monotonic_us()
    }
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

    #[cfg(target_os = "linux")]
    fn thread_us(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
    }
}

/// What runs the log's background tasks: commits, indexes of full segments, answers to late
/// retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Driver {
    /// The log's own threads.
    #[default]
    Threads,
    /// The caller, by [`Log::turn`](crate::Log::turn) on its own thread. All random choices with an
    /// effect derive from the seed, so the same turns with the same arrivals have the same outcome.
    /// For simulations only.
    Turns {
        /// The seed of all random choices.
        seed: u64,
    },
}

/// How a log is opened. `Options::default()` suits production.
#[derive(Clone)]
pub struct Options {
    /// When an append counts as durable.
    pub sync: Sync,
    /// Maximum size of a segment file in bytes, 64 KiB to 2 GiB; a larger request gets its own
    /// segment.
    pub segment_bytes: u32,
    /// Maximum number of bytes that are staged but not durable; beyond it, appends are refused as
    /// overloaded.
    pub staged_bytes: usize,
    /// Maximum memory of the active segment's index in bytes, at least 1 MiB; the next segment
    /// begins when it is reached. It bounds what opening must read and rebuild. The entries of one
    /// request may exceed it.
    pub active_index_bytes: usize,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// What runs the background tasks.
    pub driver: Driver,
    /// What the head passes when it moves. Logs that share a gate can be looked at in one moment.
    pub head_gate: HeadGate,
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
            head_gate: HeadGate::default(),
        }
    }
}
