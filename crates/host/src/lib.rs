//! What every face is given: requests and answers, access, limits, figures, bounded work and the
//! logs of the process; and the loop that serves them.
//!
//! A host knows no face. A program opens one with the routes of its faces ([`serve::open`]), opens
//! these on it, and serves ([`serve::serve`]).

#![forbid(unsafe_code)]

#[macro_use] // before all that say something
mod stderr;

pub mod access;
pub mod audit;
pub mod backup;
pub mod clock;
pub mod cluster;
pub(crate) mod cluster_watch;
pub mod config;
pub mod declare;
pub mod fast;
pub mod figures;
pub mod foreign_files;
pub mod generations;
pub mod hangup;
pub mod hostname;
pub mod http;
pub mod identity;
pub mod ingest;
pub mod kept_file;
pub mod kept_types;
pub mod leads;
#[cfg(target_os = "linux")]
pub mod lean;
pub mod limits;
pub mod log_lines;
pub mod log_watch;
pub mod names;
pub mod node;
pub mod otlp;
pub mod private_folder;
pub mod protocol;
pub mod proxies;
pub mod random;
pub mod record;
pub(crate) mod scrub;
pub mod serve;
pub mod settings;
pub mod setup;
pub mod socket;
pub mod stamp;
pub mod stats;
pub mod subjects;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod threads;
pub mod tls;
pub mod trouble;
pub mod view;
pub mod wire;
