//! Arithmetic. Integer overflow is an error; floats follow IEEE 754.

use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::ir::UnaryOperator;
use crate::temporal;
use crate::value::{List, Value, float_text};
use std::sync::Arc;

pub(super) fn unary(operator: UnaryOperator, operand: Value) -> Result<Value> {
    match (operator, operand) {
        (UnaryOperator::IsNull, operand) => Ok(Value::Boolean(operand.is_null())),
        (UnaryOperator::IsNotNull, operand) => Ok(Value::Boolean(!operand.is_null())),
        (_, Value::Null) => Ok(Value::Null),
        (UnaryOperator::Not, operand) => Ok(super::truth(&operand)?.map(|truth| !truth).into()),
        (UnaryOperator::Plus, number @ (Value::Integer(_) | Value::Float(_))) => Ok(number),
        (UnaryOperator::Minus, Value::Integer(integer)) => integer
            .checked_neg()
            .map(Value::Integer)
            .ok_or_else(|| overflow(format!("-({integer})"))),
        (UnaryOperator::Minus, Value::Float(float)) => Ok(Value::Float(-float)),
        (UnaryOperator::Minus, Value::Duration(duration)) => {
            temporal::scale(&duration, -1.0).map(Value::duration)
        }
        (UnaryOperator::Plus | UnaryOperator::Minus, other) => Err(Error::type_error(
            Detail::InvalidArgumentType,
            format!("A sign must precede a number, not {}.", other.type_name()),
        )),
    }
}

#[cold]
fn overflow(operation: String) -> Error {
    let message = format!("{operation} does not fit into 64 bits.");
    Error::runtime(ErrorKind::ArithmeticError, Detail::IntegerOverflow, message)
}

#[cold]
fn unfit(operator: &str, left: &Value, right: &Value) -> Error {
    Error::type_error(
        Detail::InvalidArgumentType,
        format!("{operator} is not defined for {} and {}.", left.type_name(), right.type_name()),
    )
}

/// `a + b`
pub(super) fn add(left: Value, right: Value, context: &mut Context<'_>) -> Result<Value> {
    match (left, right) {
        (Value::Integer(a), Value::Integer(b)) => {
            a.checked_add(b).map(Value::Integer).ok_or_else(|| overflow(format!("{a} + {b}")))
        }
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a + b)),
        (Value::Integer(a), Value::Float(b)) => Ok(Value::Float(a as f64 + b)),
        (Value::Float(a), Value::Integer(b)) => Ok(Value::Float(a + b as f64)),
        (Value::String(a), Value::String(b)) => joined(&a, &b, context),
        (Value::List(a), Value::List(b)) => appended(a, &b, context),
        (Value::List(a), b) => appended(a, &[b], context),
        (a, Value::List(b)) => appended(Arc::new(vec![a].into()), &b, context),
        (Value::String(a), b @ (Value::Integer(_) | Value::Float(_))) => {
            joined(&a, &number_text(&b), context)
        }
        (a @ (Value::Integer(_) | Value::Float(_)), Value::String(b)) => {
            joined(&number_text(&a), &b, context)
        }
        (a, Value::Duration(b)) => {
            temporal::plus(&a, &b).ok_or_else(|| unfit("+", &a, &Value::Duration(b)))?
        }
        (Value::Duration(a), b) => {
            temporal::plus(&b, &a).ok_or_else(|| unfit("+", &Value::Duration(a), &b))?
        }
        (a, b) => Err(unfit("+", &a, &b)),
    }
}

fn number_text(number: &Value) -> String {
    match number {
        Value::Integer(integer) => integer.to_string(),
        Value::Float(float) => float_text(*float),
        _ => String::new(),
    }
}

fn joined(left: &str, right: &str, context: &mut Context<'_>) -> Result<Value> {
    let length = (left.len() as u64).saturating_add(right.len() as u64);
    context.budget.charge_steps(length / 64)?;
    context.budget.charge_bytes(length)?;
    Ok(Value::String([left, right].concat().into()))
}

/// Appends in place if the list is not shared.
fn appended(mut list: Arc<List>, items: &[Value], context: &mut Context<'_>) -> Result<Value> {
    let (length, more) = (list.len() as u64, items.len() as u64);
    let copied = if Arc::get_mut(&mut list).is_some() { more } else { length.saturating_add(more) };
    context.budget.charge_steps(copied)?;
    context.budget.charge_bytes(copied.saturating_mul(size_of::<Value>() as u64))?;
    Arc::make_mut(&mut list).extend(items);
    Value::List(list).bounded()
}

/// `a - b`
pub(super) fn subtract(left: &Value, right: &Value) -> Result<Value> {
    if let Value::Duration(duration) = right
        && !left.is_null()
    {
        return temporal::minus(left, duration).ok_or_else(|| unfit("-", left, right))?;
    }
    of_numbers("-", left, right, i64::checked_sub, |a, b| a - b)
}

/// `a * b`
pub(super) fn multiply(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Duration(duration), number) | (number, Value::Duration(duration))
            if !number.is_null() =>
        {
            let factor = float(number).ok_or_else(|| unfit("*", left, right))?;
            temporal::scale(duration, factor).map(Value::duration)
        }
        _ => of_numbers("*", left, right, i64::checked_mul, |a, b| a * b),
    }
}

/// `a / b`
pub(super) fn divide(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Integer(_), Value::Integer(0)) => Err(by_zero()),
        (Value::Duration(duration), number) if !number.is_null() => {
            let divisor = float(number).ok_or_else(|| unfit("/", left, right))?;
            if divisor == 0.0 {
                return Err(by_zero());
            }
            temporal::scale(duration, 1.0 / divisor).map(Value::duration)
        }
        _ => of_numbers("/", left, right, i64::checked_div, |a, b| a / b),
    }
}

/// `a % b`
pub(super) fn modulo(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Integer(_), Value::Integer(0)) => Err(by_zero()),
        // The least integer divided by -1 has a remainder although its quotient overflows.
        (Value::Integer(_), Value::Integer(-1)) => Ok(Value::Integer(0)),
        _ => of_numbers("%", left, right, i64::checked_rem, |a, b| a % b),
    }
}

/// `a ^ b`: always a float.
pub(super) fn power(left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        _ => match float(left).zip(float(right)) {
            Some((base, exponent)) => Ok(Value::Float(base.powf(exponent))),
            None => Err(unfit("^", left, right)),
        },
    }
}

#[cold]
fn by_zero() -> Error {
    Error::runtime(ErrorKind::ArithmeticError, Detail::DivisionByZero, "/ by zero")
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(integer) => Some(*integer as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    }
}

fn of_numbers(
    operator: &str,
    left: &Value,
    right: &Value,
    of_integers: fn(i64, i64) -> Option<i64>,
    of_floats: fn(f64, f64) -> f64,
) -> Result<Value> {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Integer(a), Value::Integer(b)) => of_integers(*a, *b)
            .map(Value::Integer)
            .ok_or_else(|| overflow(format!("{a} {operator} {b}"))),
        _ => match float(left).zip(float(right)) {
            Some((a, b)) => Ok(Value::Float(of_floats(a, b))),
            None => Err(unfit(operator, left, right)),
        },
    }
}
