//! The whole against a model: what no single file can show.

mod clients;
mod concurrent;
mod events;
mod history;
mod large;
mod model;
mod script;
mod step;
mod values;

pub(crate) use values::any_value;
