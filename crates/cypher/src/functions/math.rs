//! Functions on numbers.

use super::arguments::{at, integer, number, text, unfit};
use super::catalogue::Function;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::value::Value;
use std::f64::consts::{E, PI};

pub(super) static TABLE: &[Function] = &[
    Function::new("abs", 1, 1, |arguments, _| absolute(at(arguments, 0))),
    Function::new("acos", 1, 1, |arguments, _| float(arguments, "acos", f64::acos)),
    Function::new("asin", 1, 1, |arguments, _| float(arguments, "asin", f64::asin)),
    Function::new("atan", 1, 1, |arguments, _| float(arguments, "atan", f64::atan)),
    Function::new("atan2", 2, 2, |arguments, _| {
        let (y, x) = (number("atan2", at(arguments, 0))?, number("atan2", at(arguments, 1))?);
        Ok(Value::Float(y.atan2(x)))
    }),
    Function::new("ceil", 1, 1, |arguments, _| float(arguments, "ceil", f64::ceil)),
    Function::new("cos", 1, 1, |arguments, _| float(arguments, "cos", f64::cos)),
    Function::new("cosh", 1, 1, |arguments, _| float(arguments, "cosh", f64::cosh)),
    Function::new("cot", 1, 1, |arguments, _| float(arguments, "cot", |x| 1.0 / x.tan())),
    Function::new("coth", 1, 1, |arguments, _| float(arguments, "coth", |x| 1.0 / x.tanh())),
    Function::new("degrees", 1, 1, |arguments, _| float(arguments, "degrees", f64::to_degrees)),
    Function::new("e", 0, 0, |_, _| Ok(Value::Float(E))),
    Function::new("exp", 1, 1, |arguments, _| float(arguments, "exp", f64::exp)),
    Function::new("floor", 1, 1, |arguments, _| float(arguments, "floor", f64::floor)),
    Function::new("haversin", 1, 1, |arguments, _| {
        float(arguments, "haversin", |x| (1.0 - x.cos()) / 2.0)
    }),
    Function::new("isNaN", 1, 1, |arguments, _| {
        Ok(Value::Boolean(number("isNaN", at(arguments, 0))?.is_nan()))
    }),
    Function::new("log", 1, 1, |arguments, _| float(arguments, "log", f64::ln)),
    Function::new("log10", 1, 1, |arguments, _| float(arguments, "log10", f64::log10)),
    Function::new("pi", 0, 0, |_, _| Ok(Value::Float(PI))),
    Function::new("radians", 1, 1, |arguments, _| float(arguments, "radians", f64::to_radians)),
    Function::new("rand", 0, 0, |_, context| Ok(Value::Float(context.random.unit())))
        .unrepeatable(),
    Function::new("round", 1, 3, |arguments, _| rounded(arguments)),
    Function::new("sign", 1, 1, |arguments, _| sign(at(arguments, 0))),
    Function::new("sin", 1, 1, |arguments, _| float(arguments, "sin", f64::sin)),
    Function::new("sinh", 1, 1, |arguments, _| float(arguments, "sinh", f64::sinh)),
    Function::new("sqrt", 1, 1, |arguments, _| float(arguments, "sqrt", f64::sqrt)),
    Function::new("tan", 1, 1, |arguments, _| float(arguments, "tan", f64::tan)),
    Function::new("tanh", 1, 1, |arguments, _| float(arguments, "tanh", f64::tanh)),
];

fn float(arguments: &[Value], function: &str, computation: fn(f64) -> f64) -> Result<Value> {
    Ok(Value::Float(computation(number(function, at(arguments, 0))?)))
}

fn absolute(value: &Value) -> Result<Value> {
    match value {
        Value::Integer(integer) => integer.checked_abs().map(Value::Integer).ok_or_else(|| {
            let message = format!("abs({integer}) does not fit into 64 bits.");
            Error::runtime(ErrorKind::ArithmeticError, Detail::IntegerOverflow, message)
        }),
        Value::Float(float) => Ok(Value::Float(float.abs())),
        other => Err(unfit("abs", other, "a number")),
    }
}

fn sign(value: &Value) -> Result<Value> {
    match value {
        Value::Integer(integer) => Ok(Value::Integer(integer.signum())),
        Value::Float(float) if *float > 0.0 => Ok(Value::Integer(1)),
        Value::Float(float) if *float < 0.0 => Ok(Value::Integer(-1)),
        Value::Float(_) => Ok(Value::Integer(0)),
        other => Err(unfit("sign", other, "a number")),
    }
}

/// `round(x)` rounds halves up; `round(x, digits)` away from zero; `round(x, digits, mode)` as
/// specified.
fn rounded(arguments: &[Value]) -> Result<Value> {
    let float = number("round", at(arguments, 0))?;
    if arguments.len() == 1 {
        // Adding 0.5 would itself round where floats have no halves, and just below a half.
        let whole = float.floor();
        let up = float - whole >= 0.5;
        return Ok(Value::Float(if up { whole + 1.0 } else { whole }));
    }
    let digits = integer("round", at(arguments, 1))?;
    if !(0..=300).contains(&digits) {
        let message = format!("round() takes 0 to 300 digits, not {digits}.");
        return Err(Error::argument(Detail::NumberOutOfRange, message));
    }
    let scale = 10_f64.powi(digits as i32);
    let scaled = float * scale;
    let mode = match arguments.get(2) {
        Some(mode) => text("round", mode)?.to_ascii_uppercase(),
        None => "HALF_UP".to_owned(),
    };
    let whole = match mode.as_str() {
        "UP" => scaled.abs().ceil().copysign(scaled),
        "DOWN" => scaled.trunc(),
        "CEILING" => scaled.ceil(),
        "FLOOR" => scaled.floor(),
        "HALF_UP" => scaled.round(),
        "HALF_DOWN" => (scaled.abs() - 0.5).ceil().copysign(scaled),
        "HALF_EVEN" => scaled.round_ties_even(),
        _ => {
            let shown: String = mode.chars().take(20).collect();
            let message = format!("round() has no mode {shown}.");
            return Err(Error::argument(Detail::InvalidArgumentValue, message));
        }
    };
    // A number too large to be scaled has no fractional digits.
    Ok(Value::Float(if scaled.is_finite() { whole / scale } else { float }))
}
