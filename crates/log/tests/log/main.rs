//! The log of files: its folder, device and memory. The promises of every journal are tested by
//! `conformance`.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

#[macro_use]
mod delegate;

mod confirm;
mod copy_damage;
mod counts;
mod damage;
mod disk_usage;
mod errors_that_pass;
mod faults;
mod fences;
mod figures;
mod fixture;
mod gated;
mod handed_over;
mod index_bounds;
mod ingest_faults;
mod ingest_histories;
mod ingest_marks;
mod ingest_order;
mod ingest_window;
mod kept_times;
mod merged_indexes;
mod opening;
mod oracle;
mod recovery;
mod request_keys;
mod scrub;
mod sealed;
mod segment_copies;
mod setbacks;
mod shared;
mod shared_closing;
mod shared_lead;
mod shared_retention;
mod shared_trouble;
mod times;
mod trim;
mod window;
mod work;
