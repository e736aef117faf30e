//! Black-box tests of the tools: the real binary over real sockets, with clients that share
//! no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod bench;
mod bench_program;
mod bench_reports;
mod exit_codes;
mod imports;
mod imports_csv;
mod imports_other_options;
mod imports_repeated;
mod tool_outputs;
#[cfg(target_os = "linux")]
mod top;

use wellspring_test_support::{closed, disk, load_tester, program, server, tls_certificates};
