//! Property values in JSON. Values that JSON cannot represent are `{"$type":…,"_value":…}`.

use super::decode::once;
use super::json::{Json, Kind, Number};
use super::{EventFault, fault};
use crate::value::{Value, text};
use std::fmt::Write;

/// Writes a text as JSON.
pub(crate) fn put_text(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    let is_escaped = |byte: &u8| matches!(byte, 0..b' ' | b'"' | b'\\');
    while let Some(at) = rest.as_bytes().iter().position(is_escaped) {
        out.push_str(&rest[..at]);
        // Every character found is one byte long.
        _ = match rest.as_bytes()[at] {
            b'"' => write!(out, "\\\""),
            b'\\' => write!(out, "\\\\"),
            b'\n' => write!(out, "\\n"),
            control => write!(out, "\\u{control:04x}"),
        };
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Writes a value as JSON.
pub(crate) fn put_json(out: &mut String, value: &Value) {
    if let Some((name, text)) = text::typed(value) {
        _ = write!(out, "{{\"$type\":\"{name}\",\"_value\":");
        put_text(out, &text);
        return out.push('}');
    }
    match value {
        Value::Boolean(value) => _ = write!(out, "{value}"),
        Value::Integer(value) => _ = write!(out, "{value}"),
        // Always with a point or an exponent, so that it stays a float.
        Value::Float(value) => _ = write!(out, "{value:?}"),
        Value::String(text) => put_text(out, text),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                put_json(out, item);
            }
            out.push(']');
        }
        _ => {}
    }
}

pub(super) fn read_value(json: &mut Json<'_>) -> Result<Value, EventFault> {
    if json.kind()? != Kind::List {
        return read_scalar(json);
    }
    let mut items = Vec::new();
    json.list(|json| {
        items.push(read_scalar(json)?);
        Ok(())
    })?;
    Ok(Value::List(items.into()))
}

fn read_scalar(json: &mut Json<'_>) -> Result<Value, EventFault> {
    match json.kind()? {
        Kind::True | Kind::False => json.boolean().map(Value::Boolean),
        Kind::Text => Ok(Value::String((&*json.text()?).into())),
        Kind::Number => json.number().map(|number| match number {
            Number::Integer(value) => Value::Integer(value),
            Number::Float(value) => Value::Float(value),
        }),
        Kind::Object => read_typed(json),
        Kind::Null => fault("a property cannot be null"),
        Kind::List => fault("a list contains lists"),
    }
}

fn read_typed(json: &mut Json<'_>) -> Result<Value, EventFault> {
    let (mut name, mut text) = (None, None);
    json.object(|json, field| match field {
        "$type" => once(&mut name, field, json.text()?.into_owned()),
        "_value" => once(&mut text, field, json.text()?.into_owned()),
        _ => fault(format!("unknown field {field:?} of a typed value")),
    })?;
    let (Some(name), Some(text)) = (name, text) else { return fault("an incomplete typed value") };
    let value = crate::value::text::from_typed(&name, &text);
    value.map_or_else(|| fault(format!("{text:?} is not a valid {name}")), Ok)
}
