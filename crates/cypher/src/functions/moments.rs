//! Functions of temporal values.
use super::catalogue::Function;
use crate::value::Value;

pub(super) static TABLE: &[Function] = &[Function::new("timestamp", 0, 0, |_, context| {
    let time = context.time;
    let milliseconds = time.seconds.saturating_mul(1000);
    Ok(Value::Integer(milliseconds.saturating_add(i64::from(time.nanoseconds / 1_000_000))))
})];
