//! Property values in JSON. What JSON cannot say is `{"$type":…,"_value":…}`.

use super::{EventFault, fault};
use crate::value::{Value, text};
use serde_json::Value as Json;
use std::fmt::Write;

/// Writes a text as JSON.
pub(crate) fn put_text(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|letter: char| letter < ' ' || matches!(letter, '"' | '\\')) {
        out.push_str(&rest[..at]);
        // Those that are found are one byte long.
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

/// Reads a value.
pub(super) fn from_json(json: Json) -> Result<Value, EventFault> {
    match json {
        Json::Array(items) => {
            let items: Result<Vec<Value>, _> = items.into_iter().map(scalar).collect();
            Ok(Value::List(items?.into()))
        }
        other => scalar(other),
    }
}

fn scalar(json: Json) -> Result<Value, EventFault> {
    match json {
        Json::Bool(value) => Ok(Value::Boolean(value)),
        Json::String(text) => Ok(Value::String(text.into())),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Ok(Value::Integer(value)),
            (None, Some(value)) if number.is_f64() => Ok(Value::Float(value)),
            _ => fault(format!("the number {number} is no 64-bit integer")),
        },
        Json::Object(mut fields) => {
            let name = fields.remove("$type").and_then(|name| name.as_str().map(str::to_owned));
            let text = fields.remove("_value");
            let value = match (&name, &text, fields.is_empty()) {
                (Some(name), Some(Json::String(text)), true) => text::from_typed(name, text),
                _ => None,
            };
            value.ok_or_else(|| EventFault(format!("no value is {name:?} {text:?}")))
        }
        Json::Null => fault("a property is never null"),
        Json::Array(_) => fault("a list has lists in it"),
    }
}
