//! How a log is opened, and the door through which time enters it.

use crate::shared::entry::ClusterId;
use std::hash::{BuildHasher, RandomState};
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
    /// The caller, by [`Log::turn`](crate::Log::turn), on its own thread. What is drawn at random and
    /// has an effect comes from the seed, so that the same turns with the same arrivals have the same
    /// outcome: what a simulation needs. Only a simulation should use it.
    Turns {
        /// What is drawn at random comes from it.
        seed: u64,
    },
}

/// What a node says of itself to the others of a [shared log](crate::shared).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOptions {
    /// The log's name, of at most 255 bytes: the same on every node.
    pub log: String,
    /// The node's name, of 1 to 255 bytes without spaces; no other node has it.
    pub node: String,
    /// Where the node's clients reach it, of at most 2,048 bytes; for others to send theirs there.
    pub url: String,
    /// Drawn at random for each life of the process: a restarted node never takes a claim of its
    /// former life for its own.
    pub start: u64,
    /// After so long a silence a leader is taken for gone, and a leader that hears nothing of its own
    /// steps down. Not less than [what the engine needs](crate::shared::SharedLimits::lead_timeout_min).
    pub lead_timeout: Duration,
}

impl SharedOptions {
    /// A node of the log `main`, with a `start` drawn at random and a lead timeout of two seconds.
    #[must_use]
    pub fn new(node: &str, url: &str) -> SharedOptions {
        SharedOptions {
            log: "main".into(),
            node: node.into(),
            url: url.into(),
            start: RandomState::new().hash_one(node),
            lead_timeout: Duration::from_secs(2),
        }
    }

    /// An id for a cluster that this node founds: as random as its `start`.
    pub(crate) fn new_cluster(&self) -> ClusterId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.start.to_le_bytes());
        let names =
            crc32c::crc32c_append(crc32c::crc32c(self.log.as_bytes()), self.node.as_bytes());
        id[8..12].copy_from_slice(&names.to_le_bytes());
        ClusterId(id)
    }
}

/// How a log is opened. `Options::default()` is right for production.
#[derive(Clone)]
pub struct Options {
    /// When an append counts as durable.
    pub sync: Sync,
    /// Largest segment file in bytes, 64 KiB to 2 GiB; a single request larger than this gets a segment of its own.
    pub segment_bytes: u32,
    /// Most bytes that may be staged and not yet durable; over it appends are refused as overloaded.
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
