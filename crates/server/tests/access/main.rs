//! Black-box tests of accounts, credentials and TLS: the real binary over real sockets, with
//! clients that share no code with it.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod accounts;
mod canary;
mod disclosure;
mod foreign_tokens;
mod issuer;
mod keys;
mod lean_access;
mod logins;
mod tls;
mod tls_tools;
mod user_cli;
mod user_login;
mod user_passwords;

use wellspring_test_support::{client, closed, load_tester, program, server, tls_certificates};
