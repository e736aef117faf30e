//! The links view seen from outside: random histories against a naive fold, snapshots taken while
//! the fold goes on, damaged snapshots, readers beside the writer.
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
