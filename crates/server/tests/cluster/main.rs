//! Black-box tests of several nodes: the real binary over real sockets, with clients that share
//! no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod cluster;
mod cluster_bookstore;
mod cluster_common;
mod cluster_consumers;
mod cluster_leads;
mod cluster_outages;
mod cluster_placement;
mod cluster_raft;
mod cluster_removal;
mod cluster_repeats;
mod cluster_slow;
mod cluster_trust;

use wellspring_test_support::{
    bolt_client, catalogue_client, client, closed, done, following, nodes, postgres, program,
    server, tls_certificates, transcript,
};
