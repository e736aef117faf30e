//! Operators on strings.

use crate::context::Context;
use crate::error::Result;
use crate::value::{Value, steps_of};

/// A predicate on two strings, charged by their sizes; null if either value is null.
pub(super) fn pair(
    text: &Value,
    part: &Value,
    context: &mut Context<'_>,
    question: impl Fn(&str, &str) -> bool,
) -> Result<Value> {
    context.budget.charge_steps(steps_of([text, part]))?;
    Ok(match (text, part) {
        (Value::String(text), Value::String(part)) => Value::Boolean(question(text, part)),
        _ => Value::Null,
    })
}

/// `text =~ pattern`: matches the whole text.
pub(super) fn matches(text: &Value, pattern: &Value, context: &mut Context<'_>) -> Result<Value> {
    match (text, pattern) {
        (Value::String(text), Value::String(pattern)) => {
            context.patterns.matches(pattern, text, context.budget).map(Value::Boolean)
        }
        _ => Ok(Value::Null),
    }
}
