//! Operators on strings.

use crate::context::Context;
use crate::error::Result;
use crate::value::Value;

/// A predicate on two strings; null if either value is null.
pub(super) fn pair(text: &Value, part: &Value, question: impl Fn(&str, &str) -> bool) -> Value {
    match (text, part) {
        (Value::String(text), Value::String(part)) => Value::Boolean(question(text, part)),
        _ => Value::Null,
    }
}

/// `text =~ pattern`: matches the whole text.
pub(super) fn matches(text: &Value, pattern: &Value, context: &mut Context<'_>) -> Result<Value> {
    match (text, pattern) {
        (Value::String(text), Value::String(pattern)) => {
            let steps = context.patterns.steps(pattern).saturating_add(text.len() as u64 / 16);
            context.budget.charge_steps(steps)?;
            context.patterns.matches(pattern, text).map(Value::Boolean)
        }
        _ => Ok(Value::Null),
    }
}
