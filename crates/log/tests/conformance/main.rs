//! The conformance suite over the journals of this crate.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public

#[macro_use]
#[path = "../log/delegate.rs"]
mod delegate;

mod files;
mod folder;
mod listed;
mod shared;
