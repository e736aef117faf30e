//! Tests of the whole crate against a model.

mod clients;
mod concurrent;
mod events;
mod history;
mod large;
mod model;
mod script;
mod search_indexes;
mod step;
mod values;

pub(crate) use values::any_value;
