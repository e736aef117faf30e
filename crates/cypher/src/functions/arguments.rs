//! Typed access to arguments.

use crate::context::Budget;
use crate::error::{Detail, Error, Result};
use crate::value::Value;
use std::sync::Arc;

/// Arguments whose size is not charged: they show only what is known in constant time.
#[derive(Clone, Copy)]
pub(super) struct Outlines<'a>(&'a [Value]);

impl<'a> Outlines<'a> {
    /// The outlines of these arguments.
    pub(super) fn of(arguments: &'a [Value]) -> Self {
        Self(arguments)
    }

    /// Whether the first argument is null.
    pub(super) fn is_null(self) -> bool {
        at(self.0, 0).is_null()
    }

    /// The first argument that is not null; null if all are.
    pub(super) fn first_known(self) -> Value {
        self.0.iter().find(|argument| !argument.is_null()).cloned().unwrap_or_default()
    }

    /// The first element of a list; null if it is empty.
    pub(super) fn first_element(self, function: &str) -> Result<Value> {
        Ok(list(function, at(self.0, 0))?.first().cloned().unwrap_or_default())
    }

    /// The last element of a list; null if it is empty.
    pub(super) fn last_element(self, function: &str) -> Result<Value> {
        Ok(list(function, at(self.0, 0))?.last().cloned().unwrap_or_default())
    }

    /// The number of elements of a list, or of characters of a string, which counting charges.
    pub(super) fn size(self, function: &str, budget: &mut Budget) -> Result<usize> {
        match at(self.0, 0) {
            Value::List(items) => Ok(items.len()),
            characters @ Value::String(text) => {
                budget.charge_steps(characters.steps())?;
                Ok(text.chars().count())
            }
            other => Err(unfit(function, other, "a List or a String")),
        }
    }

    /// Whether a list, a map or a string is empty.
    pub(super) fn is_empty(self, function: &str) -> Result<bool> {
        match at(self.0, 0) {
            Value::List(items) => Ok(items.is_empty()),
            Value::String(text) => Ok(text.is_empty()),
            Value::Map(entries) => Ok(entries.is_empty()),
            other => Err(unfit(function, other, "a List, a Map or a String")),
        }
    }
}

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

pub(super) fn text<'a>(function: &str, value: &'a Value) -> Result<&'a Arc<str>> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(unfit(function, other, "a String")),
    }
}

pub(super) fn list<'a>(function: &str, value: &'a Value) -> Result<&'a [Value]> {
    match value {
        Value::List(items) => Ok(items),
        other => Err(unfit(function, other, "a List")),
    }
}
