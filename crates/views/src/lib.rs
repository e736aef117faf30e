//! Pure folds over events: links and accounts, and the contract of every view. Nothing
//! here uses a clock, a disk or HTTP: a view at position N is a function of events 1..N alone.

#![forbid(unsafe_code)]

pub mod access;
pub mod links;
pub mod view;
