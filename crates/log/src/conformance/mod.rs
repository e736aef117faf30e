//! One suite for every journal: what a log promises, whatever makes its batches durable.
//!
//! Each test is a function over a [`JournalUnderTest`]; [`suite`] lists them. A crate that brings a
//! journal runs them all from a test of its own:
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
//! A crate that brings an engine needs no harness of its own: [`SharedNodes`] makes one of a way to
//! connect.
//!
//! Each becomes a `#[test]` under its own name. What a journal cannot do has to be said, with the
//! reason, when the suite is asked for; those tests then show in the output as ignored, for that
//! reason. Nothing is passed over in silence.
//!
//! Behind the feature `conformance`, which is for tests only.

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

/// A journal whose promises are tested.
pub trait JournalUnderTest: Sync {
    /// A log that nobody has opened yet. What the harness draws at random comes from the seed.
    fn begin(&self, seed: u64) -> Box<dyn Harness>;

    /// Of a hundred random histories, how many to try: fewer than all where each costs a device or
    /// a network. One is always tried.
    fn percent(&self) -> u64 {
        100
    }
}

/// The nodes of one log: opens the log on them, takes their processes away, disturbs them.
pub trait Harness: Send + Sync {
    /// How many nodes there are. They are numbered from 0.
    fn nodes(&self) -> usize {
        1
    }

    /// What a node calls itself when it claims the lead.
    fn name(&self, node: usize) -> String {
        format!("node-{node}")
    }

    /// Opens the log on a node, over what the node's folder holds.
    ///
    /// # Errors
    /// Those of opening a log.
    fn open(&self, node: usize, options: Options) -> Result<Log, OpenError>;

    /// The process of a node is gone, and if the harness can do it the power of its disk: what no
    /// barrier had covered is there or not. Nothing the old process does from now on has any
    /// effect; the next [`open`](Self::open) finds what is left.
    fn kill(&self, node: usize);

    /// The disk of a node as it is now, to let it fill up and fail. `None` if it cannot be
    /// disturbed.
    fn disk(&self, _node: usize) -> Option<SimulatedStorage> {
        None
    }

    /// The way of a node's present process to the engine, to cut it. `None` if there is no engine.
    fn link(&self, _node: usize) -> Option<Link> {
        None
    }
}

/// How many random histories to try where `usual` many are tried if they cost nothing.
fn histories(journal: &dyn JournalUnderTest, usual: u64) -> u64 {
    (usual * journal.percent()).div_ceil(100).max(1)
}
