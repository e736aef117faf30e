//! The functions of the language: what they are called, how many arguments they take, and what they come to.
//!
//! [`lookup`] finds those that are computed from one row, [`aggregate`] those that are computed from many.

#![allow(dead_code, reason = "the tables of functions come with the next commits")]
mod aggregation;
mod arguments;
mod catalogue;

pub use aggregation::{Accumulator, Aggregate, aggregate};
pub use catalogue::{Function, functions, lookup};
