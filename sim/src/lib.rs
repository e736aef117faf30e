//! A seeded simulation of several nodes of one shared log, on one thread: simulated disks that
//! crash, rot and fill up, a simulated shared log that delays, loses, repeats and reorders, clocks
//! that jump, processes that pause, die and restart, and clients with exactly-once requests. After
//! every step every [invariant](invariants) is checked; finally all faults are removed, and
//! progress is required.
//!
//! The same seed gives the same trace, byte for byte.
//!
//! - [`run`]: runs one seed to its verdict.
//! - [`world`]: the state; [`steps`]: the possible steps; [`heal`]: the recovery at the end.
//! - [`engine`]: the shared log below; [`group`]: nodes of the Raft engine in its place.
//! - [`node`]: a process with its disk and its clock.
//! - [`clients`]: the clients' requests and the answers.
//! - [`rights`]: fences of appends that end with the epoch.
//! - [`facts`]: events read from a log, and what happened in a step: the input of invariants.
//! - [`mood`]: the mixture of faults of a seed.

#![forbid(unsafe_code)]

pub mod clients;
pub mod clock;
pub mod dice;
pub mod engine;
pub mod facts;
pub mod group;
pub mod heal;
pub mod invariants;
pub mod links;
pub mod mood;
pub mod node;
pub mod reads;
pub mod rights;
pub mod run;
pub mod steps;
pub mod trace;
pub mod world;
