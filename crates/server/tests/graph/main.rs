//! Black-box tests of graphs: the real binary over real sockets, with clients that share
//! no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod bolt;
mod bolt_content;
mod graph_charged;
mod graph_crash;
mod graph_databases;
mod graph_disk;
mod graph_figures;
mod graph_foreign;
mod graph_histories;
mod graph_original;
mod graph_race;
mod graph_rebuild;
mod graph_recorded;
mod graph_rules;
mod graph_runaway;
mod graph_serial;
mod graph_tck;
mod graph_tools;
mod graph_transactions;
mod graph_transcript;

use wellspring_test_support::{
    bolt_client, client, closed, crash_cycles, disk, done, exposition, graph_client, numbered,
    process, server, transcript,
};
