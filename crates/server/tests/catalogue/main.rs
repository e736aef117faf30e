//! Black-box tests of the catalogue: the real binary over real sockets, with clients that share
//! no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod catalogue_bounds;
mod catalogue_crash;
mod catalogue_foreign;
mod catalogue_fresh;
mod catalogue_import;
mod catalogue_race;
mod catalogue_rebuild;
mod catalogue_refused;
mod catalogue_retry;
mod catalogue_roles;
#[cfg(feature = "search")]
mod catalogue_search;
mod catalogue_transcript;

use wellspring_test_support::{
    catalogue_client, client, closed, crash_cycles, disk, done, load_tester, numbered, server,
    shortener, transcript,
};
