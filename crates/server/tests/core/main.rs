//! Black-box tests of the log over HTTP, and everything that all faces share: the real binary over
//! real sockets, with clients that share no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod abuse;
mod append;
mod audit;
mod bounded_work;
mod browser;
mod chromium;
mod conditions;
mod consistency;
mod console;
mod consumer_histories;
mod consumer_settling;
mod consumers;
mod cors;
mod counts;
mod crash;
mod device;
mod dialects;
mod doors;
mod encodings;
mod examples;
mod first_programs;
mod freshness;
mod head_method;
#[cfg(target_os = "linux")]
mod lean;
mod lean_log;
mod leases;
#[cfg(target_os = "linux")]
mod leaving;
mod lifecycle;
mod limits;
mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
mod ownership;
mod race;
mod readme;
mod rubbish;
mod standing;
mod times;
mod trouble;
mod unread;

use wellspring_test_support::{
    account, catalogue_client, client, closed, disk, exposition, load_tester, process, server,
    shortener, tls_certificates,
};
