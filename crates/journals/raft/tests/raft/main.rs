//! Groups of real nodes in one process: over links in memory, on simulated disks.

#![allow(unreachable_pub, missing_docs)] // one binary, nothing is public
#![allow(clippy::disallowed_methods)] // tests use real time and threads

mod conformance;
mod dropped;
mod group;
mod members;
mod orders;
