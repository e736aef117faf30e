//! Evaluates expressions.

mod access;
mod arithmetic;
mod items;
mod lists;
mod logic;
mod text;
mod types;

pub(crate) use items::held;
pub use logic::truth;

use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::functions::lookup;
use crate::ir::{Case, Expression, Slot};
use crate::value::{Value, equals};
use std::sync::Arc;

/// Stack that must be left before an expression is evaluated.
const STACK_LEFT: usize = 128 * 1024;
/// Size of the stack segment added otherwise.
const STACK_MORE: usize = 2 * 1024 * 1024;

/// Evaluates an expression for a row.
///
/// The row has a place for every slot of the expression. The slots of variables that the expression
/// declares (in a comprehension, say) are overwritten and have no meaning afterwards. Memory
/// charged during evaluation is returned at the end; a caller that keeps the value charges for it.
///
/// # Errors
/// Runtime errors of the language, and an exhausted budget.
pub fn evaluate(
    expression: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let before = context.budget.bytes_left();
    let value = nested(expression, row, context);
    let after = context.budget.bytes_left();
    context.budget.return_bytes(before.saturating_sub(after));
    value
}

/// Whether a predicate is true for a row; null counts as false.
///
/// # Errors
/// As for [`evaluate`]; a value that is neither a boolean nor null.
pub fn holds(predicate: &Expression, row: &mut [Value], context: &mut Context<'_>) -> Result<bool> {
    Ok(truth(&evaluate(predicate, row, context)?)? == Some(true))
}

/// Evaluates leaves directly and everything else after checking the stack.
fn nested(expression: &Expression, row: &mut [Value], context: &mut Context<'_>) -> Result<Value> {
    match expression {
        Expression::Null => Ok(Value::Null),
        Expression::Boolean(truth) => Ok(Value::Boolean(*truth)),
        Expression::Integer(integer) => Ok(Value::Integer(*integer)),
        Expression::Float(float) => Ok(Value::Float(*float)),
        Expression::String(text) => Ok(Value::String(text.clone())),
        Expression::Variable(slot) => variable(*slot, row).cloned(),
        Expression::Parameter(name) => parameter(name, context),
        compound => stacker::maybe_grow(STACK_LEFT, STACK_MORE, || {
            context.budget.charge_steps(1 + operands(compound) as u64 / 8)?;
            composed(compound, row, context)
        }),
    }
}

/// Number of operands where the text may have any number of them: leaves charge nothing themselves.
fn operands(expression: &Expression) -> usize {
    match expression {
        Expression::List(items) => items.len(),
        Expression::Map(entries) => entries.len(),
        Expression::MapProjection(_, items) => items.len(),
        Expression::Comparison(_, rest) => rest.len(),
        Expression::HasLabels(_, labels) => labels.len(),
        Expression::Case(case) => case.alternatives.len(),
        Expression::Function(_, arguments) => arguments.len(),
        _ => 0,
    }
}

fn composed(
    expression: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    match expression {
        Expression::Property(subject, key) => {
            if let Expression::Variable(slot) = &**subject {
                return access::property(variable(*slot, row)?, key, context);
            }
            let subject = nested(subject, row, context)?;
            access::property(&subject, key, context)
        }
        Expression::Index(subject, index) => {
            let subject = nested(subject, row, context)?;
            let index = nested(index, row, context)?;
            access::index(&subject, &index, context)
        }
        Expression::Slice(list, from, to) => {
            let list = nested(list, row, context)?;
            let from = from.as_ref().map(|from| nested(from, row, context)).transpose()?;
            let to = to.as_ref().map(|to| nested(to, row, context)).transpose()?;
            access::slice(&list, from.as_ref(), to.as_ref(), context)
        }
        Expression::List(items) => {
            context.budget.charge_bytes((items.len() * size_of::<Value>()) as u64)?;
            let items: Result<Vec<Value>> =
                items.iter().map(|item| nested(item, row, context)).collect();
            Value::list(items?).bounded()
        }
        Expression::Map(entries) => {
            context.budget.charge_bytes(entries.len() as u64 * 64)?;
            let evaluated =
                entries.iter().map(|(key, value)| Ok((key.clone(), nested(value, row, context)?)));
            let entries: Result<crate::value::Entries> = evaluated.collect();
            Value::Map(Arc::new(entries?.into())).bounded()
        }
        Expression::MapProjection(subject, items) => {
            access::map_projection(subject, items, row, context)
        }
        Expression::Unary(operator, operand) => {
            let operand = nested(operand, row, context)?;
            arithmetic::unary(*operator, operand)
        }
        Expression::Binary(operator, left, right) => {
            logic::binary(*operator, left, right, row, context)
        }
        Expression::Comparison(first, rest) => logic::comparison(first, rest, row, context),
        Expression::HasLabels(subject, labels) => {
            let subject = nested(subject, row, context)?;
            access::has_labels(&subject, labels, context)
        }
        Expression::HasDynamicLabels(subject, labels, how_many) => {
            let subject = nested(subject, row, context)?;
            let labels = nested(labels, row, context)?;
            access::has_dynamic_labels(&subject, &labels, *how_many, context)
        }
        Expression::HasType(subject, of) => {
            let subject = nested(subject, row, context)?;
            types::is_of_type(&subject, of, context).map(Value::Boolean)
        }
        Expression::Case(case) => choice(case, row, context),
        Expression::Function(name, arguments) => function(name, arguments, row, context),
        Expression::ListComprehension(comprehension) => {
            lists::comprehension(comprehension, row, context)
        }
        Expression::Quantifier(quantifier) => lists::quantifier(quantifier, row, context),
        Expression::Reduce(reduce) => lists::reduce(reduce, row, context),
        Expression::Subquery(number) => {
            let subqueries = context.subqueries;
            subqueries.evaluate(*number, row, context)
        }
        leaf => nested(leaf, row, context),
    }
}

fn variable(slot: Slot, row: &[Value]) -> Result<&Value> {
    row.get(slot.0 as usize).ok_or_else(|| Error::defect(format!("A row has no slot {}.", slot.0)))
}

/// Assigns a variable that an expression declares.
fn assign(slot: Slot, value: Value, row: &mut [Value]) -> Result<()> {
    match row.get_mut(slot.0 as usize) {
        Some(place) => *place = value,
        None => return Err(Error::defect(format!("A row has no slot {}.", slot.0))),
    }
    Ok(())
}

fn parameter(name: &str, context: &mut Context<'_>) -> Result<Value> {
    context.budget.charge_steps(name.len() as u64 / 64)?;
    context.parameters.get(name).cloned().ok_or_else(|| {
        let message = format!("Expected parameter(s): {name}");
        Error::runtime(ErrorKind::ParameterMissing, Detail::MissingParameter, message)
    })
}

fn choice(case: &Case, row: &mut [Value], context: &mut Context<'_>) -> Result<Value> {
    let subject = case.subject.as_ref().map(|subject| nested(subject, row, context)).transpose()?;
    for (alternative, result) in &case.alternatives {
        let alternative = nested(alternative, row, context)?;
        let chosen = match &subject {
            Some(subject) => {
                context.budget.charge_steps(subject.steps().min(alternative.steps()))?;
                equals(subject, &alternative)
            }
            None => truth(&alternative)?,
        };
        if chosen == Some(true) {
            return nested(result, row, context);
        }
    }
    case.otherwise.as_ref().map_or(Ok(Value::Null), |otherwise| nested(otherwise, row, context))
}

fn function(
    name: &str,
    arguments: &[Expression],
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    let function = lookup(name).ok_or_else(|| Error::defect(format!("No function {name}.")))?;
    // Most functions take one argument, which needs no list.
    if let [argument] = arguments {
        let argument = nested(argument, row, context)?;
        return function.call(std::slice::from_ref(&argument), context);
    }
    let arguments: Result<Vec<Value>> =
        arguments.iter().map(|argument| nested(argument, row, context)).collect();
    function.call(&arguments?, context)
}

#[cfg(test)]
mod tests;
