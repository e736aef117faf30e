//! Black-box tests of links and redirects: the real binary over real sockets, with clients that
//! share no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod links;
mod links_crash;
mod links_host;
mod links_many;
mod links_policy;
mod links_race;
mod links_rebuild;
mod links_refused;
mod links_retry;
mod links_sealed;
mod links_visits;
mod redirects;

use wellspring_test_support::{
    client, closed, crash_cycles, disk, done, links_load, load_tester, numbered, server, shortener,
};
