//! Operators on two values: three-valued logic, comparison, and dispatch to the others.

use super::{arithmetic, nested, text};
use crate::context::{Context, LONG_LIST};
use crate::error::{Detail, Error, Result};
use crate::ir::{BinaryOperator, Comparison, Expression, for_each_child};
use crate::value::{Value, ValueOrder, compare, equals};
use std::cmp::Ordering;

/// A truth value; `None` is null.
///
/// # Errors
/// The value is neither a boolean nor null.
pub fn truth(value: &Value) -> Result<Option<bool>> {
    match value {
        Value::Boolean(truth) => Ok(Some(*truth)),
        Value::Null => Ok(None),
        other => Err(Error::type_error(
            Detail::InvalidArgumentType,
            format!("Expected a Boolean, not {}.", other.type_name()),
        )),
    }
}

pub(super) fn binary(
    operator: BinaryOperator,
    left: &Expression,
    right: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let left = nested(left, row, context)?;
    match operator {
        // One side may decide alone; the other is then not evaluated.
        BinaryOperator::And | BinaryOperator::Or => {
            let decisive = operator == BinaryOperator::Or;
            let left = truth(&left)?;
            if left == Some(decisive) {
                return Ok(Value::Boolean(decisive));
            }
            let right = truth(&nested(right, row, context)?)?;
            Ok(if right == Some(decisive) {
                Value::Boolean(decisive)
            } else {
                left.and(right).map(|_| !decisive).into()
            })
        }
        BinaryOperator::Xor => {
            let right = nested(right, row, context)?;
            let (left, right) = (truth(&left)?, truth(&right)?);
            Ok(left.zip(right).map(|(left, right)| left != right).into())
        }
        BinaryOperator::In => {
            let right = searched(right, row, context)?;
            contained(&left, &right, context)
        }
        _ => {
            let right = nested(right, row, context)?;
            of_values(operator, left, right, context)
        }
    }
}

fn of_values(
    operator: BinaryOperator,
    left: Value,
    right: Value,
    context: &mut Context<'_>,
) -> Result<Value> {
    match operator {
        BinaryOperator::Add => arithmetic::add(left, right, context),
        BinaryOperator::Subtract => arithmetic::subtract(&left, &right),
        BinaryOperator::Multiply => arithmetic::multiply(&left, &right),
        BinaryOperator::Divide => arithmetic::divide(&left, &right),
        BinaryOperator::Modulo => arithmetic::modulo(&left, &right),
        BinaryOperator::Power => arithmetic::power(&left, &right),
        BinaryOperator::StartsWith => {
            text::pair(&left, &right, context, |text, part| text.starts_with(part))
        }
        BinaryOperator::EndsWith => {
            text::pair(&left, &right, context, |text, part| text.ends_with(part))
        }
        BinaryOperator::Contains => {
            text::pair(&left, &right, context, |text, part| text.contains(part))
        }
        BinaryOperator::Matches => text::matches(&left, &right, context),
        BinaryOperator::In | BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor => {
            Err(Error::defect("A logical operator among the others."))
        }
    }
}

/// The list on the right of `IN`: evaluated once, if it is the same for all rows.
fn searched(list: &Expression, row: &mut [Value], context: &mut Context<'_>) -> Result<Value> {
    let may_be_long = match list {
        Expression::List(items) => items.len() >= LONG_LIST,
        Expression::Function(..) => true,
        _ => false,
    };
    if !may_be_long {
        return nested(list, row, context);
    }
    let address = std::ptr::from_ref(list).addr();
    match context.known.constant(address) {
        Ok(Some(value)) => Ok(value),
        Ok(None) => nested(list, row, context),
        Err(()) => {
            let value = nested(list, row, context)?;
            let kept = reads_no_row(list).then(|| value.clone());
            context.known.keep_constant(address, kept, context.budget)?;
            Ok(value)
        }
    }
}

/// Whether an expression has the same value for all rows.
fn reads_no_row(expression: &Expression) -> bool {
    let own = match expression {
        Expression::Variable(_) | Expression::Subquery(_) => false,
        Expression::Function(name, _) => {
            crate::functions::lookup(name).is_some_and(|function| function.repeatable)
        }
        _ => true,
    };
    let mut all = own;
    for_each_child(expression, &mut |child| all &= reads_no_row(child));
    all
}

/// `element IN list`
fn contained(element: &Value, list: &Value, context: &mut Context<'_>) -> Result<Value> {
    let items = match list {
        Value::Null => return Ok(Value::Null),
        Value::List(items) => items,
        other => {
            let message = format!("IN takes a List on its right, not {}.", other.type_name());
            return Err(Error::type_error(Detail::InvalidArgumentType, message));
        }
    };
    if items.len() >= LONG_LIST
        && let Some(found) = context.known.contains(items, element, context.budget)?
    {
        return Ok(found.into());
    }
    context.budget.charge_steps(items.len() as u64)?;
    let is_large = element.steps() > 0;
    let mut so_far = Some(false);
    for item in items.iter() {
        if is_large {
            context.budget.charge_steps(element.steps().min(item.steps()))?;
        }
        match equals(element, item) {
            Some(true) => return Ok(Value::Boolean(true)),
            Some(false) => {}
            None => so_far = None,
        }
    }
    Ok(so_far.into())
}

/// `a < b <= c`: true if every neighbouring pair compares so; each operand is evaluated once.
pub(super) fn comparison(
    first: &Expression,
    rest: &[(Comparison, Expression)],
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let mut left = nested(first, row, context)?;
    let mut so_far = Some(true);
    for (comparison, right) in rest {
        let right = nested(right, row, context)?;
        context.budget.charge_steps(left.steps().min(right.steps()))?;
        match compared(*comparison, &left, &right) {
            Some(true) => {}
            Some(false) => return Ok(Value::Boolean(false)),
            None => so_far = None,
        }
        left = right;
    }
    Ok(so_far.into())
}

fn compared(comparison: Comparison, left: &Value, right: &Value) -> Option<bool> {
    let wanted: fn(Ordering) -> bool = match comparison {
        Comparison::Equal => return equals(left, right),
        Comparison::NotEqual => return equals(left, right).map(|equal| !equal),
        Comparison::Less => Ordering::is_lt,
        Comparison::LessOrEqual => Ordering::is_le,
        Comparison::Greater => Ordering::is_gt,
        Comparison::GreaterOrEqual => Ordering::is_ge,
    };
    match compare(left, right) {
        ValueOrder::Ordered(order) => Some(wanted(order)),
        ValueOrder::NotANumber => Some(false),
        ValueOrder::Unknown => None,
    }
}
