//! How tests wait, and which ports their servers get. A wait sleeps between two looks, so that it
//! takes no processor from what it waits for. It fails when nothing new has come for [`PATIENCE`],
//! however long it takes as a whole: a machine or a disk may be slow.
//!
//! ```
//! use wellspring_patience::{Patience, until};
//!
//! let (tell, told) = std::sync::mpsc::channel();
//! std::thread::spawn(move || (1..=3).for_each(|n| tell.send(n).unwrap()));
//! let (mut patience, mut seen) = (Patience::new(), 0);
//! while seen < 3 {
//!     seen += told.try_iter().count();
//!     patience.saw(seen);
//!     patience.pause(format_args!("{seen} of 3 have come"));
//! }
//! until("the sender is gone", || told.try_recv().is_err());
//! ```

#![allow(clippy::disallowed_methods)] // tests use real time

mod ports;

pub use ports::free_port;

use std::fmt::Display;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::{Duration, Instant};

/// How long nothing new may come before a wait fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Shortest and longest pause between two looks.
const SHORTEST_PAUSE: Duration = Duration::from_micros(250);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The patience of one wait.
#[derive(Debug)]
pub struct Patience {
    hasher: RandomState,
    seen: u64,
    since: Instant,
    pause: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::new()
    }
}

impl Patience {
    /// Nothing has been seen yet.
    #[must_use]
    pub fn new() -> Patience {
        let hasher = RandomState::new();
        Patience { hasher, seen: 0, since: Instant::now(), pause: SHORTEST_PAUSE }
    }

    /// The state of what is awaited. A state other than the last one is something new.
    pub fn saw(&mut self, state: impl Hash) {
        let seen = self.hasher.hash_one(state);
        if seen != self.seen {
            self.seen = seen;
            self.renew();
        }
    }

    /// Something new has come.
    pub fn renew(&mut self) {
        (self.since, self.pause) = (Instant::now(), SHORTEST_PAUSE);
    }

    /// Sleeps until it is time for another look. `what`: what has not happened, or what was seen.
    ///
    /// # Panics
    /// If nothing new has come for [`PATIENCE`].
    #[track_caller]
    pub fn pause(&mut self, what: impl Display) {
        assert!(self.since.elapsed() < PATIENCE, "nothing new for {PATIENCE:?}: {what}");
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits until a condition holds. `what`: the condition.
///
/// # Panics
/// If it does not hold within [`PATIENCE`].
#[track_caller]
pub fn until(what: impl Display, mut holds: impl FnMut() -> bool) {
    let mut patience = Patience::new();
    while !holds() {
        patience.pause(&what);
    }
}
