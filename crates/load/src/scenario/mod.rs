//! What to send: one fixed request, or a scenario read from a file.

mod fixed;
mod parts;
mod statuses;

pub use fixed::{FixedRequest, FixedSource};
pub use statuses::Statuses;
