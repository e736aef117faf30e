//! Temporal values.
#![allow(unused_variables, missing_docs, reason = "written next")]
mod duration;

pub use duration::{add, scale};

use crate::error::Result;
use crate::value::{Duration, Value};
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::Duration(duration) => Some(duration::text(duration)),
        _ => None,
    }
}
pub fn component(value: &Value, key: &str) -> Option<Value> {
    None
}
pub fn plus(value: &Value, duration: &Duration) -> Option<Result<Value>> {
    None
}
pub fn minus(value: &Value, duration: &Duration) -> Option<Result<Value>> {
    None
}
