//! Black-box tests of backups, histories and damage: the real binary over real sockets, with
//! clients that share no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod backups;
mod backups_place;
#[cfg(feature = "s3")]
mod backups_s3;
mod flipped_bytes;
mod histories;
mod mending;
mod missing_end;
mod personal_data;
mod planted_links;
mod production_page;
mod trim;
mod upgrades;

use wellspring_test_support::{client, closed, disk, numbered, program, server, tls_certificates};
