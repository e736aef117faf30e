//! The functions of the language: their names, arities and results.
//!
//! [`lookup`] finds those computed from one row, [`aggregate`] those computed from many.

mod aggregation;
mod apoc;
mod arguments;
mod catalogue;
mod conversion;
mod entity;
mod lists;
mod math;
mod moments;
mod spatial;
mod text;
mod vectors;

pub(crate) use aggregation::aggregates;
pub use aggregation::{Accumulator, Aggregate, aggregate};
pub(crate) use apoc::{apoc_type, refusal};
pub(crate) use catalogue::listed;
pub use catalogue::{Function, functions, lookup};
pub use entity::properties;
pub use lists::{Range, range_of};
pub(crate) use vectors::{cosine, euclidean, vector};

use crate::error::{Detail, Error, ErrorKind, Result};
use crate::value::Value;

/// A component of a temporal value or a point: `date.year`, `point.x`.
///
/// # Errors
/// A value without components, or an unknown component.
pub fn component(subject: &Value, key: &str) -> Result<Value> {
    if crate::temporal::is_beyond(subject, key) {
        let message = format!("The {key} of this {} exceed 64 bits.", subject.type_name());
        return Err(Error::runtime(ErrorKind::ArithmeticError, Detail::IntegerOverflow, message));
    }
    let component = match subject {
        Value::Point(point) => spatial::component(point, key),
        Value::Date(_)
        | Value::LocalTime(_)
        | Value::Time(_)
        | Value::LocalDateTime(_)
        | Value::DateTime(_)
        | Value::Duration(_) => crate::temporal::component(subject, key),
        other => {
            let message = format!(
                "{} has no property {key}: it is not a map, node or relationship.",
                other.type_name()
            );
            return Err(Error::type_error(Detail::InvalidArgumentType, message));
        }
    };
    component.ok_or_else(|| {
        let message = format!("{} has no field {key}.", subject.type_name());
        Error::argument(Detail::InvalidArgumentValue, message)
    })
}

#[cfg(test)]
mod tests;
