//! Typed access to arguments.

use crate::error::{Detail, Error, Result};
use crate::value::Value;
use std::sync::Arc;

/// The argument at an index; null if it is missing.
pub(super) fn at(arguments: &[Value], index: usize) -> &Value {
    arguments.get(index).unwrap_or(&Value::Null)
}

/// The error for an argument of a type that the function does not accept.
pub(super) fn unfit(function: &str, value: &Value, wanted: &str) -> Error {
    Error::type_error(
        Detail::InvalidArgumentValue,
        format!("{function}() takes {wanted}, not {}.", value.type_name()),
    )
}

/// An integer.
pub(super) fn integer(function: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Integer(integer) => Ok(*integer),
        other => Err(unfit(function, other, "an Integer")),
    }
}

/// A number as a float.
pub(super) fn number(function: &str, value: &Value) -> Result<f64> {
    match value {
        Value::Integer(integer) => Ok(*integer as f64),
        Value::Float(float) => Ok(*float),
        other => Err(unfit(function, other, "a number")),
    }
}

/// A string.
pub(super) fn text<'a>(function: &str, value: &'a Value) -> Result<&'a Arc<str>> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(unfit(function, other, "a String")),
    }
}

/// A list.
pub(super) fn list<'a>(function: &str, value: &'a Value) -> Result<&'a [Value]> {
    match value {
        Value::List(items) => Ok(items),
        other => Err(unfit(function, other, "a List")),
    }
}
