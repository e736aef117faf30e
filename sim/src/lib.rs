//! A seeded world of several nodes of one shared log, on one thread: simulated disks that crash,
//! rot and fill up, a simulated shared log that delays, loses, repeats and reorders, clocks that
//! jump, processes that pause, die and come back, and clients that want things done once. After
//! every step every [invariant](invariants) is checked; then everything is healed, and progress
//! demanded.
//!
//! The same seed gives the same trace, byte for byte.
//!
//! - [`run`]: one seed, from beginning to verdict.
//! - [`world`]: what there is; [`steps`]: what may happen to it; [`heal`]: how it ends.
//! - [`node`]: a process with its disk and its clock.
//! - [`clients`]: what is asked of the nodes, and what was answered.
//! - [`facts`]: what was seen in a log, and what happened in a step, as invariants are told it.
//! - [`mood`]: what kind of history a seed is.

#![forbid(unsafe_code)]

pub mod clients;
pub mod clock;
pub mod dice;
pub mod facts;
pub mod heal;
pub mod invariants;
pub mod links;
pub mod mood;
pub mod node;
pub mod reads;
pub mod run;
pub mod steps;
pub mod trace;
pub mod world;
