//! The tables of a comparison.

pub use crate::table::Color;
pub(crate) use crate::table::{Cell, Table, Tone, escape as escaped, paint};
