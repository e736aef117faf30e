//! Black-box tests of sinks and sources: the real binary over real sockets, with clients that share
//! no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

#[cfg(feature = "kafka")]
mod kafka_sinks;
#[cfg(feature = "kafka")]
mod kafka_sources;
mod sinks;
mod sinks_receiver;
mod sinks_restored;

use wellspring_test_support::{client, crash_cycles, disk, program, server};
