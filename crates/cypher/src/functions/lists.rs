//! Functions on lists, and those that also accept strings or maps.

use super::arguments::{at, list, unfit};
use super::catalogue::Function;
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::value::{Value, equals};

pub(super) static TABLE: &[Function] = &[
    Function::outlined("coalesce", 1, usize::MAX, |outlines, _| Ok(outlines.first_known()))
        .regarding_nulls(),
    Function::new("nullIf", 2, 2, |arguments, _| {
        let first = at(arguments, 0);
        Ok(if equals(first, at(arguments, 1)) == Some(true) { Value::Null } else { first.clone() })
    })
    .regarding_nulls(),
    Function::outlined("head", 1, 1, |outlines, _| outlines.first_element("head")),
    Function::outlined("last", 1, 1, |outlines, _| outlines.last_element("last")),
    Function::new("tail", 1, 1, |arguments, context| {
        let items = list("tail", at(arguments, 0))?;
        charge(context, items.len())?;
        Ok(Value::list(items.get(1..).unwrap_or_default().to_vec()))
    }),
    Function::new("range", 2, 3, range),
    Function::new("reverse", 1, 1, |arguments, context| match at(arguments, 0) {
        Value::List(items) => {
            charge(context, items.len())?;
            Ok(Value::list(items.iter().rev().cloned().collect()))
        }
        Value::String(text) => Ok(Value::string(text.chars().rev().collect::<String>())),
        other => Err(unfit("reverse", other, "a List or a String")),
    }),
    Function::outlined("size", 1, 1, |outlines, context| {
        Ok(Value::Integer(outlines.size("size", context.budget)? as i64))
    }),
    Function::outlined("isEmpty", 1, 1, |outlines, _| {
        outlines.is_empty("isEmpty").map(Value::Boolean)
    }),
];

/// Charges for a new list of this many elements.
pub(super) fn charge(context: &mut Context<'_>, length: usize) -> Result<()> {
    context.budget.charge_steps(length as u64 / 8)?;
    context.budget.charge_bytes((length as u64).saturating_mul(size_of::<Value>() as u64))
}

/// Exceeds every budget: this many numbers fit into no memory.
const LONGEST_RANGE: u64 = 1 << 32;

/// `range(start, end, step)`, both ends included.
/// Integers at equal distances, made one by one.
pub struct Range {
    next: i64,
    step: i64,
    left: u64,
}

impl Iterator for Range {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let next = self.next;
        self.next = next.wrapping_add(self.step);
        Some(next)
    }
}

/// The integers of `range()`, whose arguments are not null.
///
/// # Errors
/// Arguments that are no integers, or a step of zero.
pub fn range_of(arguments: &[Value]) -> Result<Range> {
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
    Ok(Range { next: start, step, left: length })
}

fn range(arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    let range = range_of(arguments)?;
    let length = range.left;
    context.budget.charge_steps(length)?;
    context.budget.charge_bytes(length.saturating_mul(size_of::<Value>() as u64))?;
    Ok(Value::list(range.map(Value::Integer).collect()))
}
