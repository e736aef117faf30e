//! A load tester for HTTP services whose reports can be trusted.
//!
//! The library knows HTTP and nothing of any particular server. A [`plan::Plan`]
//! says what load to offer, the engine offers it and measures, and everything
//! measured is kept in one [`result::Report`], from which every form of output
//! is rendered and which the checks judge. What other tools wrote is read, too: `curl` command
//! lines ([`curl`]), library micro-benchmarks ([`micro`]), published tables ([`audit`]).
//!
//! The engine offers a plan with one thread for each worker, each with its own connections, users,
//! schedule and histograms. The driver makes runs of steps in turns and watches the machine
//! meanwhile. In open loop the schedule is a function of rate and seed alone: a due request that is
//! not sent yet is still ahead in the schedule, so a backlog needs no memory, and no request is
//! dropped from the figures.

pub mod audit;
pub mod check;
mod clock;
pub mod compare;
pub mod curl;
pub mod driver;
pub mod engine;
pub mod histogram;
pub mod invalid;
pub mod machine;
pub mod micro;
pub mod null_server;
pub mod numbers;
pub mod page;
pub mod plan;
mod random;
pub mod report;
pub mod result;
pub mod scenario;
pub mod selftest;
pub mod stats;
pub mod table;
mod target;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod workload;
