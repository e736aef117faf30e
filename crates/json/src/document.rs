//! Whole documents and the fields of their objects, for readers of bodies.

use crate::read::{Cursor, Fault, FaultKind, ReadResult};
use wellspring_types::Invalid;
use wellspring_types::valid::check_text;

/// Stores a field's value; a repeated field is a fault.
pub fn once<T>(slot: &mut Option<T>, at: usize, value: T) -> ReadResult<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Fault::new(at, FaultKind::Duplicate)),
    }
}

/// The fault of a required field that is absent.
pub fn missing<T>(field: &str, at: usize) -> ReadResult<T> {
    Err(Fault::of(field, at, FaultKind::Missing))
}

/// The fault of a field that this object does not have.
pub fn unknown(at: usize, known: &'static str) -> ReadResult<()> {
    Err(Fault::new(at, FaultKind::Unknown(known)))
}

/// A fault that breaks a rule of the field itself.
pub fn rule<T>(at: usize, rule: impl Into<String>) -> ReadResult<T> {
    Err(Fault::new(at, FaultKind::Rule(rule.into())))
}

/// Reads a string of 1 to `most_bytes` bytes without control characters.
pub fn read_text(value: &mut Cursor<'_>, most_bytes: usize) -> ReadResult<String> {
    let at = value.at();
    let text = value.string()?.into_owned();
    check_text(&text, most_bytes)
        .map_err(|reason| Fault::of_invalid(Invalid { field: String::new(), reason }, at))?;
    Ok(text)
}

/// Reads a whole document with `read` and makes sure nothing follows.
pub fn document<'a, T>(
    body: &'a [u8],
    read: impl FnOnce(&mut Cursor<'a>) -> ReadResult<T>,
) -> ReadResult<T> {
    let mut cursor = Cursor::new(body)?;
    let value = read(&mut cursor)?;
    cursor.end()?;
    Ok(value)
}
