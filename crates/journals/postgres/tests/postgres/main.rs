//! Over a real server, started by `test-servers/postgres.sh`. Without PostgreSQL these tests say so
//! and pass, unless `WELLSPRING_ENGINES=required`.

#![allow(clippy::disallowed_methods)] // tests tell the time and start threads as they like

mod conformance;
mod contract;
mod failures;
mod latency;
mod reader;
mod rows;
mod server;
mod standby;
mod tables;
mod tls;
