//! What the black-box suites share: the real server as a child process, clients that share no code
//! with it, and what a test needs of the machine. The suites are `crates/server/tests`.

#![allow(missing_docs, unreachable_pub)] // for tests alone
#![allow(clippy::new_without_default)]
#![allow(clippy::disallowed_methods)] // tests use real time and threads

pub mod account;
pub mod bolt_client;
pub mod catalogue_client;
pub mod client;
pub mod closed;
pub mod crash_cycles;
pub mod disk;
pub mod done;
pub mod exposition;
pub mod following;
pub mod graph_client;
pub mod links_load;
pub mod load_tester;
pub mod nodes;
pub mod numbered;
pub mod postgres;
pub mod process;
pub mod program;
pub mod server;
pub mod shortener;
pub mod tls_certificates;
pub mod transcript;
