//! Converts between runtime values and properties.

use super::Value;
use crate::error::{Detail, Error, Result};
use std::sync::Arc;
use wellspring_graph::Value as Property;

/// The value of a property.
pub fn from_property(property: Property) -> Value {
    match property {
        Property::Boolean(truth) => Value::Boolean(truth),
        Property::Integer(integer) => Value::Integer(integer),
        Property::Float(float) => Value::Float(float),
        Property::String(text) => Value::String(text),
        Property::List(items) => Value::list(items.iter().cloned().map(from_property).collect()),
        Property::Bytes(bytes) => Value::Bytes(bytes),
        Property::Point(point) => Value::Point(Arc::new(point)),
        Property::Date(date) => Value::Date(date),
        Property::LocalTime(time) => Value::LocalTime(time),
        Property::Time(time) => Value::Time(time),
        Property::LocalDateTime(time) => Value::LocalDateTime(time),
        Property::DateTime(time) => Value::DateTime(Arc::new(time)),
        Property::Duration(duration) => Value::duration(duration),
    }
}

/// Converts a value to a property; `None` for null, which no property can be.
///
/// # Errors
/// Maps, nodes, relationships and paths, and lists that contain such values, lists or nulls.
pub fn to_property(value: &Value) -> Result<Option<Property>> {
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::List(items) => {
            let items: Result<Vec<Property>> = items.iter().map(element).collect();
            Property::List(items?.into())
        }
        single => match scalar(single) {
            Some(property) => property,
            None => return Err(unstorable(single)),
        },
    }))
}

fn element(value: &Value) -> Result<Property> {
    scalar(value).ok_or_else(|| {
        let message = format!("A property cannot be a list that contains {}.", value.type_name());
        Error::type_error(Detail::InvalidPropertyType, message)
    })
}

fn unstorable(value: &Value) -> Error {
    let message = format!(
        "Property values can only be of primitive types or arrays thereof, not {}.",
        value.type_name()
    );
    Error::type_error(Detail::InvalidPropertyType, message)
}

fn scalar(value: &Value) -> Option<Property> {
    Some(match value {
        Value::Boolean(truth) => Property::Boolean(*truth),
        Value::Integer(integer) => Property::Integer(*integer),
        Value::Float(float) => Property::Float(*float),
        Value::String(text) => Property::String(text.clone()),
        Value::Bytes(bytes) => Property::Bytes(bytes.clone()),
        Value::Point(point) => Property::Point(**point),
        Value::Date(date) => Property::Date(*date),
        Value::LocalTime(time) => Property::LocalTime(*time),
        Value::Time(time) => Property::Time(*time),
        Value::LocalDateTime(time) => Property::LocalDateTime(*time),
        Value::DateTime(time) => Property::DateTime((**time).clone()),
        Value::Duration(duration) => Property::Duration(**duration),
        Value::Null
        | Value::List(_)
        | Value::Map(_)
        | Value::Node(_)
        | Value::Relationship(_)
        | Value::Path(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back() {
        let list = Value::list(vec![Value::from(1), Value::from("a"), Value::from(1.5)]);
        let property = to_property(&list).expect("storable").expect("not null");
        assert!(super::super::equivalent(&from_property(property), &list));
        assert!(matches!(to_property(&Value::Null), Ok(None)));
    }

    #[test]
    fn maps_and_lists_in_lists_are_no_properties() {
        let nested = Value::list(vec![Value::list(vec![])]);
        for value in [Value::map([]), nested, Value::list(vec![Value::Null])] {
            let error = to_property(&value).expect_err("no property");
            assert_eq!(error.detail, Detail::InvalidPropertyType);
        }
    }
}
