//! Functions on vectors: lists of numbers.

use super::arguments::{at, unfit};
use super::catalogue::Function;
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::value::Value;

pub(super) static TABLE: &[Function] = &[
    Function::new("vector.similarity.cosine", 2, 2, |arguments, context| {
        let [a, b] = pair("vector.similarity.cosine", arguments, context)?;
        cosine(&a, &b).map(Value::Float).ok_or_else(|| {
            let message = "A vector of which all numbers are 0 has no direction.";
            Error::argument(Detail::InvalidArgumentValue, message)
        })
    }),
    Function::new("vector.similarity.euclidean", 2, 2, |arguments, context| {
        let [a, b] = pair("vector.similarity.euclidean", arguments, context)?;
        Ok(Value::Float(euclidean(&a, &b)))
    }),
];

/// The numbers of a vector.
///
/// # Errors
/// No list of finite numbers, or an empty one.
pub(crate) fn vector(name: &str, value: &Value, context: &mut Context<'_>) -> Result<Vec<f64>> {
    let Value::List(items) = value else { return Err(unfit(name, value, "a List of numbers")) };
    context.budget.charge_steps(1 + items.len() as u64 / 8)?;
    let numbers: Option<Vec<f64>> = items.iter().map(finite).collect();
    numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(|| {
        let message = format!("{name}() takes a List of one or more finite numbers.");
        Error::argument(Detail::InvalidArgumentValue, message)
    })
}

fn finite(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Integer(integer) => *integer as f64,
        Value::Float(float) => *float,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

fn pair(name: &str, arguments: &[Value], context: &mut Context<'_>) -> Result<[Vec<f64>; 2]> {
    let a = vector(name, at(arguments, 0), context)?;
    let b = vector(name, at(arguments, 1), context)?;
    if a.len() == b.len() {
        return Ok([a, b]);
    }
    let message = format!("{name}() takes vectors of one length, not {} and {}.", a.len(), b.len());
    Err(Error::argument(Detail::InvalidArgumentValue, message))
}

/// The cosine of the angle between two vectors of one length, mapped to 0 to 1; `None` if one of
/// them has no direction.
pub(crate) fn cosine(a: &[f64], b: &[f64]) -> Option<f64> {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let norm = |vector: &[f64]| vector.iter().map(|number| number * number).sum::<f64>().sqrt();
    let norms = norm(a) * norm(b);
    (norms > 0.0 && norms.is_finite()).then(|| f64::midpoint(1.0, (dot / norms).clamp(-1.0, 1.0)))
}

/// How near two vectors of one length are: 1 if they are equal, towards 0 the further they are
/// apart.
pub(crate) fn euclidean(a: &[f64], b: &[f64]) -> f64 {
    let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    1.0 / (1.0 + squares)
}
