//! The log as its users see it, against a slow oracle and a disk that fails.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod conditions;
mod confirm;
mod copy_damage;
mod counts;
mod crash;
mod damage;
mod disk_usage;
mod errors_that_pass;
mod faults;
mod figures;
mod fixture;
mod gated;
mod idempotence;
mod index_bounds;
mod ingest_faults;
mod ingest_histories;
mod ingest_marks;
mod ingest_order;
mod ingest_window;
mod merged_indexes;
mod opening;
mod oracle;
mod race;
mod reads;
mod recovery;
mod setbacks;
mod shared;
mod subscriptions;
mod window;
mod work;
