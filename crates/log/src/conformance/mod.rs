//! A test suite for every journal: the promises of a log, regardless of what makes its batches
//! durable.
//!
//! Each test is a function of a [`JournalUnderTest`]; [`suite`] lists them. A crate with a journal
//! runs them all from one of its tests:
//!
//! ```
//! use wellspring_log::conformance::{Harness, JournalUnderTest};
//! use wellspring_log::storage::simulated::SimulatedStorage;
//! use wellspring_log::{Log, OpenError, Options};
//! use std::sync::{Arc, Mutex, PoisonError};
//!
//! struct Files;
//!
//! struct Folder(Mutex<SimulatedStorage>);
//!
//! impl Folder {
//!     fn disk(&self) -> std::sync::MutexGuard<'_, SimulatedStorage> {
//!         self.0.lock().unwrap_or_else(PoisonError::into_inner)
//!     }
//! }
//!
//! impl JournalUnderTest for Files {
//!     fn begin(&self, seed: u64) -> Box<dyn Harness> {
//!         Box::new(Folder(Mutex::new(SimulatedStorage::new(seed))))
//!     }
//! }
//!
//! impl Harness for Folder {
//!     fn open(&self, _node: usize, options: Options) -> Result<Log, OpenError> {
//!         Log::open_on(Arc::new(self.disk().clone()), options)
//!     }
//!
//!     fn kill(&self, _node: usize) {
//!         let mut disk = self.disk();
//!         *disk = disk.crash();
//!     }
//! }
//!
//! wellspring_log::conformance_tests! {
//!     journal: Files,
//!     delayed_barriers: yes,
//!     disk_faults: no("this example does not show its disk"),
//!     several_nodes: no("a log of files has one node"),
//! }
//! # fn main() {}
//! ```
//!
//! A crate with an engine needs no harness: [`SharedNodes`] creates one from a function that
//! connects.
//!
//! Each test becomes a `#[test]` with its own name. If a journal lacks a capability, the invocation
//! must give the reason; those tests are then reported as ignored, for that reason. No test is
//! skipped silently.
//!
//! Requires the feature `conformance`, which is for tests only.

mod client;
mod coins;
pub mod conditions;
pub mod confirm;
pub mod copies;
pub mod crash;
pub mod hand_over;
pub mod idempotence;
pub mod leadership;
mod link;
mod list;
mod nodes;
pub mod oracle;
pub mod race;
pub mod reads;
mod sent;
mod shared_nodes;
pub mod subscriptions;

pub use client::Client;
pub use link::{Link, OfferTrouble, OnTheWay};
pub use list::{Need, Test, suite, table};
pub use nodes::Nodes;
pub use shared_nodes::SharedNodes;

use crate::error::OpenError;
use crate::log::Log;
use crate::options::Options;
use crate::storage::simulated::SimulatedStorage;

/// A journal under test.
pub trait JournalUnderTest: Sync {
    /// A new log that has never been opened. Random choices of the harness derive from the seed.
    fn begin(&self, seed: u64) -> Box<dyn Harness>;

    /// The percentage of random histories to run: less than 100 where each costs device or network
    /// accesses. At least one is always run.
    fn percent(&self) -> u64 {
        100
    }
}

/// The nodes of one log: opens the log on them, kills their processes, disturbs them.
pub trait Harness: Send + Sync {
    /// Number of nodes, which are numbered from 0.
    fn nodes(&self) -> usize {
        1
    }

    /// The name under which a node claims the lead.
    fn name(&self, node: usize) -> String {
        format!("node-{node}")
    }

    /// Opens the log on a node, on the content of its folder.
    ///
    /// # Errors
    /// Those of opening a log.
    fn open(&self, node: usize, options: Options) -> Result<Log, OpenError>;

    /// Kills the process of a node, with a power loss of its disk if the harness supports that:
    /// anything not covered by a barrier may be lost. The old process has no effect from now on;
    /// the next [`open`](Self::open) finds what is left.
    fn kill(&self, node: usize);

    /// The current disk of a node, to fill it up and inject faults. `None` if it cannot be
    /// disturbed.
    fn disk(&self, _node: usize) -> Option<SimulatedStorage> {
        None
    }

    /// The connection of a node's current process to the engine. `None` if there is no engine.
    fn link(&self, _node: usize) -> Option<Link> {
        None
    }
}

/// How many random histories to run if `usual` are run when they are cheap.
fn histories(journal: &dyn JournalUnderTest, usual: u64) -> u64 {
    (usual * journal.percent()).div_ceil(100).max(1)
}
