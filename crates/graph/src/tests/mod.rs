//! The whole against a model: what no single file can show.

mod history;
mod model;
mod step;
mod values;

pub(crate) use values::any_value;
