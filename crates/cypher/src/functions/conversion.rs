//! Functions that convert between types.

use super::arguments::{at, list, unfit};
use super::catalogue::Function;
use crate::context::Budget;
use crate::context::Context;
use crate::error::Result;
use crate::temporal;
use crate::value::{Value, float_text};
use std::collections::BTreeSet;

/// A conversion: `None` if a value of this type cannot be converted.
type Conversion = fn(&Value) -> Option<Value>;

pub(super) static TABLE: &[Function] = &[
    Function::new("toBoolean", 1, 1, |arguments, _| strict(arguments, "toBoolean", to_boolean)),
    Function::new("toBooleanOrNull", 1, 1, |arguments, _| lenient(arguments, to_boolean)),
    Function::new("toBooleanList", 1, 1, |arguments, context| each(arguments, context, to_boolean)),
    Function::new("toFloat", 1, 1, |arguments, _| strict(arguments, "toFloat", to_float)),
    Function::new("toFloatOrNull", 1, 1, |arguments, _| lenient(arguments, to_float)),
    Function::new("toFloatList", 1, 1, |arguments, context| each(arguments, context, to_float)),
    Function::new("toInteger", 1, 1, |arguments, _| strict(arguments, "toInteger", to_integer)),
    Function::new("toIntegerOrNull", 1, 1, |arguments, _| lenient(arguments, to_integer)),
    Function::new("toIntegerList", 1, 1, |arguments, context| each(arguments, context, to_integer)),
    Function::new("toString", 1, 1, |arguments, _| strict(arguments, "toString", to_string)),
    Function::new("toStringOrNull", 1, 1, |arguments, _| lenient(arguments, to_string)),
    Function::new("toStringList", 1, 1, |arguments, context| each(arguments, context, to_string)),
    Function::new("valueType", 1, 1, |arguments, context| {
        value_type(at(arguments, 0), context.budget).map(Value::string)
    })
    .regarding_nulls(),
];

fn strict(arguments: &[Value], function: &str, conversion: Conversion) -> Result<Value> {
    let value = at(arguments, 0);
    conversion(value).ok_or_else(|| unfit(function, value, "a value that can be converted"))
}

fn lenient(arguments: &[Value], conversion: Conversion) -> Result<Value> {
    Ok(conversion(at(arguments, 0)).unwrap_or_default())
}

fn each(arguments: &[Value], context: &mut Context<'_>, conversion: Conversion) -> Result<Value> {
    let items = list("to…List", at(arguments, 0))?;
    super::lists::charge(context, items.len())?;
    let converted = items.iter().map(|item| {
        let converted = conversion(item).unwrap_or_default();
        let bytes = converted.share_of_outer_bytes();
        if bytes > 0 {
            context.budget.charge_steps(1)?;
            context.budget.charge_bytes(bytes)?;
        }
        Ok(converted)
    });
    converted.collect::<Result<_>>().map(Value::list)
}

fn to_boolean(value: &Value) -> Option<Value> {
    match value {
        Value::Boolean(truth) => Some(Value::Boolean(*truth)),
        Value::Integer(integer) => Some(Value::Boolean(*integer != 0)),
        Value::String(text) => Some(match text.trim().to_ascii_lowercase().as_str() {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => Value::Null,
        }),
        Value::Null => Some(Value::Null),
        _ => None,
    }
}

fn to_float(value: &Value) -> Option<Value> {
    match value {
        Value::Float(float) => Some(Value::Float(*float)),
        Value::Integer(integer) => Some(Value::Float(*integer as f64)),
        Value::String(text) => Some(text.trim().parse().map_or(Value::Null, Value::Float)),
        Value::Null => Some(Value::Null),
        _ => None,
    }
}

fn to_integer(value: &Value) -> Option<Value> {
    match value {
        Value::Integer(integer) => Some(Value::Integer(*integer)),
        Value::Float(float) => Some(from_float(*float)),
        Value::Boolean(truth) => Some(Value::Integer(i64::from(*truth))),
        Value::String(text) => {
            let text = text.trim();
            Some(match text.parse() {
                Ok(integer) => Value::Integer(integer),
                Err(_) => text.parse().map_or(Value::Null, from_float),
            })
        }
        Value::Null => Some(Value::Null),
        _ => None,
    }
}

/// Truncates the fraction; null if it is not a number or does not fit into 64 bits.
fn from_float(float: f64) -> Value {
    // Both bounds are exact: ±2^63.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float) {
        Value::Integer(float as i64)
    } else {
        Value::Null
    }
}

fn to_string(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(Value::String(text.clone())),
        Value::Boolean(truth) => Some(Value::string(if *truth { "true" } else { "false" })),
        Value::Integer(integer) => Some(Value::string(integer.to_string())),
        Value::Float(float) => Some(Value::string(float_text(*float))),
        Value::Point(point) => Some(Value::string(super::spatial::text(point))),
        Value::Null => Some(Value::Null),
        other => temporal::text(other).map(Value::string),
    }
}

/// The name of a value's type in Cypher 5. Charges for each element: the names of nested lists are
/// long.
fn value_type(value: &Value, budget: &mut Budget) -> Result<String> {
    let name = match value {
        Value::Null => return Ok("NULL".to_owned()),
        Value::List(items) => {
            let mut inner = BTreeSet::new();
            for item in items.iter() {
                let name = value_type(item, budget)?;
                budget.charge_steps(1 + name.len() as u64 / 64)?;
                inner.insert(name);
            }
            let inner: Vec<String> = inner.into_iter().collect();
            return Ok(match inner.as_slice() {
                [] => "LIST<NOTHING> NOT NULL".to_owned(),
                types => format!("LIST<{}> NOT NULL", types.join(" | ")),
            });
        }
        Value::Boolean(_) => "BOOLEAN",
        Value::Integer(_) => "INTEGER",
        Value::Float(_) => "FLOAT",
        Value::String(_) => "STRING",
        Value::Map(_) => "MAP",
        Value::Node(_) => "NODE",
        Value::Relationship(_) => "RELATIONSHIP",
        Value::Path(_) => "PATH",
        Value::Date(_) => "DATE",
        Value::LocalTime(_) => "LOCAL TIME",
        Value::Time(_) => "ZONED TIME",
        Value::LocalDateTime(_) => "LOCAL DATETIME",
        Value::DateTime(_) => "ZONED DATETIME",
        Value::Duration(_) => "DURATION",
        Value::Point(_) => "POINT",
        Value::Bytes(_) => "BYTEARRAY",
    };
    Ok(format!("{name} NOT NULL"))
}
