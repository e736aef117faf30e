//! Tests of the links view's public interface: random histories against a naive fold, snapshots
//! taken during folding, damaged snapshots, readers beside the writer.
#![allow(clippy::disallowed_methods)]

mod costs;
mod damage;
mod history;
mod journal;
mod oracle;
mod oracle_answers;
mod properties;
mod questions;
mod readers;
mod regressions;
