//! Tests with a real server, started by `test-servers/postgres.sh`. Without PostgreSQL they report
//! that and pass, unless `WELLSPRING_TEST_ENGINES=required`.

#![allow(clippy::disallowed_methods)] // tests may read the time and start threads

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
