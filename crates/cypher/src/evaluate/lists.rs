//! Comprehensions, quantifiers and `reduce`: expressions that declare variables.

use super::items::Items;
use super::{arithmetic, assign, nested, truth};
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::ir::{
    BinaryOperator, Expression, ListComprehension, Quantifier, Quantity, Reduce, Slot,
};
use crate::value::Value;

/// The elements of a list; `None` for null.
fn elements(
    list: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Option<Items>> {
    match Items::of(list, row, context)? {
        Items::Nothing => Ok(None),
        Items::Single(other) => Err(Error::type_error(
            Detail::InvalidArgumentType,
            format!("Expected a List, not {}.", other.type_name()),
        )),
        items => Ok(Some(items)),
    }
}

pub(super) fn comprehension(
    comprehension: &ListComprehension,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let Some(items) = elements(&comprehension.list, row, context)? else { return Ok(Value::Null) };
    let mut results = Vec::new();
    for item in items {
        context.budget.charge_steps(1)?;
        assign(comprehension.variable, item.clone(), row)?;
        if let Some(predicate) = &comprehension.predicate
            && truth(&nested(predicate, row, context)?)? != Some(true)
        {
            continue;
        }
        context.budget.charge_bytes(size_of::<Value>() as u64)?;
        results.push(match &comprehension.result {
            Some(result) => nested(result, row, context)?,
            None => item,
        });
    }
    Value::list(results).bounded()
}

pub(super) fn quantifier(
    quantifier: &Quantifier,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let Some(items) = elements(&quantifier.list, row, context)? else { return Ok(Value::Null) };
    let (mut met, mut unknown) = (0_usize, false);
    for item in items {
        context.budget.charge_steps(1)?;
        assign(quantifier.variable, item, row)?;
        match (truth(&nested(&quantifier.predicate, row, context)?)?, quantifier.quantity) {
            (Some(true), Quantity::Any) => return Ok(Value::Boolean(true)),
            (Some(true), Quantity::None) | (Some(false), Quantity::All) => {
                return Ok(Value::Boolean(false));
            }
            (Some(true), _) => met += 1,
            (Some(false), _) => {}
            (None, _) => unknown = true,
        }
        if quantifier.quantity == Quantity::Single && met > 1 {
            return Ok(Value::Boolean(false));
        }
    }
    if unknown {
        return Ok(Value::Null);
    }
    Ok(Value::Boolean(match quantifier.quantity {
        Quantity::All | Quantity::None => true,
        Quantity::Any => false,
        Quantity::Single => met == 1,
    }))
}

pub(super) fn reduce(
    reduce: &Reduce,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let Some(items) = elements(&reduce.list, row, context)? else { return Ok(Value::Null) };
    let mut accumulated = nested(&reduce.initial, row, context)?;
    let mut taken = 0;
    for item in items {
        context.budget.charge_steps(1)?;
        let left = context.budget.bytes_left();
        assign(reduce.accumulator, accumulated, row)?;
        assign(reduce.variable, item, row)?;
        accumulated = match appended(reduce) {
            // The accumulator is taken out of the row, so that an unshared list grows in place.
            Some(addend) => {
                let addend = nested(addend, row, context)?;
                arithmetic::add(take(reduce.accumulator, row), addend, context)?
            }
            None => nested(&reduce.step, row, context)?,
        };
        if accumulated.depth() == 0 {
            // A text or a number holds nothing of the previous steps, so their memory is returned.
            context.budget.return_bytes(taken);
            taken = left.saturating_sub(context.budget.bytes_left().saturating_sub(taken));
        } else {
            taken = 0;
        }
    }
    Ok(accumulated)
}

/// The addend, if a step is just `accumulator + addend`.
fn appended(reduce: &Reduce) -> Option<&Expression> {
    match &reduce.step {
        Expression::Binary(BinaryOperator::Add, left, addend)
            if **left == Expression::Variable(reduce.accumulator) =>
        {
            Some(addend)
        }
        _ => None,
    }
}

fn take(slot: Slot, row: &mut [Value]) -> Value {
    row.get_mut(slot.0 as usize).map(std::mem::take).unwrap_or_default()
}
