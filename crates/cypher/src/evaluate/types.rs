//! `x IS :: INTEGER`: tests a value's type.

use crate::context::Context;
use crate::error::Result;
use crate::ir::{BaseType, ValueType};
use crate::value::{Value, to_property};

/// Whether a value has a type; never null.
pub(super) fn is_of_type(value: &Value, of: &ValueType, context: &mut Context<'_>) -> Result<bool> {
    for alternative in &of.alternatives {
        let holds = match value {
            Value::Null => alternative.nullable,
            value => is_of_base(value, &alternative.base, context)?,
        };
        if holds {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_of_base(value: &Value, base: &BaseType, context: &mut Context<'_>) -> Result<bool> {
    Ok(match (base, value) {
        (BaseType::List(inner), Value::List(items)) => {
            for item in items.iter() {
                context.budget.charge_steps(1)?;
                if !is_of_type(item, inner, context)? {
                    return Ok(false);
                }
            }
            true
        }
        (BaseType::Property, value) => {
            context.budget.charge_steps(value.steps())?;
            to_property(value).is_ok()
        }
        (BaseType::Any, _)
        | (BaseType::Boolean, Value::Boolean(_))
        | (BaseType::String, Value::String(_))
        | (BaseType::Integer, Value::Integer(_))
        | (BaseType::Float, Value::Float(_))
        | (BaseType::Date, Value::Date(_))
        | (BaseType::LocalTime, Value::LocalTime(_))
        | (BaseType::Time, Value::Time(_))
        | (BaseType::LocalDateTime, Value::LocalDateTime(_))
        | (BaseType::DateTime, Value::DateTime(_))
        | (BaseType::Duration, Value::Duration(_))
        | (BaseType::Point, Value::Point(_))
        | (BaseType::Node, Value::Node(_))
        | (BaseType::Relationship, Value::Relationship(_))
        | (BaseType::Map, Value::Map(_))
        | (BaseType::Path, Value::Path(_)) => true,
        _ => false,
    })
}
