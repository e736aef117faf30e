//! Points in time and durations: construction, parsing, formatting and arithmetic.
//!
//! Values are integers of `wellspring_graph::value`; the calendar is here. Time zones come from a
//! bundled copy of the IANA rules, so a statement means the same on every machine.

mod arithmetic;
mod between;
mod calendar;
mod component;
mod construct;
mod duration;
mod fields;
mod parse;
mod parts;
mod text;
mod truncate;
mod zone;

pub use arithmetic::{minus, plus};
pub use between::{Measure, between};
pub use component::{component, is_beyond};
pub use construct::{duration, instant, now, point_in_time};
pub use duration::{add, scale};
pub use parts::Kind;
pub use text::text;
pub use truncate::truncate;
