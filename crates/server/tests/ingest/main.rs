//! Black-box tests of fire-and-forget ingest: the real binary over real sockets, with clients that
//! share no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod ingest_account;
mod ingest_crash;
mod ingest_crowd;
mod ingest_order;
mod ingest_original;
mod ingest_pressure;

use wellspring_test_support::{account, client, crash_cycles, disk, done, numbered, server};
