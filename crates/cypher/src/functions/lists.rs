//! Functions on lists, and those that also accept strings or maps.

use super::arguments::{at, list, unfit};
use super::catalogue::Function;
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::value::{Value, equals};

pub(super) static TABLE: &[Function] = &[
    Function::new("coalesce", 1, usize::MAX, |arguments, _| {
        Ok(arguments.iter().find(|argument| !argument.is_null()).cloned().unwrap_or_default())
    })
    .regarding_nulls(),
    Function::new("nullIf", 2, 2, |arguments, _| {
        let first = at(arguments, 0);
        Ok(if equals(first, at(arguments, 1)) == Some(true) { Value::Null } else { first.clone() })
    })
    .regarding_nulls(),
    Function::new("head", 1, 1, |arguments, _| {
        Ok(list("head", at(arguments, 0))?.first().cloned().unwrap_or_default())
    }),
    Function::new("last", 1, 1, |arguments, _| {
        Ok(list("last", at(arguments, 0))?.last().cloned().unwrap_or_default())
    }),
    Function::new("tail", 1, 1, |arguments, context| {
        let items = list("tail", at(arguments, 0))?;
        charge(context, items.len())?;
        Ok(Value::list(items.get(1..).unwrap_or_default().to_vec()))
    }),
    Function::new("range", 2, 3, range),
    Function::new("reverse", 1, 1, |arguments, context| {
        context.budget.charge_steps(at(arguments, 0).bytes() / 16)?;
        match at(arguments, 0) {
            Value::List(items) => {
                charge(context, items.len())?;
                Ok(Value::list(items.iter().rev().cloned().collect()))
            }
            Value::String(text) => Ok(Value::string(text.chars().rev().collect::<String>())),
            other => Err(unfit("reverse", other, "a List or a String")),
        }
    }),
    Function::new("size", 1, 1, |arguments, context| size(at(arguments, 0), context)),
    Function::new("isEmpty", 1, 1, |arguments, _| match at(arguments, 0) {
        Value::List(items) => Ok(Value::Boolean(items.is_empty())),
        Value::String(text) => Ok(Value::Boolean(text.is_empty())),
        Value::Map(entries) => Ok(Value::Boolean(entries.is_empty())),
        other => Err(unfit("isEmpty", other, "a List, a Map or a String")),
    }),
];

/// Charges for a new list of this many elements.
pub(super) fn charge(context: &mut Context<'_>, length: usize) -> Result<()> {
    context.budget.charge_steps(length as u64 / 8)?;
    context.budget.charge_bytes((length as u64).saturating_mul(size_of::<Value>() as u64))
}

fn size(value: &Value, context: &mut Context<'_>) -> Result<Value> {
    let length = match value {
        Value::List(items) => items.len(),
        Value::String(text) => {
            context.budget.charge_steps(text.len() as u64 / 64)?;
            text.chars().count()
        }
        other => return Err(unfit("size", other, "a List or a String")),
    };
    Ok(Value::Integer(length as i64))
}

/// Exceeds every budget: this many numbers fit into no memory.
const LONGEST_RANGE: u64 = 1 << 32;

/// `range(start, end, step)`, both ends included.
fn range(arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    let bound = |index: usize, otherwise: Option<i64>| match (arguments.get(index), otherwise) {
        (Some(Value::Integer(integer)), _) => Ok(*integer),
        (None, Some(integer)) => Ok(integer),
        (other, _) => {
            let name = other.unwrap_or(&Value::Null).type_name();
            let message = format!("range() takes Integers, not {name}.");
            Err(Error::argument(Detail::InvalidArgumentType, message))
        }
    };
    let (start, end, step) = (bound(0, None)?, bound(1, None)?, bound(2, Some(1))?);
    if step == 0 {
        return Err(Error::argument(Detail::NumberOutOfRange, "The step of range() is zero."));
    }
    let distance = (i128::from(end) - i128::from(start)) / i128::from(step);
    let against = (end < start && step > 0) || (end > start && step < 0);
    let length = if against { 0 } else { u64::try_from(distance + 1).unwrap_or(u64::MAX) };
    if length > LONGEST_RANGE {
        let message = format!("range() returns at most {LONGEST_RANGE} numbers.");
        return Err(Error::argument(Detail::LimitExceeded, message));
    }
    context.budget.charge_steps(length)?;
    context.budget.charge_bytes(length.saturating_mul(size_of::<Value>() as u64))?;
    let mut items = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    let mut next = start;
    for _ in 0..length {
        items.push(Value::Integer(next));
        next = next.wrapping_add(step);
    }
    Ok(Value::list(items))
}
