//! What to send: one fixed request ([`FixedSource`]), or a scenario read from a
//! file ([`Scenario`]), whose format `docs/bench/scenarios.md` describes.
//!
//! A scenario is used in this order: [`Scenario::load`]; the requests of
//! [`Scenario::setup`] are sent and their answers told to it; [`Setup::finish`]
//! gives the values for [`Scenario::source`], which the engine drives; and last
//! the requests of [`Scenario::teardown`].

mod check;
mod data;
mod distinct;
mod document;
mod error;
mod file;
mod fixed;
pub mod names;
pub mod parts;
mod plan;
mod pointer;
mod quantity;
mod read;
mod run;
mod setup;
mod statuses;
pub mod template;
mod value;
mod worker;

pub use error::ScenarioError;
pub use file::{Options, Scenario, Suggested, UnixClock};
pub use fixed::FixedSource;
pub use run::ScenarioSource;
pub use setup::{Setup, SetupRequest, SetupValues};
pub use statuses::Statuses;

#[cfg(test)]
mod tests;
