//! The statistics behind comparisons: small, seeded, tested against tables.
//!
//! Everything here takes one number a *run*. A request is never the unit: the
//! requests of one run share its luck (placement, frequency, neighbours), so
//! that a test over requests calls almost any two runs of the same server
//! different. Ratios are analysed as logarithms: a ratio and its inverse are
//! then equally far from "no change".

mod describe;
mod holm;
mod interval;
mod normal;
mod power;
mod resample;
mod student;

pub use crate::random::SplitMix64;
pub use describe::{geometric_mean, mean, median, quantile};
pub(crate) use describe::{mean_of_runs, stdev};
pub(crate) use holm::holm;
pub use interval::Interval;
pub(crate) use interval::{one_sample_t, welch_t};
pub(crate) use power::{DESIGN_POWER, detectable};
pub use resample::median_interval;
pub(crate) use resample::{bootstrap_bca, permutation_p};
