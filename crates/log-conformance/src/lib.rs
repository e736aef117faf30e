//! A test suite for every journal: the promises of a log, regardless of what makes its batches
//! durable.
//!
//! Each test is a function of a [`JournalUnderTest`]; [`suite`] lists them. A crate with a journal
//! runs them all from one of its tests:
//!
//! ```
//! use wellspring_log_conformance::{Harness, JournalUnderTest};
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
//! wellspring_log_conformance::conformance_tests! {
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

#![forbid(unsafe_code)]

mod client;
mod coins;
pub mod conditions;
pub mod confirm;
pub mod copies;
pub mod crash;
pub mod hand_over;
mod harness;
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
pub use harness::{Harness, JournalUnderTest};
pub use link::{Link, OfferTrouble, OnTheWay};
pub use list::{Need, Test, suite, table};
pub use nodes::Nodes;
pub use shared_nodes::SharedNodes;
